"""The rules of the house hold in every file, and every rule notices a file that breaks it."""

from pathlib import PurePosixPath
from textwrap import dedent

import pytest

import house_rules
from set_iteration import unsorted_set_iterations
from source_tree import PACKAGES, PYTHON_FOLDERS, Module, Source, modules, text_files

SORTED_FOLDERS = ("runtime/weir/core", "tests/simulation")
NAMED_FOLDERS = ("runtime", "operator", "demo", "bench", "tests/support", "tests/simulation")
PROSE = (".py", ".md", ".txt", ".yaml", ".sh", "")
"""Endings of the files that people read; scripts such as ``dev`` have none."""


def prose():
    for source in text_files():
        if source.path.suffix in PROSE and not source.is_in("LICENSE", "tests/golden"):
            yield source


def offences(rule, sources):
    return [offence for source in sources for offence in rule(source)]


def expect_none(found):
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def a_module(text="", path="runtime/weir/thing.py"):
    return Module(PurePosixPath(path), dedent(text))


def a_file(text):
    return Source(PurePosixPath("dev"), text)


def test_every_module_begins_with_a_sentence_that_says_why_it_exists():
    expect_none(offences(house_rules.explains_nothing, modules(*PYTHON_FOLDERS)))


def test_functions_and_files_stay_short():
    expect_none(offences(house_rules.is_too_long, modules(*PYTHON_FOLDERS)))


def test_no_file_or_folder_is_a_drawer_for_whatever_has_no_home():
    expect_none(offences(house_rules.is_a_drawer, modules(*PYTHON_FOLDERS)))


def test_no_init_file_shadows_another_package():
    expect_none(offences(house_rules.shadows_a_package, modules("operator", "tests")))


def test_the_packages_do_not_print():
    expect_none(offences(house_rules.prints, modules(*PACKAGES)))


def test_the_packages_import_in_the_open():
    expect_none(offences(house_rules.imports_in_hiding, modules(*PACKAGES)))


def test_the_core_and_the_simulator_never_iterate_a_set_unsorted():
    expect_none(list(unsorted_set_iterations(modules(*SORTED_FOLDERS))))


def test_nothing_is_marked_unfinished():
    expect_none(offences(house_rules.is_unfinished, text_files()))


def test_no_file_knows_a_path_of_somebodys_machine():
    expect_none(offences(house_rules.knows_a_machine, text_files()))


def test_no_file_names_a_package_registry():
    expect_none(offences(house_rules.names_a_registry, text_files()))


def test_modules_are_named_by_nouns():
    expect_none(offences(house_rules.is_named_by_a_gerund, modules(*NAMED_FOLDERS)))


def test_no_two_modules_share_a_name():
    expect_none(list(house_rules.shares_its_name(modules(*NAMED_FOLDERS))))


def test_prose_names_its_subject():
    expect_none(offences(house_rules.speaks_in_riddles, prose()))


def test_classes_are_named_by_the_words_of_the_field():
    expect_none(offences(house_rules.invents_a_character, modules(*PYTHON_FOLDERS, "demo")))


LONG_FUNCTION = "def f():\n" + "    x = 1\n" * house_rules.LONGEST_FUNCTION
LONG_FILE = "x = 1\n" * (house_rules.LONGEST_FILE + 1)


@pytest.mark.parametrize(
    ("rule", "offender"),
    [
        (house_rules.explains_nothing, a_module("x = 1")),
        (house_rules.explains_nothing, a_module('"""The thing."""')),
        (house_rules.explains_nothing, a_module('"""A list of words without an end"""')),
        (house_rules.is_too_long, a_module(LONG_FUNCTION)),
        (house_rules.is_too_long, a_module(LONG_FILE)),
        (house_rules.is_a_drawer, a_module(path="runtime/weir/utils.py")),
        (house_rules.is_a_drawer, a_module(path="operator/weir_operator/pod_manager.py")),
        (house_rules.is_a_drawer, a_module(path="tests/support/common/words.py")),
        (house_rules.shadows_a_package, a_module(path="operator/__init__.py")),
        (house_rules.shadows_a_package, a_module(path="tests/weir/core/__init__.py")),
        (house_rules.prints, a_module("print('hello')")),
        (house_rules.imports_in_hiding, a_module("def f():\n    import json")),
        (house_rules.imports_in_hiding, a_module("import typing\nif typing.TYPE_CHECKING: ...")),
        (house_rules.is_named_by_a_gerund, a_module(path="runtime/weir/core/looking.py")),
        (house_rules.speaks_in_riddles, a_file("# {} asks".format("who" + "ever"))),
        (house_rules.speaks_in_riddles, a_module("# a slot is {}".format("to" + "ld"))),
        (house_rules.speaks_in_riddles, a_module("def test_{}_asks(): ...".format("no" + "body"))),
        (house_rules.speaks_in_riddles, a_module("was_{} = True".format("to" + "ld"))),
        (house_rules.invents_a_character, a_module("class Clerk: ...")),
        (house_rules.is_unfinished, a_file("# {}: the rest".format("todo".upper()))),
        (house_rules.knows_a_machine, a_file(f"cd {PurePosixPath('/', 'home', 'ada')}")),
        (house_rules.names_a_registry, a_file(f"--index {house_rules.REGISTRIES[0]}")),
    ],
)
def test_each_rule_notices_an_offender(rule, offender):
    assert len(offences(rule, [offender])) == 1


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        (house_rules.is_a_drawer, a_module(path="runtime/weir/database.py")),
        (house_rules.shadows_a_package, a_module(path="operator/weir_operator/__init__.py")),
        (house_rules.knows_a_machine, a_file("https://a.b/home/ $HOME/work/")),
        (house_rules.is_named_by_a_gerund, a_module(path="runtime/weir/exchange/routing.py")),
        (house_rules.speaks_in_riddles, a_file("a retold story")),
        (house_rules.speaks_in_riddles, a_module("was_retold = True")),
        (house_rules.invents_a_character, a_module("class Lookup: ...")),
    ],
)
def test_rules_let_honest_files_pass(rule, source):
    assert offences(rule, [source]) == []


def test_a_shared_name_is_noticed_with_the_other_module():
    first, second = a_module(path="runtime/weir/a/state.py"), a_module(path="runtime/b/state.py")
    mirrored = [a_module(path="runtime/a/__init__.py"), a_module(path="runtime/b/__init__.py")]

    found = list(house_rules.shares_its_name([first, second, *mirrored]))

    assert found == [f"{second.path}:1: 'state.py' is also the name of {first.path}"]


@pytest.mark.parametrize(
    "code",
    [
        "for x in {1, 2}: pass",
        "for x in set(words): pass",
        "y = [x for x in frozenset(words)]",
        "y = {x: 1 for x in {w for w in words}}",
        "y = tuple(x for x in set(words) | more)",
        "y = list(set(words))",
        "y = [*set(words)]",
        "for x in left.keys() - right.keys(): pass",
        "def f(awaiting: frozenset[int]):\n    for x in awaiting: pass",
        "def f(words):\n    seen = set(words)\n    return ','.join(seen)",
        "class A:\n    awaiting: frozenset[int]\ndef f(a):\n    return tuple(a.awaiting - {1})",
        "def missing() -> set[int]: ...\nfor x in missing(): pass",
        "def f(awaiting: set[int]):\n    return awaiting.pop()",
    ],
)
def test_iterating_a_set_is_noticed(code):
    assert len(list(unsorted_set_iterations([a_module(code)]))) == 1


@pytest.mark.parametrize(
    "code",
    [
        "for x in sorted({2, 1}): pass",
        "y = {x + 1 for x in {1, 2}}",
        "y = frozenset(x + 1 for x in set(words))",
        "y = any(x > 1 for x in set(words))",
        "y = sorted(map(str, set(words)))",
        "y = 1 in {1, 2}",
        "def f(words: list[int]):\n    for x in words: pass",
        "class A:\n    words: set[int]\nclass B:\n    words: list[int]\nfor x in b.words: pass",
        "def f(words):\n    words = set(words)\n    words = sorted(words)\n    return list(words)",
    ],
)
def test_what_cannot_show_the_order_of_a_set_passes(code):
    assert list(unsorted_set_iterations([a_module(code)])) == []
