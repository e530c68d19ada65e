"""Gives pytest four options: every crash, changed stories, tests by spec line, a planted bug.

What integration tests show of themselves (their dice, their settings, their verdicts) is repeated
at the end, with the seed that brings the same run about again.

A process has one JVM, and what the first session of Spark tells it stays. So all tests of a process
share the Spark that ``session`` starts; a test with other settings takes a new session of it.
"""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from random_seed import SEED
from simulation.bugs import bug_named
from simulation.source_patch import plant

settings.register_profile("weir", deadline=None)  # no test asserts a time
settings.load_profile("weir")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all",
        action="store_true",
        help="run every cell of the crash matrix, not only a sample that covers all pairs",
    )
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write what the code says now into the stories, instead of comparing",
    )
    parser.addoption(
        "--naming",
        metavar="LINE",
        help="run only the tests whose docstring names this line of SPECIFICATION.md, such as C5",
    )
    parser.addoption(
        "--plant",
        metavar="BUG",
        help="sabotage the core with this planted bug; the tests that name its line must fail",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--all"):
        os.environ["WEIR_ALL"] = "1"
    name = config.getoption("--plant")
    if name:
        plant(bug_named(name))


@pytest.fixture(scope="session")
def session() -> Iterator[object]:
    """A real Spark, started once, with workers that find the packages."""
    from weir.spark import WeirSession  # noqa: PLC0415 - a planted bug must come before it

    session = WeirSession.builder.appName("tests").config("weir.parallelism", 1).getOrCreate()
    yield session
    session.stop()


def pytest_report_header() -> str:
    return f"seed: WEIR_SEED={SEED}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report what a passed test has tried; pytest prints nothing else about it."""
    passed = terminalreporter.stats.get("passed", [])
    shown = [r for r in passed if r.nodeid.startswith("tests/integration/") and r.capstdout]
    if shown:
        terminalreporter.section("shown by integration tests")
    for report in shown:
        terminalreporter.write_line(report.nodeid)
        for line in report.capstdout.splitlines():
            terminalreporter.write_line(f"    {line}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    line = config.getoption("--naming")
    if not line:
        return
    named = [item for item in items if _names(item, line)]
    config.hook.pytest_deselected(items=[item for item in items if item not in named])
    items[:] = named


def _names(item: pytest.Item, line: str) -> bool:
    """Whether the test's docstring names the line, as a word of its own."""
    text = getattr(getattr(item, "function", None), "__doc__", None) or ""
    words = text.replace(",", " ").replace(":", " ").replace(".", " ").replace(";", " ").split()
    return line in words
