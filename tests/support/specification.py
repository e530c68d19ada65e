"""Reads SPECIFICATION.md, and finds the lines of it that the tree cites.

A line is cited in one of these forms, and in no other:

- ``(spec C12)``, or ``(spec C12, R5)``: in code, documents and stories
- ids at the beginning of a docstring or of a case's name: in tests
- ids at the beginning of a comment or of a row: in the lists of planted bugs and refusals

S3 is also a storage, so an ``S3`` that is not at the beginning of a docstring or after ``spec`` is
never taken for a line.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from source_tree import Module, Source

PAGE = "SPECIFICATION.md"
STORIES = "tests/weir/stories"
STORAGE = "S3"

_ID = r"[ACDKRSUX][1-9]\d?(?!\w)"
_IDS = rf"{_ID}(?:,? {_ID})*"
_ITEM = re.compile(rf"^- ({_ID})( \(not built yet\))? ", re.MULTILINE)
_IN_PROSE = re.compile(rf"\(spec\s+({_ID}(?:,[\s#]+{_ID})*)")
_AT_THE_START = re.compile(rf"({_IDS})(?=[:.]|$)")
_NAMED_CASE = re.compile(rf"({_IDS})(?=: | [a-z])")
_COMMENT = re.compile(rf"^\s*# ({_IDS})(?=:|$)", re.MULTILINE)
_ROW = re.compile(rf"^({_ID})(?= [a-z])", re.MULTILINE)
_OTHER_FORM = re.compile(rf"\({_ID}[,)]|\b[Ss]pec {_ID}")


@dataclass(frozen=True, slots=True)
class Line:
    """A promise, or the part of one that is built or is not."""

    id: str
    is_built: bool


@dataclass(frozen=True, slots=True)
class Citation:
    """A place that names a line of the specification; a test that does so proves the line."""

    id: str
    place: str
    is_proof: bool = False


def lines_of(page: str) -> list[Line]:
    return [Line(item[1], is_built=not item[2]) for item in _ITEM.finditer(page)]


def citations(source: Source) -> Iterator[Citation]:
    """Whatever a file says about lines of the specification."""
    is_story = source.is_in(STORIES)
    for found in _IN_PROSE.finditer(source.text):
        yield from _cited(found[1], f"{source.path}:{_number(source, found)}", is_proof=is_story)
    if not source.is_in("tests", "e2e"):
        return
    if isinstance(source, Module):
        yield from _in_module(source)
    elif source.path.name == "refusals.txt":
        for found in _ROW.finditer(source.text):
            yield from _cited(found[1], f"{source.path}:{_number(source, found)}")


def _in_module(module: Module) -> Iterator[Citation]:
    for found in _COMMENT.finditer(module.text):
        yield from _cited(found[1], f"{module.path}:{_number(module, found)}")
    for node in module.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            named = _AT_THE_START.match(ast.get_docstring(node) or "")
            is_test = node.name.startswith("test_")
            if named:
                yield from _cited(named[1], f"{module.path}:{node.lineno}", is_proof=is_test)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = _NAMED_CASE.match(node.value)
            if named and not named[1].startswith(STORAGE):
                yield from _cited(named[1], f"{module.path}:{node.lineno}")


def of_bug(name: str, breaks: Iterable[str]) -> Iterator[Citation]:
    """A planted bug that is caught proves that the lines it breaks are tested."""
    for line in breaks:
        yield Citation(line, f"the planted bug {name!r}", is_proof=True)


def cites_in_another_form(source: Source) -> Iterator[str]:
    for found in _OTHER_FORM.finditer(source.text):
        is_proper = source.text[max(0, found.start() - 1) : found.end()].startswith("(spec ")
        if not is_proper and STORAGE not in found[0]:
            yield f"{source.path}:{_number(source, found)}: {found[0]!r}: write (spec ID, ID)"


def unknown(lines: Iterable[Line], cited: Iterable[Citation]) -> list[str]:
    known = {line.id for line in lines}
    return [f"{c.place}: {c.id} is not in {PAGE}" for c in cited if c.id not in known]


def unproved(lines: Iterable[Line], cited: Iterable[Citation]) -> list[str]:
    """Lines that are built, and that no test, story or planted bug names."""
    proved = {citation.id for citation in cited if citation.is_proof}
    return [
        f"{line.id}: no test names it, and it is not marked (not built yet)"
        for line in lines
        if line.is_built and line.id not in proved
    ]


def claimed_too_early(lines: Iterable[Line], cited: Iterable[Citation]) -> list[str]:
    """Citations of lines of which nothing is built."""
    built = {line.id for line in lines if line.is_built}
    missing = {line.id for line in lines} - built
    return [f"{c.place}: {c.id} is marked (not built yet)" for c in cited if c.id in missing]


def misplaced(lines: list[Line]) -> list[str]:
    """Ids that do not stand in order: once, or twice if a part of the line is not built."""
    problems = []
    for before, line in zip([None, *lines], lines, strict=False):
        if before is None or line.id[0] != before.id[0]:
            expected = {(f"{line.id[0]}1", True), (f"{line.id[0]}1", False)}
        else:
            following = f"{before.id[0]}{int(before.id[1:]) + 1}"
            expected = {(following, True), (following, False)}
            if before.is_built:
                expected.add((before.id, False))
        if (line.id, line.is_built) not in expected:
            problems.append(f"{line.id} does not follow {before.id if before else 'the title'}")
    return problems


def _cited(ids: str, place: str, *, is_proof: bool = False) -> Iterator[Citation]:
    for line in re.findall(_ID, ids):
        yield Citation(line, place, is_proof)


def _number(source: Source, found: re.Match[str]) -> int:
    return source.text.count("\n", 0, found.start()) + 1
