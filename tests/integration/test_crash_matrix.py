"""Any process may die at any step of a checkpoint: the sink's content is as promised.

One run goes through many deaths, each armed when a checkpoint has completed since the one before,
so its verdict covers them all. It ends with a driver's death, and the last driver reads what is
left as fast as it can.
"""

import itertools
from itertools import combinations

import pytest

from crash_matrix import MODES, every_cell, runs, sample
from faults import FaultKind
from job_setting import EXACTLY_ONCE, JobSetting
from random_seed import dice, runs_all, show
from real_job import real_job

CELLS = every_cell() if runs_all() else sample(dice("cells"))
RUNS = [(mode, run) for mode in MODES for run in runs(CELLS, mode, dice(mode))]
NAMES = [f"{mode}-{number}" for number, (mode, _) in enumerate(RUNS)]


def test_the_sample_has_every_pair_of_values_in_some_cell():
    """R1: what runs by default leaves out no step for any victim and in no mode."""
    assert _pairs(sample(dice("any"))) == _pairs(every_cell())


def _pairs(cells):
    named = [(("step", c.step), (1, c.moment), (2, c.victim), ("mode", c.mode)) for c in cells]
    return set(itertools.chain.from_iterable(combinations(values, 2) for values in named))


def test_the_runs_have_every_cell_once():
    """R1: nothing that was chosen is left out."""
    ran = [cell for _, run in RUNS for cell in run]
    assert len(ran) == len(CELLS)
    assert set(ran) == set(CELLS)


@pytest.mark.parametrize(("mode", "run"), RUNS, ids=NAMES)
def test_a_death_at_any_step_costs_no_row_and_doubles_none(tmp_path, mode, run):
    """R1, R5, C8, C9, C19: exactly once; in the mode at-least-once no row is lost."""
    throw = dice(f"matrix {mode} {run[0]}")
    setting = JobSetting(
        f"file://{tmp_path}/checkpoints", f"file://{tmp_path}/output", mode=mode
    ).varied(throw)
    setting = setting.sized(rows=400_000, rate=4_000)
    faults = [cell.fault(number, throw) for number, cell in enumerate(run)]
    show(f"{len(run)} cells of {len(CELLS)}, of {len(every_cell())} in all; {setting}")
    with real_job(setting, tmp_path) as job:
        driver, spare = job.start(), None
        for number, fault in enumerate(faults):
            spare = spare or job.prepare()
            job.until_checkpoints()
            job.inject(fault)
            if fault.kind is FaultKind.KILL_DRIVER:
                driver.until_dead()
                is_last = number == len(faults) - 1
                driver, spare = job.start(spare, rate=0 if is_last else None), None
        assert driver.until_ended()["ended"] == "finished"
        verdict = job.verdict()
        show(verdict)
        assert verdict.is_exactly_once if mode == EXACTLY_ONCE else verdict.is_at_least_once
