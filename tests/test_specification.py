"""The specification and its proofs agree, and each rule notices where they do not."""

from pathlib import PurePosixPath

import pytest

import specification
from simulation.bugs import BUGS
from source_tree import ROOT, Module, Source, text_files
from specification import (
    PAGE,
    Citation,
    Line,
    citations,
    cites_in_another_form,
    claimed_too_early,
    lines_of,
    misplaced,
    of_bug,
    unknown,
    unproved,
)

LINES = lines_of((ROOT / PAGE).read_text(encoding="utf-8"))


def parsed(source):
    return Module(source.path, source.text) if source.path.suffix == ".py" else source


SOURCES = [parsed(source) for source in text_files() if str(source.path) != PAGE]


@pytest.fixture(scope="module")
def cited():
    """Whatever the tree says about lines of the specification."""
    in_files = [citation for source in SOURCES for citation in citations(source)]
    return [*in_files, *(c for bug in BUGS for c in of_bug(bug.name, bug.breaks))]


def expect_none(found):
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def test_the_page_lists_its_lines_in_order():
    assert len(LINES) > 90
    expect_none(misplaced(LINES))


def test_every_id_that_is_cited_exists(cited):
    expect_none(unknown(LINES, cited))


def test_every_line_that_is_built_is_named_by_a_test(cited):
    expect_none(unproved(LINES, cited))


def test_a_line_that_is_not_built_is_claimed_nowhere(cited):
    expect_none(claimed_too_early(LINES, cited))


def test_lines_are_cited_in_one_form():
    expect_none([offence for source in SOURCES for offence in cites_in_another_form(source)])


# The rules themselves

BUILT, PARTLY, UNBUILT = "C1", "C2", "C3"
EXAMPLE = f"""
- {BUILT} Everything works.
- {PARTLY} A part works,
  which is explained.
- {PARTLY} (not built yet) The rest.
- {UNBUILT} (not built yet) Nothing works.
"""


def a_source(text, path="docs/page.md"):
    return parsed(Source(PurePosixPath(path), text))


def ids(text, path="docs/page.md"):
    return [citation.id for citation in citations(a_source(text, path))]


def proofs(text, path):
    return [citation.id for citation in citations(a_source(text, path)) if citation.is_proof]


def test_a_page_is_read():
    assert lines_of(EXAMPLE) == [
        Line("C1", is_built=True),
        Line("C2", is_built=True),
        Line("C2", is_built=False),
        Line("C3", is_built=False),
    ]


@pytest.mark.parametrize(
    ("rule", "offender"),
    [
        (unknown, [Citation("C4", "here")]),
        (unproved, [Citation(PARTLY, "here", is_proof=True)]),
        (unproved, [Citation(PARTLY, "here", is_proof=True), Citation(BUILT, "here")]),
        (claimed_too_early, [Citation(UNBUILT, "here")]),
        (claimed_too_early, [*of_bug("a bug", [UNBUILT])]),
    ],
)
def test_each_rule_notices_an_offender(rule, offender):
    assert len(rule(lines_of(EXAMPLE), offender)) == 1


@pytest.mark.parametrize("rule", [unknown, unproved, claimed_too_early])
def test_the_rules_let_an_honest_tree_pass(rule):
    honest = [*of_bug("a bug", [BUILT]), Citation(PARTLY, "here", is_proof=True)]
    assert rule(lines_of(EXAMPLE), honest) == []


@pytest.mark.parametrize(
    "page",
    [
        "- C2 Late.\n",
        "- C1 One.\n- C1 Again.\n",
        "- C1 One.\n- C3 Three.\n",
        "- A1 One.\n- C2 Two.\n",
    ],
)
def test_a_missing_or_repeated_id_is_noticed(page):
    assert len(misplaced(lines_of(page))) == 1


@pytest.mark.parametrize(
    "text",
    [
        f"The order is fixed ({'spec'} C1, R5).",
        f"The order is fixed ({'spec'} C1,\nR5).",
        f"# The order is fixed ({'spec'} C1,\n# R5).",
    ],
)
def test_prose_cites_lines(text):
    assert ids(text) == ["C1", "R5"]


@pytest.mark.parametrize(
    "text", ["S3 is a storage.", "K8s", "the C1 compiler", "(see S3)", "id C17"]
)
def test_what_only_looks_like_an_id_is_no_citation(text):
    assert ids(text) == []
    assert ids(f"# {text}\nx = {text!r}", "tests/test_thing.py") == []
    assert list(cites_in_another_form(a_source(text))) == []


@pytest.mark.parametrize("lead", ["C1 R5.", "C1, R5: and more.", "C1 R5"])
@pytest.mark.parametrize("path", ["tests/test_thing.py", "e2e/test_thing.py"])
def test_a_test_proves_the_lines_at_the_start_of_its_docstring(lead, path):
    assert proofs(f'def test_it():\n    """{lead}"""', path) == ["C1", "R5"]


def test_a_test_of_the_line_s3_proves_it():
    assert proofs('def test_it():\n    """S3: copy-on-write."""', "tests/test_thing.py") == ["S3"]


def test_a_story_proves_the_lines_that_it_cites():
    story = f"# An ack arrives twice ({'spec'} C1).\n"
    assert proofs(story, f"{specification.STORIES}/twice.txt") == ["C1"]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('PARAMETER = param(id="C1 a case")', "tests/test_thing.py"),
        ('CASES = {"C1: a case": 1}', "tests/test_thing.py"),
        ("# C1: a family of bugs", "tests/simulation/bugs.py"),
        ("C1 a refusal\n", "tests/weir/api/refusals.txt"),
        (f"It does ({'spec'} C1).", "tests/support/thing.py"),
    ],
)
def test_names_of_cases_and_support_cite_but_prove_nothing(text, path):
    source = f'"""{text}"""' if path.endswith("thing.py") and "spec" in text else text
    assert ids(source, path) == ["C1"]
    assert proofs(source, path) == []


@pytest.mark.parametrize(
    "text",
    [f"It does ({BUILT}).", f"It does ({BUILT}, R5).", f"Spec {BUILT}: it does.", f"spec {BUILT}"],
)
def test_another_form_is_noticed(text):
    assert len(list(cites_in_another_form(a_source(text)))) == 1
