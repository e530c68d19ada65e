"""Event time goes on in a whole job, however small its splits are and wherever they are read."""

import pytest

from fake_connectors import WORK
from in_process_job import InProcessJob, all_free
from minute_source import DELAY_MS, MINUTE_MS, a_minute_graph, minutes_of
from weir.core.ids import SplitId
from weir.core.policy import Policy
from weir.core.restore_decision import RestoreRequest
from weir.core.snapshots import CheckpointKind
from weir.slot.snapshot_storage import SnapshotStorageSettings

WATERMARK = 7 * MINUTE_MS - DELAY_MS
"""That of eight rows, a minute after each other, from zero."""


@pytest.fixture
def job_of(tmp_path):
    """A job of this width over splits with these minutes."""
    keeping = SnapshotStorageSettings(
        f"file://{tmp_path}", inline_threshold=1 << 20, memory_limit=1 << 20
    )
    jobs = []

    def begin(width, source):
        job = InProcessJob(keeping, lambda width: a_minute_graph(source, width))
        jobs.append(job)
        job.start(Policy(), width, RestoreRequest("job"), all_free(*source.splits))
        return job

    yield begin
    for job in jobs:
        job.close_slots()


def times_of(job):
    """How far each subtask of the processor has come, and how many timers it has fired."""
    gauges = [gauge for slot in job.slots for gauge in slot.mailbox.gauges()]
    work = sorted((g for g in gauges if g.subtask.operator == WORK), key=lambda g: g.subtask)
    return [g.watermark for g in work], sum(g.rows_out for g in work)


@pytest.mark.parametrize("width", [1, 2])
def test_splits_of_one_row_each_move_the_watermark(job_of, width):
    """D4: as in Spark, where it is the latest row less the delay; six timers are behind it."""
    job = job_of(width, minutes_of(*([minute] for minute in range(8))))

    job.until(lambda: times_of(job) == ([WATERMARK] * width, 6))


def test_a_reader_without_a_split_does_not_hold_the_watermark(job_of):
    """D4: it knows that there is nothing to read for it."""
    job = job_of(2, minutes_of(list(range(8))))

    job.until(lambda: times_of(job) == ([WATERMARK] * 2, 6))


def test_the_watermark_is_there_again_after_a_restart(job_of):
    """D4, A10: though all splits were read before, and no row comes that would tell the time."""
    job = job_of(2, minutes_of(*([minute] for minute in range(8))))
    job.until(lambda: times_of(job) == ([WATERMARK] * 2, 6))
    job.answer(job.ask(CheckpointKind.CHECKPOINT))

    job.kill(0)
    job.until(lambda: times_of(job)[0] == [WATERMARK] * 2)
    assert times_of(job)[1] == 0, "timers that had fired do not fire again"


def test_a_split_that_is_found_later_moves_the_watermark_on(job_of):
    """D4: a reader that was idle goes on."""
    source = minutes_of([0], [7])
    job = job_of(2, source)
    job.until(lambda: times_of(job)[0] == [WATERMARK] * 2)

    source.splits[SplitId("2")] = [9]
    job.find(SplitId("2"))

    job.until(lambda: times_of(job)[0] == [9 * MINUTE_MS - DELAY_MS] * 2)
