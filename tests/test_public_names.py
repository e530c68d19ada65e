"""What users import stands in one place: it resolves, is typed, is described, and costs nothing."""

import importlib
import re
import subprocess
import sys
from pathlib import PurePosixPath

import pytest

import weir
import weir.testing
from imported_modules import imports_internals, imports_past_the_public_face, stubbed_names
from source_tree import ROOT, Module, Source, modules, text_files

PAGE = (ROOT / "docs/api.md").read_text(encoding="utf-8")
PROGRAMS = ("README.md", "docs", "manifests", "demo", "bench")
PLAYING_USERS = ("tests/support", "tests/integration", "e2e")
NAMES = sorted(set(weir.__all__) - {"__version__"})
OF_PROGRAMS = frozenset(
    {
        "BroadcastProcessFunction",
        "JobFailed",
        "ProcessFunction",
        "Savepoint",
        "Stream",
        "StreamingJob",
        "WeirSession",
        "functions",
        "read_committed",
    }
)
"""What a job file needs; the other names are also parts of what tests look into."""


def expect_none(found):
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def in_new_process(program):
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    return done.stdout.split(), done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_what_type_checkers_take_it_for(name):
    """U5."""
    found = getattr(weir, name)

    home = importlib.import_module(stubbed_names()[name])
    assert found is getattr(home, name)
    assert found.__doc__


def test_type_checkers_know_all_public_names_and_no_others():
    """U5."""
    assert sorted(stubbed_names()) == NAMES
    assert (ROOT / "runtime/weir/py.typed").exists()


def test_the_page_describes_all_public_names_and_no_others():
    """U5."""
    described = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)

    assert sorted(described) == sorted([*weir.__all__, *weir.testing.__all__])


def test_the_generator_of_the_page_gives_rows():
    """U5 D6: they follow from split and offset."""
    rows = weir.testing.generator(splits=2, keys=10, rows=100).recipe.rows(1, 0, 5)

    assert rows["offset"].to_pylist() == [0, 1, 2, 3, 4]
    assert set(rows["split"].to_pylist()) == {1}


def test_a_mistyped_option_of_the_generator_is_refused():
    """U3."""
    with pytest.raises(weir.JobRejected, match="split"):
        weir.testing.generator(split=2)


def test_importing_weir_imports_no_library():
    """U5 R3: a slot that starts pays for nothing that it does not use."""
    printed, problem = in_new_process("import sys, weir; print(*sys.modules)")

    assert not problem
    assert not {"pyspark", "pyarrow", "pydantic", "numpy", "polars"} & set(printed)


PLAIN = "import sys; sys.modules.update(dict.fromkeys(['pyspark', 'polars', 'sqlglot']))\n"


def test_a_plain_installation_has_the_names_that_need_no_spark():
    """U5."""
    needing = re.findall(r"^\| `(\w+)` \|.*\| yes \|$", PAGE, re.MULTILINE)
    rest = [name for name in NAMES if name not in needing]
    _, problem = in_new_process(f"{PLAIN}from weir import {', '.join(rest)}")

    assert len(rest) > 10
    assert not problem


@pytest.mark.parametrize("name", re.findall(r"^\| `(\w+)` \|.*\| yes \|$", PAGE, re.MULTILINE))
def test_a_plain_installation_names_the_extra_of_the_others(name):
    """U3 U5."""
    _, problem = in_new_process(f"{PLAIN}from weir import {name}")

    assert f"weir.{name} cannot be imported: it needs" in problem
    assert "pip install 'sparkweir[spark]'" in problem


def test_there_is_no_other_name():
    """U3."""
    with pytest.raises(AttributeError, match="no attribute 'WeirSesion'"):
        weir.WeirSesion  # noqa: B018 - asking is the point


def test_programs_import_public_names_only():
    """U5: documents, examples, demo and measurements."""
    shown = [source for source in text_files() if source.is_in(*PROGRAMS)]

    assert any("from weir import" in source.text for source in shown)
    expect_none([offence for source in shown for offence in imports_internals(source)])


def test_tests_that_play_a_user_import_as_a_user_does():
    """U5."""
    found = [
        offence
        for module in modules(*PLAYING_USERS)
        for offence in imports_past_the_public_face(module, OF_PROGRAMS)
    ]
    expect_none(found)


# The rules themselves


@pytest.mark.parametrize(
    "text",
    [
        "from weir.spark import WeirSession",
        "import weir.core.ids",
        "    from weir.connectors.file_sink import read_committed",
    ],
)
def test_an_internal_import_is_noticed(text):
    page = Source(PurePosixPath("docs/page.md"), f"```python\n{text}\n```\n")
    assert len(list(imports_internals(page))) == 1


@pytest.mark.parametrize(
    "text", ["from weir import WeirSession", "import weir", "from weir.testing import generator"]
)
def test_a_public_import_passes(text):
    page = Source(PurePosixPath("docs/page.md"), f"```python\n{text}\n```\n")
    assert list(imports_internals(page)) == []


def test_a_public_name_from_an_inner_module_is_noticed():
    module = Module(PurePosixPath("e2e/job.py"), "from weir.spark import WeirSession, other")
    assert len(list(imports_past_the_public_face(module, OF_PROGRAMS))) == 1
