"""The report of an e2e run: each scenario with its outcome, its duration and its notes.

One file is one scenario. Uses pytest's reports and nothing of clusters.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest


@dataclass(slots=True)
class Promise:
    """One file of tests."""

    title: str
    kept: int = 0
    broken: int = 0
    seconds: float = 0.0
    shown: list[str] = field(default_factory=list)

    def add(self, report: pytest.TestReport) -> None:
        """A part of a test: what was made ready for it counts as its time, too."""
        self.seconds += report.duration
        if report.failed:
            self.broken += 1
        elif report.when == "call" and report.passed:
            self.kept += 1
        if report.when == "call":
            self.shown += report.capstdout.splitlines()


def promises(reports: Sequence[pytest.TestReport], titles: Mapping[str, str]) -> dict[str, Promise]:
    """By their files, in the order in which they ran."""
    found: dict[str, Promise] = {}
    for report in reports:
        file = report.location[0]
        found.setdefault(file, Promise(titles.get(file, file))).add(report)
    return found


def describe(found: Mapping[str, Promise]) -> Iterator[str]:
    """A line for each promise, and below it what its tests have shown."""
    for file, promise in found.items():
        outcome = f"{promise.broken} BROKEN, " if promise.broken else ""
        yield f"{promise.title} ({file}): {outcome}{promise.kept} kept in {promise.seconds:.0f} s"
        yield from (f"    {line}" for line in promise.shown)
