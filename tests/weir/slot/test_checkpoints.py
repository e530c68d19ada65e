"""Barriers through real slots: what belongs to a checkpoint, what overtakes, what is restored."""

from dataclasses import replace

import pyarrow as pa
import pytest

from fake_connectors import (
    MORE_0,
    NUMBERS,
    ONE,
    READ_0,
    TWO,
    WORK_0,
    WRITE_0,
    FailsAt,
    FakeSink,
    FakeSource,
    Tenfold,
    a_chain,
    a_confluence,
)
from stepped_slots import FIRST, SECOND, a_barrier, stepped_slots
from weir.core.barriers import AlignmentType
from weir.core.coordinator.events import EndOfDataReached, SubtaskDeclined
from weir.core.lifecycle import SubtaskFinished, SubtaskRunning
from weir.core.policy import Mode
from weir.core.reasons import Reason
from weir.core.snapshots import CheckpointKind, Side
from weir.dataflow.physical import Aggregate, AggregateHead, SinkHead
from weir.slot.snapshot_storage import SnapshotStorageSettings
from weir.slot.subtask_deployment import AlignmentSettings
from weir.wire.control_messages import SubtaskFailure

APART = {READ_0: 0, WORK_0: 1, WRITE_0: 1}
SOURCES_APART = {READ_0: 0, MORE_0: 0, WRITE_0: 1}
UNALIGNED = AlignmentType.UNALIGNED
ALL_AT_ONCE = AlignmentSettings(Mode.AT_LEAST_ONCE, declines_after_end=False)


@pytest.fixture
def source():
    return FakeSource()


@pytest.fixture
def more():
    return FakeSource()


@pytest.fixture
def sink():
    return FakeSink()


@pytest.fixture
def files(tmp_path):
    return SnapshotStorageSettings(f"file://{tmp_path}", inline_threshold=0, memory_limit=0)


def begin(job, attempt=FIRST, restored=None):
    job.host(attempt, restored)
    everyone = job.graph.topology.subtasks
    job.until(lambda: all(SubtaskRunning(attempt, subtask) in job.reports for subtask in everyone))


def rows_into(job, subtask):
    gauges = {gauge.subtask: gauge for gauge in job.slots[0].mailbox.gauges()}
    return gauges[subtask].rows_in


def in_flight(job, checkpoint, side):
    return [
        handle
        for ack in job.acks(checkpoint).values()
        for handle in ack.snapshot.in_flight
        if handle.side is side
    ]


# What belongs to a checkpoint


def test_a_checkpoint_holds_the_rows_before_the_barrier_and_none_behind_it(source, sink):
    """C1, A1."""
    source.feed(1, 2, 3)
    with stepped_slots(a_chain(source, sink)) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.until(lambda: len(sink.written) == 3)
        job.send(READ_0, a_barrier(1))
        source.feed(4, 5)
        job.until(lambda: job.is_acked(1) and len(sink.written) == 5)
        (transaction,) = job.acks(1)[WRITE_0].snapshot.transactions
    assert sink.sealed[transaction.name] == [1, 2, 3]


def test_a_restored_job_reads_on_behind_the_barrier(source, sink):
    """C1, R5: positions and transactions of one checkpoint fit together."""
    source.feed(1, 2, 3)
    with stepped_slots(a_chain(source, sink)) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.until(lambda: len(sink.written) == 3)
        job.send(READ_0, a_barrier(1))
        job.until(lambda: job.is_acked(1))
        source.feed(4, 5)
        job.until(lambda: len(sink.written) == 5)
        begin(job, SECOND, job.manifest(1))
        job.until(lambda: len(sink.written) == 7)
    assert sink.written[5:] == [4, 5]
    assert source.opened == [(ONE, ""), (ONE, "3")]


def test_a_channel_that_delivered_its_barrier_is_not_read_until_the_others_have(source, more, sink):
    """A2."""
    with stepped_slots(a_confluence(source, more, SinkHead(sink))) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.assign(MORE_0, ONE)
        job.send(READ_0, a_barrier(1))
        job.until(lambda: READ_0 in job.acks(1))
        source.feed(1)
        more.feed(100)
        job.until(lambda: sink.written)
        job.settle()
        assert sink.written == [100]
        job.send(MORE_0, a_barrier(1))
        job.until(lambda: job.is_acked(1) and len(sink.written) == 2)
        (transaction,) = job.acks(1)[WRITE_0].snapshot.transactions
    assert sink.sealed[transaction.name] == [100]
    assert sink.written == [100, 1]


def test_at_least_once_blocks_no_channel(source, more, sink):
    """A3: the snapshot waits for the last barrier, and takes along what came meanwhile."""
    with stepped_slots(a_confluence(source, more, SinkHead(sink)), alignment=ALL_AT_ONCE) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.assign(MORE_0, ONE)
        job.send(READ_0, a_barrier(1, alignment=AlignmentType.AT_LEAST_ONCE))
        job.until(lambda: READ_0 in job.acks(1))
        source.feed(1)
        job.until(lambda: sink.written == [1])
        assert WRITE_0 not in job.acks(1)
        job.send(MORE_0, a_barrier(1, alignment=AlignmentType.AT_LEAST_ONCE))
        job.until(lambda: job.is_acked(1))
        (transaction,) = job.acks(1)[WRITE_0].snapshot.transactions
    assert sink.sealed[transaction.name] == [1]


def test_a_users_generator_is_drained_before_the_barrier(source, sink):
    """A12: no row is ever only inside a generator."""
    source.feed(1, 2, 3)
    with stepped_slots(a_chain(source, sink, Tenfold())) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.until(lambda: source.readers and source.readers[0].at == 3)
        job.send(READ_0, a_barrier(1))
        job.until(lambda: job.is_acked(1))
        (transaction,) = job.acks(1)[WRITE_0].snapshot.transactions
    assert sink.sealed[transaction.name] == [10, 20, 30]


def test_an_aborted_checkpoint_releases_the_subtasks_that_wait_for_it(source, more, sink):
    """A7, C9."""
    with stepped_slots(a_confluence(source, more, SinkHead(sink))) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.assign(MORE_0, ONE)
        job.send(READ_0, a_barrier(1))
        job.until(lambda: READ_0 in job.acks(1))
        source.feed(1)
        job.settle()
        assert sink.written == []
        job.abort(1)
        job.until(lambda: sink.written == [1])


# Control goes first


def test_a_turn_is_cut_and_the_rest_is_processed_later(source, sink):
    """A11: a long batch is not one turn, and none of its rows is lost."""
    source.at_once = 10_000_000
    source.feed(*range(20_000))
    with stepped_slots(a_chain(source, sink)) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.until(lambda: sink.written)
        assert len(sink.written) < 20_000
        job.until(lambda: len(sink.written) == 20_000)
    assert sink.written == list(range(20_000))


def test_a_barrier_needs_no_room(source, sink):
    """A11: the source is stuck behind a receiver that does not read, and its trigger is not."""
    source.at_once = 1
    source.feed(*range(100))
    with stepped_slots(a_chain(source, sink), APART) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.settle(0)
        job.send(READ_0, a_barrier(1))
        job.until(lambda: READ_0 in job.acks(1), 0)
        job.until(lambda: job.is_acked(1) and len(sink.written) == 100)
        (transaction,) = job.acks(1)[WRITE_0].snapshot.transactions
    before = len(sink.sealed[transaction.name])
    assert sink.sealed[transaction.name] == list(range(before))


# Overtaking


def test_an_unaligned_barrier_overtakes_and_what_it_overtook_is_in_the_checkpoint(
    source, more, sink, files
):
    """A4, A10: every row is in the sink's transaction, in flight, or behind the position."""
    source.at_once = more.at_once = 1
    source.feed(*range(100))
    more.feed(*range(1000, 1100))
    with stepped_slots(
        a_confluence(source, more, SinkHead(sink)), SOURCES_APART, storage=files
    ) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.assign(MORE_0, ONE)
        job.settle(0)
        place = f"{files.storage}/chk-1"
        for subtask in (READ_0, MORE_0):
            job.send(subtask, a_barrier(1, alignment=UNALIGNED, location=place))
        job.settle(0)
        job.until(lambda: job.is_acked(1))
        assert in_flight(job, 1, Side.OUTPUT)
        sealed = sum(len(sink.sealed[t.name]) for t in job.acks(1)[WRITE_0].snapshot.transactions)
        before = len(sink.written)
        begin(job, SECOND, job.manifest(1))
        job.until(lambda: len(sink.written) == before + 200 - sealed)
        job.settle()
    assert sorted(sink.written[before:]) == sorted(
        {*range(100), *range(1000, 1100)} - set(sink.written[:sealed])
    )


def test_a_savepoint_completing_beside_a_checkpoint_takes_nothing_from_it(source, sink, files):
    """A6, C9: the older checkpoint goes on, and what it had overtaken still goes up."""
    source.at_once = 1
    source.feed(*range(50))
    with stepped_slots(a_chain(source, sink), APART, storage=files) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.settle(0)
        place = f"{files.storage}/chk-1"
        job.slots[0].uploading.is_held = True
        job.send(READ_0, a_barrier(1, alignment=UNALIGNED, location=place))
        job.settle(0)
        savepoint = a_barrier(2, CheckpointKind.SAVEPOINT)
        job.complete(savepoint)
        job.settle(0)
        job.slots[0].uploading.release()
        job.until(lambda: READ_0 in job.acks(1))
        assert job.reported(SubtaskFailure) == []
    assert in_flight(job, 1, Side.OUTPUT)


# Failures


def test_a_failure_of_the_synchronous_part_declines_and_fails_the_subtask(source, sink):
    """C9: a subtask whose capture failed is in no known state."""
    source.forgets = OSError("the position is unknown")
    with stepped_slots(a_chain(source, sink)) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.send(READ_0, a_barrier(1))
        job.until(lambda: job.reported(SubtaskFailure))
        (declined,), (failed,) = job.reported(SubtaskDeclined), job.reported(SubtaskFailure)
    assert declined.reason is Reason.TASK_CHECKPOINT_FAILURE
    assert "its synchronous part failed: OSError: the position is unknown" in failed.reason


def test_a_failure_of_the_asynchronous_part_declines_with_its_cause_and_the_job_goes_on(
    source, sink
):
    """C9, C10, C18: the driver hears why, and the next checkpoint holds what this one sealed."""
    source.feed(1)
    sink.loses = True
    with stepped_slots(a_chain(source, sink)) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.until(lambda: sink.written == [1])
        job.send(READ_0, a_barrier(1))
        job.until(lambda: job.reported(SubtaskDeclined))
        (declined,) = job.reported(SubtaskDeclined)
        assert declined.subtask == WRITE_0
        assert declined.cause.startswith("OSError: the disk is full")
        assert declined.reason is Reason.CHECKPOINT_ASYNC_EXCEPTION
        sink.loses = False
        source.feed(2)
        job.until(lambda: sink.written == [1, 2])
        job.send(READ_0, a_barrier(2))
        job.until(lambda: job.is_acked(2))
        names = [t.name for t in job.acks(2)[WRITE_0].snapshot.transactions]
    assert [sink.sealed[name] for name in names] == [[1], [2]]


def test_a_reset_subtask_leaves_no_file_of_an_upload_that_was_not_acked(
    source, sink, files, tmp_path
):
    """C9, S4: no other part knows of these files."""
    with stepped_slots(a_chain(source, sink), storage=files) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.settle()
        job.slots[0].uploading.is_held = True
        job.send(READ_0, a_barrier(1, location=f"{files.storage}/chk-1"))
        job.settle()
        job.reset(READ_0, WORK_0, WRITE_0)
        job.settle()
        job.slots[0].uploading.release()
        job.settle()
        assert job.acks(1) == {}
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_user_code_that_fails_when_the_clock_makes_a_barrier_overtake_fails_its_subtask(
    source, more
):
    """A5, R4: what is flushed before the barrier goes through the user's functions too."""
    counts = pa.schema([*NUMBERS, ("rows", pa.int64())])
    head = AggregateHead(("n",), (Aggregate("count", "", "rows"),), NUMBERS, counts)
    impatient = replace(a_barrier(1), aligned_timeout_ms=100_000)
    with stepped_slots(a_confluence(source, more, head, FailsAt(2))) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.assign(MORE_0, ONE)
        job.settle()
        job.send(READ_0, impatient)
        job.until(lambda: READ_0 in job.acks(1))
        more.feed(2)
        job.until(lambda: rows_into(job, WRITE_0))
        job.now += 100_000
        job.until(lambda: job.reported(SubtaskFailure))
        (failed,) = job.reported(SubtaskFailure)
    assert failed.subtask == WRITE_0


# Ends


def test_a_bounded_source_ends_and_everyone_leaves_after_the_last_checkpoint(source, sink):
    """C14, R6: the last transaction is covered before anybody goes."""
    source.is_bounded = True
    source.feed(1, 2)
    with stepped_slots(a_chain(source, sink)) as job:
        begin(job)
        job.assign(READ_0, ONE, last=True)
        job.until(lambda: len(job.reported(EndOfDataReached)) == 3)
        assert sink.written == [1, 2]
        job.send(READ_0, a_barrier(1))
        job.until(lambda: job.is_acked(1))
        assert all(ack.snapshot.reached_end for ack in job.acks(1).values())
        assert job.reported(SubtaskFinished) == []
        job.complete(a_barrier(1), leaving=True)
        job.until(lambda: len(job.reported(SubtaskFinished)) == 3)
    assert sink.writers[0].closed


def test_a_subtask_that_had_finished_says_so_again_and_leaves(source, sink):
    """C14: restored as finished, it contributes nothing and delays no other subtask."""
    source.is_bounded = True
    source.feed(1)
    with stepped_slots(a_chain(source, sink)) as job:
        begin(job)
        job.assign(READ_0, ONE, last=True)
        job.until(lambda: len(job.reported(EndOfDataReached)) == 3)
        job.send(READ_0, a_barrier(1))
        job.until(lambda: job.is_acked(1))
        manifest = job.manifest(1)
        everyone = job.graph.topology.subtasks
        begin(job, SECOND, replace(manifest, finished=everyone, snapshots=()))
        job.until(
            lambda: len([f for f in job.reported(SubtaskFinished) if f.attempt == SECOND]) == 3
        )
    assert sink.written == [1]


def test_a_draining_savepoint_ends_the_data_before_its_barrier(source, sink):
    """C11: what was read is written, the end of the data is reached, then comes the snapshot."""
    source.feed(1, 2)
    drain = a_barrier(1, CheckpointKind.SAVEPOINT_TERMINATE)
    with stepped_slots(a_chain(source, sink)) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.until(lambda: len(sink.written) == 2)
        job.send(READ_0, drain)
        job.until(lambda: job.is_acked(1))
        assert all(ack.snapshot.reached_end for ack in job.acks(1).values())
        job.complete(drain, leaving=True)
        job.until(lambda: len(job.reported(SubtaskFinished)) == 3)


def test_no_row_leaves_a_source_behind_a_savepoint_that_stops_the_job(source, sink):
    """C11."""
    source.feed(1)
    stop = a_barrier(1, CheckpointKind.SAVEPOINT_SUSPEND)
    with stepped_slots(a_chain(source, sink)) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.until(lambda: sink.written == [1])
        job.send(READ_0, stop)
        job.until(lambda: job.is_acked(1))
        source.feed(2)
        job.settle()
        assert sink.written == [1]
        assert not any(ack.snapshot.reached_end for ack in job.acks(1).values())
        job.complete(stop, leaving=True)
        job.until(lambda: len(job.reported(SubtaskFinished)) == 3)


def test_a_trigger_that_a_finished_subtask_did_not_read_is_declined(source, sink):
    """C9, C14."""
    source.is_bounded = True
    with stepped_slots(a_chain(source, sink)) as job:
        begin(job)
        job.assign(READ_0, ONE, last=True)
        job.until(lambda: len(job.reported(EndOfDataReached)) == 3)
        job.send(READ_0, a_barrier(1))
        job.until(lambda: job.is_acked(1))
        job.complete(a_barrier(1), leaving=True)
        job.send(READ_0, a_barrier(2))
        job.until(lambda: job.reported(SubtaskDeclined))
        (declined,) = job.reported(SubtaskDeclined)
    assert declined.reason is Reason.CHECKPOINT_DECLINED_TASK_CLOSING


def test_the_splits_of_one_reader_are_all_in_its_snapshot(sink):
    """C1, R5: one that is read to its end is in no checkpoint any more."""
    source = FakeSource({ONE: [1], TWO: [2, 3]})
    source.is_endless = True
    with stepped_slots(a_chain(source, sink)) as job:
        begin(job)
        job.assign(READ_0, ONE, TWO)
        job.until(lambda: len(sink.written) == 3)
        job.send(READ_0, a_barrier(1))
        job.until(lambda: job.is_acked(1))
        begin(job, SECOND, job.manifest(1))
    assert sorted(source.opened[2:]) == [(ONE, "1"), (TWO, "2")]
