"""One subtask in its slot: time that waits for all inputs, timers that can be interrupted, ends."""

from collections import deque

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_connectors import NUMBERS, WORK_0, FakeSink, FakeSource, a_chain, numbers_of, rows
from stepped_slots import a_barrier
from weir.core.alignment import Aligner
from weir.core.attempt import FailureCause
from weir.core.barriers import EndOfData, Idle, Watermark
from weir.core.channels import Inbox, Outbox, is_batch
from weir.core.coordinator.events import (
    EndOfDataReached,
    Phase,
    SubtaskDeclined,
    SubtaskProgressed,
    Timings,
)
from weir.core.ids import ChannelId, CheckpointId, EdgeId, Millis
from weir.core.reasons import Reason
from weir.core.scheduler import ProcessBatches
from weir.core.snapshots import SubtaskSnapshot
from weir.core.task import Drain, Task, Transmit
from weir.exchange.batch_sizes import BATCH_BYTES
from weir.exchange.routing import Router
from weir.slot.buffer_timeout import LONGEST_SECONDS, TIMEOUT_SECONDS
from weir.slot.effects import DiscardUpload, FailSubtask, Report, StartUpload
from weir.slot.event_time import FOREVER, EventTime
from weir.slot.pipeline import Pipeline
from weir.slot.relay import Stateless
from weir.slot.row_format import SMALL_ROWS, ArrowFormat
from weir.slot.snapshot_uploads import (
    SnapshotUploaded,
    SnapshotUploads,
    UploadFailed,
    UploadMemory,
)
from weir.slot.snapshot_writer import SnapshotWriter
from weir.slot.subtask_runner import OUTPUT_LIMIT, SubtaskRunner
from weir.wire.control_messages import CheckpointAborted

TOPOLOGY = a_chain(FakeSource(), FakeSink()).topology
A, B, C = (ChannelId(EdgeId("rows"), sender, 0) for sender in (0, 1, 2))
OUT = ChannelId(EdgeId("done"), 0, 0)
PLENTY = 1_000


class Alarms(Stateless):
    """An operator with timers by event time: firing one emits its time."""

    def __init__(self, *times):
        self._waiting = deque(sorted(times))
        self._now = None
        self.buffered = []

    def process(self, _, batch):
        self.buffered.append(batch)
        return ()

    def flush(self):
        buffered, self.buffered = self.buffered, []
        return buffered

    def advance(self, watermark):
        self._now = watermark

    def is_due(self):
        return self._now is not None and bool(self._waiting) and self._waiting[0] <= self._now

    def fire(self):
        yield rows(self._waiting.popleft())

    def finish(self):
        return (*self.flush(), rows(-1))


class NeverDone(Alarms):
    """Firing a timer sets the next, due at once, until the test stops it."""

    stopped = False

    def is_due(self):
        return not self.stopped

    def fire(self):
        return ()


def a_runner(operator, *channels):
    task = Task(
        WORK_0,
        Aligner(channels),
        {channel: Inbox(channel) for channel in channels},
        {OUT: Outbox(OUT, PLENTY)},
    )
    router = Router(TOPOLOGY, TOPOLOGY.edge_by_id[EdgeId("done")], 0)
    time = EventTime(channels)
    uploads = SnapshotUploads(WORK_0, UploadMemory())
    writer = SnapshotWriter(WORK_0, (1, 1), None, ArrowFormat(), uploads)
    return SubtaskRunner(
        (1, 1), task, operator, Pipeline(()), (router,), writer, ArrowFormat(), time
    )


def sent(effects):
    """The elements that leave the subtask, in order."""
    transmits = [effect for effect in effects if isinstance(effect, Transmit)]
    assert {transmit.channel for transmit in transmits} <= {OUT}
    return [transmit.element for transmit in transmits]


def elements(effects):
    """Batches as lists of numbers, markers as they are."""
    return [numbers_of([e]) if is_batch(e) else e for e in sent(effects)]


# Time


def test_time_goes_on_downstream_when_the_last_input_has_come_that_far():
    """D4."""
    runner = a_runner(Alarms(), A, B)
    assert runner.advance(A, Watermark(Millis(10))) == []
    assert runner.advance(B, Watermark(Millis(7))) == [Transmit(OUT, Watermark(Millis(7)))]


def test_a_subtask_is_idle_where_all_its_inputs_are():
    """D4: behind the time that the latest of them had reached."""
    runner = a_runner(Alarms(3), A, B)
    assert runner.advance(A, Watermark(Millis(10))) == []
    assert runner.advance(A, Idle()) == []
    assert elements(runner.advance(B, Idle())) == [[3], Watermark(10), Idle()]


def test_a_subtask_goes_on_with_the_first_of_its_inputs():
    """D4: and says so, though time stays where it is."""
    runner = a_runner(Alarms(), A, B)
    for channel in (A, B):
        runner.advance(channel, Watermark(Millis(10)))
        runner.advance(channel, Idle())
    assert elements(runner.advance(A, Watermark(Millis(10)))) == [Watermark(10)]
    assert elements(runner.advance(A, Idle())) == [Idle()]


def test_timers_fire_before_the_watermark_that_made_them_due():
    """D4: no row behind a watermark is older."""
    runner = a_runner(Alarms(3, 9), A)
    assert elements(runner.advance(A, Watermark(Millis(5)))) == [[3], Watermark(5)]


def test_what_is_buffered_goes_before_the_watermark():
    """D4, A1."""
    runner = a_runner(Alarms(), A)
    assert runner.process(ProcessBatches(WORK_0, A, [rows(1)])) == ([], [])
    assert elements(runner.advance(A, Watermark(Millis(5)))) == [[1], Watermark(5)]


def test_buffered_rows_leave_after_a_timeout_though_more_input_waits():
    """R9: a source that always has a few more rows does not hold them back."""
    now = 5.0
    runner = a_runner(Alarms(), A)
    runner.timer = lambda: now
    runner.is_ready = True
    runner.process(ProcessBatches(WORK_0, A, [rows(1)]))
    runner.task.inboxes[A].queue.append(rows(2))
    assert not runner.must_flush
    now += 2 * TIMEOUT_SECONDS
    assert runner.must_flush
    assert elements(runner.flush()) == [[1]]
    assert not runner.must_flush


def test_buffered_rows_wait_while_an_output_has_no_room():
    """R9, R7."""
    now = 5.0
    runner = a_runner(Alarms(), A)
    runner.timer = lambda: now
    runner.is_ready = True
    runner.process(ProcessBatches(WORK_0, A, [rows(1)]))
    now += 2 * LONGEST_SECONDS
    for _ in range(OUTPUT_LIMIT):
        runner.task.outboxes[OUT].put(rows(0))
    assert not runner.must_flush


def test_an_equal_watermark_is_emitted_once():
    """D4."""
    runner = a_runner(Alarms(), A)
    assert elements(runner.advance(A, Watermark(Millis(5)))) == [Watermark(5)]
    assert runner.advance(A, Watermark(Millis(5))) == []


def test_firing_timers_is_interrupted_after_a_turn_and_goes_on_later():
    """A11: timers and window firings are interruptible; the marker comes again."""
    runner = a_runner(NeverDone(), A)
    assert runner.advance(A, Watermark(Millis(5))) == []
    assert list(runner.task.inboxes[A].queue) == [Watermark(Millis(5))]
    runner.operator.stopped = True
    again = runner.task.inboxes[A].queue.popleft()
    assert elements(runner.advance(A, again)) == [Watermark(5)]
    assert not runner.task.inboxes[A].queue


# Ends


def test_the_end_of_the_data_fires_every_timer_and_finishes_the_operator():
    """C11, C14: watermark to the maximum, timers fire, then the end."""
    runner = a_runner(Alarms(3, 9), A)
    effects = runner.advance(A, EndOfData())
    assert elements(effects) == [[3], [9], [-1], EndOfData()]
    assert effects[-1] == Report(EndOfDataReached(1, WORK_0))


def test_the_data_ends_when_the_last_input_has_ended():
    """C14."""
    runner = a_runner(Alarms(), A, B)
    runner.advance(A, EndOfData())
    assert not runner.task.at_end
    runner.advance(B, EndOfData())
    assert runner.task.at_end


def test_the_end_of_the_data_comes_once():
    """C11: a draining savepoint may find the data at its end already."""
    runner = a_runner(Alarms(), A)
    assert elements(runner.obey([Drain()])) == [[-1], EndOfData()]
    assert runner.obey([Drain()]) == []


def test_an_input_that_ended_is_kept_as_that_in_the_snapshot():
    """A10, C14."""
    runner = a_runner(Alarms(), A)
    runner.advance(A, EndOfData())
    assert runner.time.by_edge() == ((EdgeId("rows"), FOREVER),)


# Scheduler


def test_a_turn_takes_as_many_rows_as_its_budget_allows_and_gives_the_rest_back():
    """A11."""
    runner = a_runner(Stateless(), A)
    runner.budget.rows = 3
    effects, rest = runner.process(ProcessBatches(WORK_0, A, [rows(1, 2), rows(3, 4), rows(5)]))
    assert elements(effects) == [[1, 2, 3]]
    assert numbers_of(rest) == [4, 5]
    assert (runner.counts.rows_in, runner.counts.rows_out) == (3, 3)


@given(st.lists(st.lists(st.integers(), min_size=1, max_size=9), min_size=1), st.integers(1, 20))
def test_turns_together_process_every_row_once_and_in_order(lists, pace):
    """A11, A1: however batches are merged and cut."""
    runner = a_runner(Stateless(), A)
    waiting = [rows(*(abs(n) % 1000 for n in numbers)) for numbers in lists]
    everything, left = numbers_of(waiting), []
    while waiting:
        runner.budget.rows = pace
        effects, waiting = runner.process(ProcessBatches(WORK_0, A, waiting))
        left += sent(effects)
    assert numbers_of(left) == everything


def test_a_turn_ends_early_when_its_output_has_no_room_left():
    """R7: what it did not get to waits at the input, where credit bounds it."""
    runner = a_runner(Stateless(), A)
    runner.task.outboxes[OUT].credit = 0
    long = pa.record_batch({"n": [0], "text": ["x" * BATCH_BYTES]})
    effects, rest = runner.process(ProcessBatches(WORK_0, A, [long] * 9))
    assert effects == []
    assert runner.task.outboxes[OUT].batches == OUTPUT_LIMIT
    assert len(rest) == 9 - OUTPUT_LIMIT


def test_timers_wait_while_the_output_has_no_room():
    """R7, A11: the watermark comes again when there is."""
    runner = a_runner(Alarms(1, 2, 3), A)
    runner.task.outboxes[OUT].credit = 0
    assert runner.advance(A, Watermark(Millis(10))) == []
    assert runner.task.outboxes[OUT].batches == OUTPUT_LIMIT
    effects = runner.credited(OUT, PLENTY)
    effects += runner.advance(A, runner.task.inboxes[A].queue.popleft())
    assert elements(effects) == [[1], [2], [3], Watermark(Millis(10))]
    assert not runner.task.inboxes[A].queue


def test_small_batches_are_merged_and_large_ones_are_left_alone():
    """D3: each batch costs as much as a few hundred rows do."""
    large = rows(*range(SMALL_ROWS))
    long = pa.record_batch({"n": [0], "text": ["x" * BATCH_BYTES]})
    assert [batch.num_rows for batch in ArrowFormat().merge([rows(1), rows(2, 3)])] == [3]
    assert [batch.num_rows for batch in ArrowFormat().merge([rows(1), large])] == [1, SMALL_ROWS]
    assert [batch.num_rows for batch in ArrowFormat().merge([long, long])] == [1, 1]


def test_a_batch_on_its_own_is_not_copied():
    """D3."""
    (only,) = ArrowFormat().merge([batch := rows(1)])
    assert only is batch


def test_whatever_is_processed_is_a_batch():
    """A marker that got here would be lost."""
    with pytest.raises(AssertionError, match="only a batch"):
        ArrowFormat().merge([pa.record_batch([[]], schema=NUMBERS), EndOfData()])


# Effects


class FailsAtTwo(Stateless):
    """Emits the first batch, and raises at the second."""

    def process(self, _, batch):
        yield batch
        raise ZeroDivisionError("the second row")


def test_the_effects_of_a_barrier_come_in_the_order_of_its_steps():
    """A9: what is buffered, the barrier, the capture's upload, then the report of it."""
    runner = a_runner(Alarms(), A)
    runner.process(ProcessBatches(WORK_0, A, [rows(1)]))
    barrier = a_barrier(7)
    buffered, broadcast, upload, progress = runner.reach(A, barrier, Millis(0))
    assert numbers_of([buffered.element]) == [1]
    assert broadcast == Transmit(OUT, barrier)
    assert isinstance(upload, StartUpload)
    assert upload.snapshot == SubtaskSnapshot(WORK_0, watermarks=runner.time.by_edge())
    assert progress == Report(SubtaskProgressed(1, 7, WORK_0, Phase.UPLOADING))


def test_a_subtask_that_waits_for_other_inputs_reports_that_it_aligns():
    """C10: once for each checkpoint, so that an expired one does not blame a missing barrier."""
    runner = a_runner(Alarms(), A, B, C)
    aligning = Report(SubtaskProgressed(1, 7, WORK_0, Phase.ALIGNING))
    assert runner.reach(A, a_barrier(7), Millis(0)) == [aligning]
    assert aligning not in runner.reach(B, a_barrier(7), Millis(0))
    *_, progress = runner.reach(C, a_barrier(7), Millis(0))
    assert progress == Report(SubtaskProgressed(1, 7, WORK_0, Phase.UPLOADING))


def test_a_failure_is_the_last_effect_of_its_turn():
    """R4: rows that were emitted before it still leave."""
    runner = a_runner(FailsAtTwo(), A)
    (emitted, failure), rest = runner.process(ProcessBatches(WORK_0, A, [rows(1)]))
    assert numbers_of([emitted.element]) == [1]
    assert isinstance(failure, FailSubtask)
    assert failure.cause is FailureCause.USER_CODE
    assert failure.error == "ZeroDivisionError"
    assert rest == []


def test_an_upload_that_failed_declines_its_checkpoint_with_the_cause():
    """C18: the result of an upload is mail like any other."""
    runner = a_runner(Alarms(), A)
    runner.reach(A, a_barrier(7), Millis(0))
    reason = Reason.CHECKPOINT_ASYNC_EXCEPTION
    effects = runner.read_mail(UploadFailed(CheckpointId(7), reason, "the disk is full"), Millis(0))
    assert effects == [Report(SubtaskDeclined(1, 7, WORK_0, reason, "the disk is full"))]


def test_the_files_of_an_upload_that_ended_too_late_are_discarded():
    """C9: its checkpoint was aborted meanwhile."""
    runner = a_runner(Alarms(), A)
    *_, start, _ = runner.reach(A, a_barrier(7), Millis(0))
    start.upload.is_busy = False
    discard = DiscardUpload(start.upload)
    assert runner.read_mail(CheckpointAborted(CheckpointId(7)), Millis(0)) == [discard]
    uploaded = SnapshotUploaded(CheckpointId(7), start.snapshot, Timings())
    assert runner.read_mail(uploaded, Millis(0)) == []


def test_mail_that_no_subtask_can_read_is_an_error():
    """A message that is dropped silently would leave its sender waiting."""
    with pytest.raises(AssertionError, match="cannot read"):
        a_runner(Alarms(), A).read_mail("a letter", Millis(0))
