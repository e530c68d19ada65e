"""Regions on real Spark processes: one run, and all that is promised about it.

Starting Spark costs more than looking, so one job suffers both faults.
"""

import json

import polars as pl

import two_regions
from spark_program import run_program
from sum_oracle import committed_frames
from two_regions import READERS, ROWS, FailureLog
from weir.connectors.generator import GeneratorSource
from weir.core.attempt import RecycleSlot
from weir.core.job_master import Launch, step
from weir.driver.trace import replay
from weir.wire.json_codec import from_json

FIRST_REGION = {"rows-0", "files-0", "files-1"}
SECOND_REGION = {"rows-1", "files-2"}


class Run:
    """What is left of the job that has ended."""

    def __init__(self, home):
        self.home = home
        self.failure_log = FailureLog(home)
        (self.trace,) = (home / "traces").iterdir()

    def actions(self, kind):
        """What the driver decided, as the core decides it again from the recorded events."""
        with self.trace.open() as lines:
            job, _ = from_json(json.loads(next(lines)), object).job()
            for line in lines:
                job, actions = step(job, from_json(json.loads(line)["event"], object))
                yield from (action for action in actions if isinstance(action, kind))

    def launches(self):
        """For each attempt the processes of the subtasks that it started."""
        return [
            {str(subtask): process_of(slot) for subtask, slot, _ in launch.placements}
            for launch in self.actions(Launch)
        ]

    def rows(self):
        return pl.concat(committed_frames(f"file://{self.home}/output", {}))


def process_of(slot):
    return int(slot.rpartition(".")[2])


def test_a_failure_takes_down_what_is_connected_to_it_and_nothing_else(tmp_path):
    """R4, R1, R5: user code stumbles once in reader 0, then the slot of reader 1 is killed."""
    run = suffered(tmp_path)

    only_what_is_connected_to_the_failure_is_started_again(run)
    a_process_in_which_user_code_failed_is_not_used_again(run)
    the_reader_of_the_other_region_reads_on_without_a_gap_or_a_step_back(run)
    a_lost_slot_takes_every_region_down_that_it_hosts(run)
    every_row_of_both_regions_is_there_once(run)
    the_driver_decided_as_the_core_does(run)


def suffered(home):
    (home / "traces").mkdir()
    run_program(two_regions.__file__, home, WEIR_TRACE=str(home / "traces"))
    return Run(home)


def only_what_is_connected_to_the_failure_is_started_again(run):
    """Writer 1 is reset in place, in the process where reader 1 goes on."""
    first, second, *_ = run.launches()

    assert set(first) == FIRST_REGION | SECOND_REGION
    assert set(second) == FIRST_REGION
    assert second["files-1"] == first["files-1"] == first["rows-1"]


def a_process_in_which_user_code_failed_is_not_used_again(run):
    """Its state is unknown."""
    (recycled,) = run.actions(RecycleSlot)
    first, *later = run.launches()

    assert process_of(recycled.slot) == first["rows-0"]
    assert all(first["rows-0"] not in launch.values() for launch in later)


def the_reader_of_the_other_region_reads_on_without_a_gap_or_a_step_back(run):
    """It read its split from the first row on, and no other subtask read it."""
    first, second, *_ = run.launches()
    batches = run.failure_log.read_by("before-the-kill", first["rows-1"])
    (split,) = {split for split, _, _ in batches}
    others = [run.failure_log.read_by("before-the-kill", at["rows-0"]) for at in (first, second)]

    assert [begin for _, begin, _ in batches] == [0, *(last + 1 for _, _, last in batches[:-1])]
    assert split not in {other for read in others for other, _, _ in read}
    assert others[1][0][1] <= others[0][-1][2] + 1, "the failed reader repeats from its checkpoint"


def a_lost_slot_takes_every_region_down_that_it_hosts(run):
    """Slot 1 has a reader of one region and a writer of the other."""
    _, second, third = run.launches()

    assert set(third) == FIRST_REGION | SECOND_REGION
    assert third["rows-0"] == second["rows-0"]
    assert third["rows-1"] not in second.values()


def every_row_of_both_regions_is_there_once(run):
    """Whatever was repeated, it was committed once."""
    rows = run.rows()
    shares = GeneratorSource(splits=READERS, total=ROWS)

    assert rows.height == rows.unique(["split", "offset"]).height == ROWS
    for split in range(READERS):
        offsets = rows.filter(pl.col("split") == split)["offset"]
        assert (offsets.min(), offsets.max()) == (0, shares.share(split) - 1)


def the_driver_decided_as_the_core_does(run):
    """Its events, replayed, lead to the same actions."""
    with run.trace.open() as lines:
        assert list(replay(lines)) == []
