"""Deaths among overtaken rows, layers of state, local copies and other parallelisms cost nothing.

One run with fixed circumstances goes through many deaths (``extended_crash_matrix``). Its last
driver is drained. Besides the sink's content each run is asked whether it has seen what it is
about: rows that were overtaken, kept and restored, local copies that were read, or were not, and
state that a changelog materialized.
"""

import re
from collections import Counter, deque
from dataclasses import replace
from itertools import islice

import pytest

from extended_crash_matrix import (
    WIDTHS,
    Barriers,
    Change,
    Changelog,
    Recovery,
    all_pairs,
    every_cell,
    runs,
    sample,
)
from faults import Fault, FaultKind, Moment, Step
from job_setting import JobSetting
from local_reads import local_reads
from random_seed import dice, runs_all, show
from real_job import real_job

CELLS = every_cell() if runs_all() else sample(dice("cells in depth"))
RUNS = runs(CELLS, dice("runs in depth"))
SPARES = 2
"""So many drivers are made ready ahead: on two cores two are as soon ready as one."""

MOST_MORE = 20
"""So many deaths more a run may need to see everything that it is about."""

BETWEEN_CHECKPOINTS = re.compile(r"-p\d+-e\d+-a\d+$")
"""How the changelog names what it writes."""

NAMES = [f"{number}: {run.among}" for number, run in enumerate(RUNS)]


def test_the_sample_in_depth_has_every_pair_of_values_in_some_cell():
    """R1: what runs by default leaves out no two circumstances of a death."""
    assert all_pairs(sample(dice("any"))) == all_pairs(every_cell())


@pytest.mark.parametrize("cells", [CELLS, every_cell()], ids=["chosen", "all"])
def test_the_runs_in_depth_have_every_cell_once_and_change_the_parallelism_as_it_says(cells):
    """R1: nothing that was chosen is left out or is anything else than its name."""
    planned = runs(cells, dice("any"))
    assert Counter(cell for run in planned for cell in run.cells) == Counter(cells)
    for run in planned:
        last, width = None, run.width
        for cell, after in run.deaths:
            assert after in WIDTHS
            if cell.is_early:
                assert (last.victim, last.change) == (FaultKind.KILL_DRIVER, cell.change)
            else:
                assert cell.change == change(width, after)
            last, width = cell, after


def change(old, new):
    return Change.SAME if new == old else Change.HIGHER if new > old else Change.LOWER


@pytest.mark.parametrize("run", RUNS, ids=NAMES)
def test_a_death_among_overtaken_rows_layers_and_copies_is_exactly_once(tmp_path, run):
    """R1, R5, A4, A5, A10, C8, C9, S2, S4, S5, S6, S11, S13: and each of those was really there."""
    throw = dice(f"in depth {run}")
    setting = JobSetting(f"file://{tmp_path}/checkpoints", f"file://{tmp_path}/output")
    setting = run.among.around(setting).sized(rows=2_000_000, rate=2_000)
    does_block = throw.choice(("false", "true"))
    setting = replace(
        setting.having(("weir.checkpointing.fileMerging.poolBlocking", does_block)),
        splits=throw.choice((3, 4, 5)),
        keys=throw.choice((50, 500)),
        interval_ms=throw.choice((100, 150, 200)),
        parallelism=run.width,
        is_hesitant=True,
    )
    show(f"{len(run.cells)} cells of {len(CELLS)}, of {len(every_cell())} in all; {setting}")
    with real_job(setting, tmp_path) as job:
        driver = live_through(job, run, throw)
        live_on_until_all_was_there(job, run)
        driver.tell(do="stop", path=f"file://{tmp_path}/drained", drain=True)
        assert driver.until_ended()["ended"] == "stopped"
        verdict = job.verdict_so_far()
        show(verdict)
        assert verdict.is_exactly_once
        assert not list(lacking(job, run))
        assert Recovery.LOCAL in run.among.values or not local_reads(job.orders.directory)


def live_through(job, run, throw):
    """All deaths of a run; the driver that is left."""
    driver = job.start()
    widths = [width for cell, width in run.deaths if cell.victim is FaultKind.KILL_DRIVER]
    spares = (job.prepare(replace(job.setting, parallelism=width)) for width in widths)
    ready = deque(islice(spares, SPARES))
    for number, (cell, width) in enumerate(run.deaths):
        if not cell.is_early:
            job.until_checkpoints()
        fault = cell.fault(number, throw)
        job.inject(fault)
        show(f"{number + 1} of {len(run.deaths)}: {fault}, then {width} slots")
        if cell.victim is FaultKind.KILL_DRIVER:
            driver.until_dead()
            driver = job.start(ready.popleft())
            job.until_in_charge(driver)
            ready.extend(islice(spares, 1))
    return driver


def live_on_until_all_was_there(job, run):
    """As few more deaths of slots as it takes until nothing is lacking.

    A checkpoint may still complete when a slot is dead that has acked it, so of two checkpoints
    one is of the next attempt: the job runs again, and can be drained.
    """
    for number in range(MOST_MORE):
        job.until_checkpoints(2)
        if not list(lacking(job, run)):
            break
        more = len(run.deaths) + number
        job.inject(Fault(more, Step.HEARD, Moment.BEFORE, FaultKind.KILL_SLOT))


def lacking(job, run):
    """What the run is about and has not seen yet."""
    manifests, restorations = job.traces.manifests(), job.traces.restorations()
    overtaken = [m for m in manifests if any(s.in_flight for s in m.snapshots)]
    restored = Counter(str(change(r.old, r.new)) for r in restorations if r.overtaken)
    reads = local_reads(job.orders.directory)
    show(f"{len(overtaken)} of {len(manifests)} checkpoints hold overtaken rows; restored from:")
    show(f"{dict(restored)}; {len(reads)} local copies were read")
    if not restored:
        yield "overtaken rows that were restored"
    if Barriers.TIMED in run.among.values and len(overtaken) == len(manifests):
        yield "barriers that were in time"
    if Recovery.LOCAL in run.among.values and not reads:
        yield "local copies that were read"
    files = {file.path for manifest in manifests for file in manifest.files()}
    logged = [path for path in files if BETWEEN_CHECKPOINTS.search(path)]
    show(f"{len(logged)} files that checkpoints refer to were written between them")
    if Changelog.LOGGED in run.among.values and not logged:
        yield "state that was materialized between checkpoints"
