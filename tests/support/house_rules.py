"""The rules of the house that no linter has, each as a function from a file to its offences.

They are functions so that every rule can be shown a file that breaks it; a rule that has never
caught anything may well be unable to. The rule about sets needs whole packages and is in
``set_iteration``.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from source_tree import Module, Source

LONGEST_FUNCTION = 70
LONGEST_FILE = 500
SHORTEST_SENTENCE = 4
DRAWERS = "utils?|helpers?|common|misc|base|managers?"

# Spelled so, or this file would break the rules that it writes down.
UNFINISHED = re.compile(r"\b(FIXM[E]|TOD[O]|XX[X])\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}~/-])/(work|root|home)[/]")
REGISTRIES = tuple(
    ".".join(labels)
    for labels in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("maven", "org"),
        ("maven", "apache", "org"),
        ("anaconda", "org"),
        ("crates", "io"),
        ("rubygems", "org"),
    )
)

NOUNS_IN_ING = frozenset(
    {
        "checkpointing",
        "driver_staging",
        "job_setting",
        "routing",
        "staging",
        "structured_streaming",
        "testing",
    }
)
"""Modules whose names end like gerunds and are nouns of the field."""

IN_EVERY_FOLDER = frozenset({"__init__.py", "__main__.py", "conftest.py"})
"""Names that every folder may have."""

TWO_SIDES = frozenset({("runtime/weir/slot/uploads.py", "tests/simulation/uploads.py")})
"""Modules of one name that are two sides of one thing, such as a part and its simulation."""

RIDDLES = re.compile(r"(?<![A-Za-z])(whoeve[r]|nobod[y]s?|tol[d])(?![A-Za-z])", re.IGNORECASE)
"""Words that leave out who acts, in prose and between the underscores of a name."""

CHARACTERS = re.compile(
    "Again|Bell|Berth|Clerk|Crew|CurtainFell|Desk|DriverHands|Ears|Errand|Eyes|Farewell|Hands|Hearer"
    "|Heritage|Home|Hosted|Inheritance|KeySlots|Look|Manners|Over|Reign|Said|Seat|Speaker|Stirred"
    "|Survey|Sweep|Theatre|Tol[d]|Unfit|Wish|Wishes"
)
"""Classes of the first dialect of this project, which a reader of Flink would not search for."""


def explains_nothing(module: Module) -> Iterator[str]:
    first, *_ = (ast.get_docstring(module.tree) or "").split("\n\n")
    if len(first.split()) < SHORTEST_SENTENCE or not first.endswith("."):
        yield f"{module.path}: the docstring must begin with a sentence that says why this exists"


def is_too_long(module: Module) -> Iterator[str]:
    if (lines := len(module.text.splitlines())) > LONGEST_FILE:
        yield f"{module.path}: has {lines} lines, not {LONGEST_FILE}"
    for node in module.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > LONGEST_FUNCTION:
                yield f"{module.path}: {node.name} has {length} lines, not {LONGEST_FUNCTION}"


def is_a_drawer(module: Module) -> Iterator[str]:
    for part in module.path.with_suffix("").parts:
        if re.fullmatch(rf"(.*_)?({DRAWERS})", part):
            yield f"{module.path}: '{part}' is a drawer; what is the noun?"


def shadows_a_package(module: Module) -> Iterator[str]:
    if module.path.name != "__init__.py":
        return
    if module.path.parent == PurePosixPath("operator"):
        yield f"{module.path}: would shadow the standard library's operator"
    if module.is_in("tests"):
        yield f"{module.path}: would shadow the package that its folder mirrors"


def prints(module: Module) -> Iterator[str]:
    for node in module.nodes:
        match node:
            case ast.Call(ast.Name("print")):
                yield f"{module.path}:{node.lineno}: prints"


def imports_in_hiding(module: Module) -> Iterator[str]:
    for node in module.nodes:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Import | ast.ImportFrom):
                        yield f"{module.path}:{inner.lineno}: imports inside {node.name}"
            case ast.Name("TYPE_CHECKING") | ast.Attribute(_, "TYPE_CHECKING"):
                yield f"{module.path}:{node.lineno}: imports for the type checker alone"


def is_unfinished(source: Source) -> Iterator[str]:
    for line, match in _matches(UNFINISHED, source):
        yield f"{source.path}:{line}: {match}; finish it or open an issue"


def knows_a_machine(source: Source) -> Iterator[str]:
    for line, match in _matches(MACHINE_PATH, source):
        yield f"{source.path}:{line}: {match} is a path of one machine"


def names_a_registry(source: Source) -> Iterator[str]:
    for line, text in enumerate(source.text.splitlines(), 1):
        for host in REGISTRIES:
            if host in text:
                yield f"{source.path}:{line}: {host} is chosen by the machine, not by us"


def is_named_by_a_gerund(module: Module) -> Iterator[str]:
    name = module.path.stem
    if name.endswith("ing") and name not in NOUNS_IN_ING:
        yield f"{module.path}:1: '{name}' is a gerund; what is the noun of the field?"


def shares_its_name(sources: Iterable[Module]) -> Iterator[str]:
    """Modules of one name, but for those that are two sides of one thing."""
    by_name: dict[str, list[PurePosixPath]] = {}
    for module in sources:
        by_name.setdefault(module.path.name, []).append(module.path)
    for name, paths in by_name.items():
        sides = tuple(sorted(str(path) for path in paths))
        if len(paths) > 1 and name not in IN_EVERY_FOLDER and sides not in TWO_SIDES:
            others = ", ".join(str(path) for path in paths[:-1])
            yield f"{paths[-1]}:1: '{name}' is also the name of {others}"


def speaks_in_riddles(source: Source) -> Iterator[str]:
    for line, match in _matches(RIDDLES, source):
        yield f"{source.path}:{line}: '{match}'; name the subject"


def invents_a_character(module: Module) -> Iterator[str]:
    for node in module.nodes:
        if isinstance(node, ast.ClassDef) and CHARACTERS.fullmatch(node.name):
            yield f"{module.path}:{node.lineno}: class {node.name} is not a word of the field"


def _matches(pattern: re.Pattern[str], source: Source) -> Iterator[tuple[int, str]]:
    for line, text in enumerate(source.text.splitlines(), 1):
        for match in pattern.finditer(text):
            yield line, match.group()
