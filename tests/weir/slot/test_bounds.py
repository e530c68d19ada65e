"""What a subtask can have in flight is bounded in bytes, however long batches and rows are."""

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_connectors import (
    MORE_0,
    ONE,
    READ_0,
    WORK_0,
    WRITE_0,
    FakeReader,
    FakeSink,
    FakeSource,
    a_chain,
    a_confluence,
)
from stepped_slots import IN_MEMORY, a_barrier, stepped_slots
from weir.core.alignment import Aligner
from weir.core.barriers import AlignmentType
from weir.core.channels import Inbox, is_batch
from weir.core.coordinator.events import SubtaskDeclined
from weir.core.ids import ChannelId, EdgeId
from weir.core.lifecycle import SubtaskRunning
from weir.core.reasons import Reason
from weir.core.scheduler import ProcessBatches, Scheduler
from weir.core.task import Task
from weir.dataflow.physical import SinkHead
from weir.exchange.batch_sizes import BATCH_BYTES, cut, size_of
from weir.slot import snapshot_uploads
from weir.slot.event_time import EventTime
from weir.slot.pipeline import Pipeline
from weir.slot.relay import Stateless
from weir.slot.row_format import ArrowFormat
from weir.slot.snapshot_storage import SnapshotStorageSettings
from weir.slot.snapshot_uploads import (
    MOST_UPLOADS,
    UNSAVED_LIMIT,
    SnapshotUploads,
    UploadMemory,
)
from weir.slot.snapshot_writer import SnapshotWriter
from weir.slot.subtask_deployment import CREDIT
from weir.slot.subtask_runner import OUTPUT_LIMIT, SubtaskRunner
from weir.slot.turn_budget import TURN_BYTES, TurnBudget

CHANNEL_BYTES = CREDIT * BATCH_BYTES
"""At most so much waits at a receiver or is on its way to it."""
OUTPUT_BYTES = OUTPUT_LIMIT * BATCH_BYTES
"""At most so much waits at a sender that emits no more than it takes in."""
HEADERS = 4096
"""Of an Arrow file, whatever it holds."""


@dataclass
class WideReader(FakeReader):
    """Its rows are as long as the source says."""

    def read(self, rows_wanted):
        batch = super().read(rows_wanted)
        if batch is None:
            return None
        padding = pa.array([b"x" * self.source.row_bytes] * batch.num_rows, pa.binary())
        return batch.append_column("padding", padding)


@dataclass
class WideSource(FakeSource):
    """Numbers with a long column beside them."""

    row_bytes: int = 1

    def open(self, split, position):
        self.opened.append((split, position))
        self.readers.append(WideReader(self.splits[split], int(position or 0), self))
        return self.readers[-1]


def begin(job):
    job.host()
    everyone = job.graph.topology.subtasks
    job.until(lambda: all(SubtaskRunning(1, subtask) in job.reports for subtask in everyone))


def gauges_of(job):
    return {gauge.subtask: gauge for slot in job.slots for gauge in slot.mailbox.gauges()}


def is_stuck(job, subtask, sink):
    """It has no room left, and nothing that it sent is still on its way into the sink."""
    before = len(sink.written)
    job.settle()
    return gauges_of(job)[subtask].back_pressured and len(sink.written) == before


@pytest.mark.parametrize(("row_bytes", "at_once"), [(10_000, 1), (10_000, 300), (2 << 20, 1)])
def test_a_receiver_that_does_not_read_is_sent_no_more_than_its_channel_may_hold(
    row_bytes, at_once
):
    """R7: whatever the size of the batches that are read; a row is never cut."""
    source = WideSource(row_bytes=row_bytes, at_once=at_once)
    source.feed(*range(5_000))
    with stepped_slots(a_chain(source, FakeSink()), {READ_0: 0, WORK_0: 0, WRITE_0: 1}) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.settle(0)
        job.settle(0)
        gauges = gauges_of(job)
    longest = max(BATCH_BYTES, row_bytes + 100)
    assert gauges[READ_0].back_pressured
    assert gauges[WORK_0].back_pressured
    emitted = gauges[WORK_0].rows_out * row_bytes
    assert emitted <= (CREDIT + OUTPUT_LIMIT) * longest
    within = (gauges[READ_0].rows_out - gauges[WORK_0].rows_in) * row_bytes
    turn = max(TURN_BYTES, at_once * row_bytes)
    assert within <= (CREDIT + OUTPUT_LIMIT) * longest + turn


@settings(max_examples=20)
@given(st.lists(st.sampled_from([1, 50, 400]), min_size=1, max_size=8), st.sampled_from([15, 70]))
def test_a_receiver_that_is_slow_never_queues_more_than_its_channel_may_hold(lengths, pace):
    """R7: what is left of merged batches counts as one, and is not longer than one."""
    channel = ChannelId(EdgeId("rows"), 0, 0)
    task = Task(WORK_0, Aligner((channel,)), {channel: Inbox(channel)}, {})
    uploads = SnapshotUploads(WORK_0, UploadMemory())
    writer = SnapshotWriter(WORK_0, (1, 1), None, ArrowFormat(), uploads)
    time = EventTime((channel,))
    runner = SubtaskRunner((1, 1), task, Stateless(), Pipeline(()), (), writer, ArrowFormat(), time)
    turns = Scheduler(OUTPUT_LIMIT, batch_limit=32)
    turns.add(task)
    row = b"x" * 9_000
    batches = [
        piece
        for length in lengths
        for piece in cut(pa.record_batch({"n": list(range(length)), "padding": [row] * length}))
    ]
    expected, credit = sum(lengths), CREDIT
    while runner.counts.rows_in < expected:
        while batches and credit:
            task.receive(channel, batches.pop(0), 0)
            credit -= 1
        queued = sum(size_of(e) for e in task.inboxes[channel].queue if is_batch(e))
        assert queued <= CHANNEL_BYTES
        turn = turns.next()
        assert isinstance(turn, ProcessBatches)
        runner.budget = TurnBudget(rows=pace)
        effects, rest = runner.process(turn)
        effects += runner.obey(turns.processed(turn, rest))
        credit += sum(effect.batches for effect in effects)


@dataclass
class CountingReader(FakeReader):
    """Remembers how many rows it gave at once."""

    def read(self, rows_wanted):
        batch = super().read(rows_wanted)
        if batch is not None:
            self.source.lengths.append(batch.num_rows)
        return batch


@dataclass
class CountingSource(FakeSource):
    """Knows how long the batches were that were read from it."""

    lengths: list[int] = field(default_factory=list)

    def open(self, split, position):
        self.readers.append(CountingReader(self.splits[split], int(position or 0), self))
        return self.readers[-1]


class FixedTurns(TurnBudget):
    """Of as many rows as at first."""

    def record(self, rows, seconds, size=0):
        del rows, seconds, size


def test_a_quick_source_in_front_of_a_slow_operator_reads_in_the_operators_turns():
    """R7: what waits before a barrier is a few turns of the slowest receiver, not all credit."""
    source, sink = CountingSource(), FakeSink()
    source.feed(*range(20_000))
    turns = {READ_0: 400, WORK_0: 300, WRITE_0: 40}
    with stepped_slots(a_chain(source, sink), {READ_0: 0, WORK_0: 0, WRITE_0: 1}) as job:
        begin(job)
        for slot in job.slots:
            for runner in slot.mailbox._runners.values():  # noqa: SLF001 - only a clock slows it
                runner.budget = FixedTurns(rows=turns[runner.subtask])
        job.assign(READ_0, ONE)
        job.until(lambda: len(sink.written) == 20_000)

    assert sink.written == list(range(20_000))
    assert source.lengths[0] == 400
    assert source.lengths[-2] == 40, "the operator in between asks for as few"


def test_what_a_barrier_overtakes_is_bounded_however_late_the_other_barriers_are(tmp_path):
    """A4, R7: a channel that is recorded gets no new credit until its barrier, which needs none."""
    source, more = FakeSource(), WideSource(row_bytes=10_000, at_once=50)
    more.feed(*range(3_000))
    sink = FakeSink()
    files = SnapshotStorageSettings(f"file://{tmp_path}", inline_threshold=0, memory_limit=0)
    graph = a_confluence(source, more, SinkHead(sink))
    with stepped_slots(graph, {READ_0: 0, MORE_0: 0, WRITE_0: 1}, storage=files) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.assign(MORE_0, ONE)
        job.until(lambda: sink.written)
        place = f"file://{tmp_path}/chk-1"
        barrier = a_barrier(1, alignment=AlignmentType.UNALIGNED, location=place)
        job.send(READ_0, barrier)
        job.until(lambda: sink.sealed)  # the first barrier is in; no credit is granted any more
        before = len(sink.written)
        job.until(lambda: len(sink.written) > before)
        job.until(lambda: is_stuck(job, MORE_0, sink))
        assert len(sink.written) < 3_000
        job.send(MORE_0, barrier)
        job.until(lambda: job.is_acked(1))
        job.until(lambda: len(sink.written) == 3_000)
        write, read = job.acks(1)[WRITE_0], job.acks(1)[MORE_0]
    assert 0 < write.snapshot.in_flight_bytes <= CHANNEL_BYTES + HEADERS
    assert read.snapshot.in_flight_bytes <= OUTPUT_BYTES + TURN_BYTES
    assert write.timings.processed_bytes > 0
    assert sink.written == list(range(3_000))


def test_a_slot_that_holds_too_much_of_older_checkpoints_declines_the_next_and_says_why(
    monkeypatch,
):
    """R7: slow storage causes a decline that names the budget; when it has caught up, none."""
    monkeypatch.setattr(snapshot_uploads, "UNSAVED_LIMIT", 10)
    source = FakeSource()
    source.feed(*range(10))
    with stepped_slots(a_chain(source, FakeSink()), storage=IN_MEMORY) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.settle()
        job.send(READ_0, a_barrier(1))
        job.until(lambda: job.is_acked(1))
        job.slots[0].uploading.is_held = True
        job.send(READ_0, a_barrier(2))
        job.settle()
        job.abort(2)
        job.send(READ_0, a_barrier(3))
        job.until(lambda: job.reported(SubtaskDeclined))
        job.settle()
        declined = job.reported(SubtaskDeclined)
        job.slots[0].uploading.release()
        job.send(READ_0, a_barrier(4))
        job.until(lambda: job.is_acked(4))
    assert {said.subtask for said in declined} == {READ_0, WORK_0, WRITE_0}
    assert {said.reason for said in declined} == {Reason.CHECKPOINT_DECLINED}
    assert all("above its budget of 10" in said.cause for said in declined)


def test_the_document_states_the_bounds_that_hold():
    """R7, U3: a reader can rely on the figures."""
    document = (Path(__file__).parents[3] / "docs" / "checkpoints.md").read_text()

    assert f"| a batch on a channel | {BATCH_BYTES >> 20} MiB |" in document
    assert f"transit to it, for each channel | {CHANNEL_BYTES >> 20} MiB | a sender" in document
    assert f"has credit for {CREDIT} batches" in document
    assert f"for each channel | {OUTPUT_BYTES >> 20} MiB, and the output" in document
    assert f"while {OUTPUT_LIMIT} batches are queued; a call takes at most one batch" in document
    assert f"a reader about {TURN_BYTES >> 20} MiB" in document
    assert f"a subtask has {MOST_UPLOADS} uploads in progress" in document
    assert f"the slot holds more than {UNSAVED_LIMIT >> 30} GiB of earlier checkpoints" in document
