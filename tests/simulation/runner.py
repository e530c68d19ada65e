"""Runs many schedules on all cores, adds up what they reached, and prints the history of a failure.

A violation prints the seed's own replay command and the last part of its history. A run
long enough to be expected to reach everything fails when something was never reached.
"""

import gc
import logging
import multiprocessing
import os
import statistics
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.progress import Progress

from simulation.coverage import missing
from simulation.scenario import draw
from simulation.schedule_log import history_text
from simulation.simulation import Simulation

ENOUGH = 1000
"""Schedules that must, together, reach everything there is to reach."""

console = Console(highlight=False)


@dataclass(frozen=True)
class Outcome:
    """What one schedule came to."""

    seed: int
    events: int
    completed: int
    faults: int
    digest: int
    seen: Counter[str]
    violation: str = ""
    history: str = ""


def run_one(seed: int) -> Outcome:
    simulation = Simulation(draw(seed))
    world = simulation.world
    violation, text = "", ""
    try:
        simulation.run()
    except Exception as error:  # noqa: BLE001 - whatever broke, the seed is the finding
        violation = f"{type(error).__name__}: {error}"
        text = history_text(simulation.scenario, world) + "".join(
            traceback.format_exception(error)[-3:]
        )
    faults = sum(count for name, count in world.seen.items() if name.startswith("fault: "))
    digest = zlib.crc32(repr(sorted(world.seen.items())).encode(), world.digest)
    return Outcome(
        seed=seed,
        events=world.events,
        completed=world.seen["completed checkpoints"],
        faults=faults,
        digest=digest,
        seen=world.seen,
        violation=violation,
        history=text,
    )


def run_schedules(first: int, seeds: int, *, digest: bool) -> bool:
    outcomes: list[Outcome] = []
    began = time.monotonic()
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("schedules", total=seeds)
        for outcome in run_many(range(first, first + seeds)):
            outcomes.append(outcome)
            progress.advance(bar)
            if outcome.violation:
                break
    failed = [outcome for outcome in outcomes if outcome.violation]
    seen = Counter[str]()
    for outcome in outcomes:
        seen += outcome.seen
    _print_coverage(outcomes, seen)
    for outcome in failed:
        _print_failure(outcome)
    unreached = missing(seen) if seeds >= ENOUGH and not failed else []
    for name in unreached:
        console.print(f"never reached: {name}")
    if digest:
        console.print(f"digest {_digest(outcomes):08x}")
    seconds = time.monotonic() - began
    console.print(f"{len(outcomes)} schedules, {len(failed)} violations, {seconds:.0f} seconds")
    return not failed and not unreached


def run_many(seeds: Iterable[int]) -> Iterator[Outcome]:
    """In the order of the seeds, whatever the number of cores."""
    cores = os.cpu_count() or 1
    with multiprocessing.get_context("fork").Pool(cores, begin_worker) as pool:
        yield from pool.imap(run_one, seeds, chunksize=4)


def begin_worker() -> None:
    """Collect garbage seldom, and leave out what was imported; faults are not worth a log line."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    logging.getLogger("weir.slot").setLevel(logging.ERROR)


def _digest(outcomes: list[Outcome]) -> int:
    whole = 0
    for outcome in outcomes:
        whole = zlib.crc32(f"{outcome.seed}:{outcome.digest}".encode(), whole)
    return whole


def _print_coverage(outcomes: list[Outcome], seen: Counter[str]) -> None:
    for name in sorted(seen):
        console.print(f"{seen[name]:>9}  {name}")
    console.print(
        f"median schedule: {statistics.median(o.events for o in outcomes):.0f} events, "
        f"{statistics.median(o.faults for o in outcomes):.0f} faults, "
        f"{statistics.median(o.completed for o in outcomes):.0f} completed checkpoints"
    )


def _print_failure(outcome: Outcome) -> None:
    console.print(outcome.history, markup=False)
    console.print(f"seed {outcome.seed}: {outcome.violation}", markup=False)
    console.print(f"replay: ./dev sim --from {outcome.seed} --seeds 1")
