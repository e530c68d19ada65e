"""Plants every bug of the list, one process each, and counts those that are caught.

A test of the tests: if a bug survives, the simulator cannot be trusted where it sits. A bug of the
core must be caught twice: by a schedule of the simulator, and by a specification test that names
the line which the bug breaks. For a bug elsewhere the tests beside it stand alone, unless it sits
in code around the core that the simulator runs too.

A bug takes several seconds and the list grows: a plain run plants a sample, drawn by the seed.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from random_seed import SEED, dice
from simulation.bugs import BUGS
from simulation.source_patch import Bug

console = Console(highlight=False, soft_wrap=True)
TESTS = Path(__file__).parent.parent
SAMPLE = 40
NO_SCHEDULE = "its tests stand alone"
PROOFS = ("tests/weir/core", "tests/weir/test_stories.py")
"""Tests of the core: only they can notice what is planted there, and they need no Spark."""


@dataclass(frozen=True)
class Detection:
    """What became of one planted bug."""

    bug: Bug
    schedule: str
    unproven: tuple[str, ...]
    """Lines of the specification whose tests did not notice."""

    @property
    def is_caught(self) -> bool:
        return self.schedule.startswith(("caught", NO_SCHEDULE)) and not self.unproven


def run_planted(*, every: bool) -> bool:
    bugs = BUGS if every else dice("planted bugs").sample(BUGS, SAMPLE)
    console.print(f"WEIR_SEED={SEED} draws {len(bugs)} bugs of {len(BUGS)}")
    detections: list[Detection] = []
    with (
        Progress(console=console, transient=True) as progress,
        ThreadPoolExecutor(os.cpu_count() or 1) as pool,
    ):
        bar = progress.add_task("planted bugs", total=len(bugs))
        for detection in pool.map(_detect, bugs):
            detections.append(detection)
            progress.advance(bar)
            _print(detection)
    caught = sum(detection.is_caught for detection in detections)
    console.print(f"{len(detections)} planted, {caught} caught")
    return caught == len(detections)


def _detect(bug: Bug) -> Detection:
    outcome = NO_SCHEDULE if bug.proofs and not bug.is_scheduled else _scheduled(bug)
    unproven = tuple(line for line in bug.breaks if not _tests_notice(bug, line))
    return Detection(bug, outcome, unproven)


def _scheduled(bug: Bug) -> str:
    schedule = subprocess.run(  # noqa: S603 - our own module, our own list
        [sys.executable, "-m", "simulation.bug_search", bug.name],
        capture_output=True,
        text=True,
        check=False,
    )
    return schedule.stdout.strip() or f"could not be planted: {schedule.stderr[-300:]}"


def _tests_notice(bug: Bug, line: str) -> bool:
    """Whether the tests that name this line of the specification fail with the bug planted."""
    finished = subprocess.run(  # noqa: S603 - our own tests, our own list
        [
            *(sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"),
            *("--naming", line, "--plant", bug.name, *_files(bug, line)),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=TESTS.parent,
    )
    return finished.returncode == 1


def _files(bug: Bug, line: str) -> list[str]:
    """Those that mention the line: to collect the others would take longer than to run these."""
    below = [TESTS.parent / proof for proof in bug.proofs or PROOFS]
    found = [
        file for path in below for file in (path.rglob("test_*.py") if path.is_dir() else [path])
    ]
    mentions = re.compile(rf"\b{line}\b")
    return [str(f) for f in found if f in below or mentions.search(f.read_text(encoding="utf-8"))]


def _print(detection: Detection) -> None:
    mark = "caught  " if detection.is_caught else "SURVIVED"
    console.print(
        f"{mark} {', '.join(detection.bug.breaks):<10} {detection.bug.name}", markup=False
    )
    console.print(f"           {detection.schedule}", markup=False, style="dim")
    if detection.unproven:
        console.print(f"           no test naming {', '.join(detection.unproven)} noticed")
