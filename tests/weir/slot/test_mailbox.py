"""The one thread of a slot: rows flow, attempts are fenced, user code fails its subtask alone."""

from dataclasses import dataclass

import pytest
from polars.exceptions import PanicException

from fake_connectors import (
    ONE,
    READ_0,
    WORK,
    WORK_0,
    WRITE,
    WRITE_0,
    FailsAt,
    FakeSink,
    FakeSource,
    Tenfold,
    a_chain,
)
from stepped_slots import FIRST, SECOND, a_barrier, stepped_slots
from weir.core.attempt import FailureCause
from weir.core.coordinator.events import SubtaskDeclined
from weir.core.ids import SubtaskId
from weir.core.job_master import SplitWanted
from weir.core.lifecycle import SubtaskRunning
from weir.core.reasons import Reason
from weir.errors import JobRejected
from weir.slot.mailbox import LONGEST_REASON
from weir.wire.control_messages import CheckpointCompleted, ShutDownSlot, SubtaskFailure

APART = {READ_0: 0, WORK_0: 1, WRITE_0: 1}
WIDE = {
    SubtaskId(operator, index): index for operator in ("read", "work", "write") for index in (0, 1)
}


@dataclass(frozen=True)
class Refuses:
    """A step that stands for a connector of ours which cannot go on."""

    why: str
    label: str = "refuses"

    def __call__(self, _batch):
        raise JobRejected(self.why, "it has no footer", "replace it")


@pytest.fixture
def source():
    return FakeSource()


@pytest.fixture
def sink():
    return FakeSink()


def begin(job):
    job.host()
    job.until(lambda: len(job.reported(SubtaskRunning)) == len(job.graph.topology.subtasks))


# Rows


@pytest.mark.parametrize("subtask_addresses", [None, APART], ids=["in one slot", "in two slots"])
def test_rows_flow_from_the_source_through_the_steps_into_the_sink(source, sink, subtask_addresses):
    """D3: a channel inside a slot behaves as one between slots."""
    source.feed(1, 2, 3)
    with stepped_slots(a_chain(source, sink, Tenfold()), subtask_addresses) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.until(lambda: len(sink.written) == 3)
    assert sink.written == [10, 20, 30]


def test_rows_of_one_key_meet_in_one_subtask_whatever_slot_they_were_read_in(sink):
    """S11: a hashed edge leads every row of a key to the owner of its key group."""
    source = FakeSource({ONE: list(range(50)), "two": list(range(50))})
    with stepped_slots(a_chain(source, sink, width=2), WIDE) as job:
        begin(job)
        job.assign(SubtaskId("read", 0), ONE)
        job.assign(SubtaskId("read", 1), "two")
        job.until(lambda: len(sink.written) == 100)
    first, second = (writer.open_rows for writer in sink.writers)
    assert sorted(sink.written) == sorted([*range(50), *range(50)])
    assert not set(first) & set(second)


def test_every_row_arrives_once_and_in_order_however_little_credit_there_is(source, sink):
    """R7: a sender without credit keeps its output queued; nothing is lost or overtaken."""
    source.at_once = 1
    source.feed(*range(300))
    with stepped_slots(a_chain(source, sink), APART) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.settle(0)
        job.until(lambda: len(sink.written) == 300)
    assert sink.written == list(range(300))


def test_a_reader_asks_for_a_split_once_and_then_waits(source, sink):
    """C4: splits are handed out by the driver, one for each time that a reader asks."""
    with stepped_slots(a_chain(source, sink)) as job:
        begin(job)
        job.settle()
        assert job.reported(SplitWanted) == [SplitWanted(FIRST, READ_0)]


# Attempts


def test_a_source_that_rests_is_asked_again_though_the_clock_was_set_back(source, sink):
    """A11: how long it rests is an interval."""
    source.feed(1)
    with stepped_slots(a_chain(source, sink, Tenfold())) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.until(lambda: sink.written == [10])
        job.settle()
        job.skew = -3_600_000
        job.settle()
        source.feed(2)
        job.until(lambda: sink.written == [10, 20])


def test_a_relaunched_subtask_forgets_its_earlier_attempt(source, sink):
    """R3: survivors are reset in place and begin anew in the same process."""
    source.feed(1, 2)
    with stepped_slots(a_chain(source, sink)) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.until(lambda: sink.written == [1, 2])
        job.reset(READ_0, WORK_0, WRITE_0)
        job.host(SECOND)
        job.until(lambda: SubtaskRunning(SECOND, WRITE_0) in job.reports)
        job.assign(READ_0, ONE, attempt=SECOND)
        job.until(lambda: len(sink.written) == 4)
    assert sink.written == [1, 2, 1, 2]
    assert [writer.closed for writer in sink.writers] == [True, False]
    assert source.readers[0].closed


def test_messages_of_an_older_attempt_change_nothing(source, sink):
    """C17: every message carries its attempt, which fences it."""
    source.feed(1)
    with stepped_slots(a_chain(source, sink)) as job:
        begin(job)
        job.host(SECOND)
        job.until(lambda: SubtaskRunning(SECOND, WRITE_0) in job.reports)
        job.assign(READ_0, ONE, attempt=FIRST)
        job.settle()
        assert sink.written == []


def test_a_trigger_for_an_attempt_that_is_over_is_declined(source, sink):
    """C9: a trigger always gets an answer, or the checkpoint would wait for its timeout."""
    with stepped_slots(a_chain(source, sink)) as job:
        begin(job)
        job.host(SECOND)
        job.send(READ_0, a_barrier(7), FIRST)
        job.until(lambda: job.reported(SubtaskDeclined))
        (declined,) = job.reported(SubtaskDeclined)
    assert declined.reason is Reason.CHECKPOINT_DECLINED_TASK_CLOSING


def test_a_trigger_for_a_subtask_that_has_failed_is_declined_as_not_ready(source, sink):
    """C9."""
    source.breaks = True
    with stepped_slots(a_chain(source, sink)) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.until(lambda: job.reported(SubtaskFailure))
        job.send(READ_0, a_barrier(7))
        job.until(lambda: job.reported(SubtaskDeclined))
        (declined,) = job.reported(SubtaskDeclined)
    assert declined.reason is Reason.CHECKPOINT_DECLINED_TASK_NOT_READY


def test_what_arrives_before_its_receiver_is_launched_is_kept_for_it(source, sink):
    """R1: the two ends of a channel are launched by two processes, in any order."""
    source.feed(1, 2, 3)
    with stepped_slots(a_chain(source, sink), APART) as job:
        job.host(only=0)
        job.assign(READ_0, ONE)
        job.until(lambda: source.readers and source.readers[0].at == 3)
        job.settle()
        job.host(only=1)
        job.until(lambda: len(sink.written) == 3)
    assert sink.written == [1, 2, 3]


def test_what_arrives_while_its_receiver_reads_its_state_is_kept_for_it(source, sink):
    """R1."""
    source.feed(1, 2, 3)
    with stepped_slots(a_chain(source, sink), APART) as job:
        job.slots[1].reading.is_held = True
        job.host()
        job.assign(READ_0, ONE)
        job.until(lambda: source.readers and source.readers[0].at == 3)
        job.settle()
        job.slots[1].reading.release()
        job.until(lambda: len(sink.written) == 3)
    assert sink.written == [1, 2, 3]


def test_a_new_attempt_reads_its_state_while_the_one_before_still_uploads(source, sink):
    """R1 R3: after storage hung, no restore waits behind the uploads of a dead attempt."""
    with stepped_slots(a_chain(source, sink)) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.slots[0].uploading.is_held = True
        job.send(READ_0, a_barrier(1))
        job.settle()
        job.reset(READ_0, WORK_0, WRITE_0)
        job.host(SECOND)
        again = [SubtaskRunning(SECOND, subtask) for subtask in (READ_0, WORK_0, WRITE_0)]
        job.until(lambda: all(running in job.reports for running in again))
        assert job.acks(1) == {}


def test_a_subtask_that_is_reset_before_it_began_is_closed(source, sink):
    """R5: a writer that is not closed would hold its files for ever."""
    with stepped_slots(a_chain(source, sink)) as job:
        job.slots[0].reading.is_held = True
        job.host()
        job.step()
        job.reset(WRITE_0)
        job.step()
        job.slots[0].reading.release()
        job.settle()
        assert SubtaskRunning(FIRST, WRITE_0) not in job.reports
    assert [writer.closed for writer in sink.writers] == [True]


def test_a_slot_that_ends_closes_what_it_hosts(source, sink):
    """R3."""
    with stepped_slots(a_chain(source, sink)) as job:
        begin(job)
        job.slots[0].mailbox.post(ShutDownSlot())
        job.slots[0].mailbox.run()
    assert sink.writers[0].closed


# Failures


def test_a_failing_user_function_is_reported_once_with_its_words(source, sink):
    """R4, U3: the driver hears which subtask, why, and that user code did it."""
    source.at_once = 1
    source.feed(1, 2, 2, 2)
    with stepped_slots(a_chain(source, sink, FailsAt(2))) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.until(lambda: job.reported(SubtaskFailure))
        job.settle()
        (failed,) = job.reported(SubtaskFailure)
    assert (failed.subtask, failed.cause) == (WORK_0, FailureCause.USER_CODE)
    assert failed.reason.startswith("ValueError: 2 is not a number (at ")


def test_a_broken_input_is_not_blamed_on_user_code(source, sink):
    """U3: the words name the file, and the cause says that no code of the user failed."""
    broken = "file:///data/a.parquet cannot be read"
    source.feed(2)
    with stepped_slots(a_chain(source, sink, Refuses(broken))) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.until(lambda: job.reported(SubtaskFailure))
        (failed,) = job.reported(SubtaskFailure)
    words = f"{broken}: it has no footer. Remedy: replace it."
    assert (failed.cause, failed.reason) == (FailureCause.OPERATOR, words)


def test_the_words_of_a_failure_are_bounded(source, sink):
    """R7: a message to the driver holds them, whatever user code puts into an exception."""
    source.feed(2)
    with stepped_slots(a_chain(source, sink, Refuses("x" * (LONGEST_REASON + 1)))) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.until(lambda: job.reported(SubtaskFailure))
        (failed,) = job.reported(SubtaskFailure)
    assert len(failed.reason) == LONGEST_REASON


@pytest.mark.parametrize("raised", [PanicException("overflow"), SystemExit(3)], ids=repr)
def test_what_is_no_exception_in_python_fails_the_subtask_with_its_reason(source, sink, raised):
    """R4, U3: a panic of native code or sys.exit() in user code does not end the slot."""
    source.feed(2)
    with stepped_slots(a_chain(source, sink, FailsAt(2, raised))) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.until(lambda: job.reported(SubtaskFailure))
        (failed,) = job.reported(SubtaskFailure)
    assert (failed.subtask, failed.cause) == (WORK_0, FailureCause.USER_CODE)
    assert failed.reason.startswith(f"{type(raised).__name__}: {raised}")


def test_a_panic_in_the_synchronous_part_declines_and_fails_the_subtask(source, sink):
    """C9: with its reason, as any other failure of the synchronous part."""
    source.forgets = PanicException("no position")
    with stepped_slots(a_chain(source, sink)) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.send(READ_0, a_barrier(1))
        job.until(lambda: job.reported(SubtaskFailure))
        (failed,) = job.reported(SubtaskFailure)
    assert failed.cause is FailureCause.CHECKPOINT
    assert failed.reason.startswith("its synchronous part failed: PanicException: no position")


def test_a_panic_while_a_subtask_is_set_up_is_a_failure_of_that_subtask(source, sink):
    """R4, U3."""
    sink.breaks = PanicException("no sink")
    with stepped_slots(a_chain(source, sink)) as job:
        job.host()
        job.until(lambda: job.reported(SubtaskFailure))
        (failed,) = job.reported(SubtaskFailure)
    assert failed.reason.startswith(f"{WRITE} could not be set up: PanicException: no sink")


def test_a_failure_of_one_subtask_stops_no_other(source, sink):
    """R4: what becomes of the job is the driver's decision."""
    source.feed(2)
    with stepped_slots(a_chain(source, sink, FailsAt(2))) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.until(lambda: job.reported(SubtaskFailure))
        source.feed(3)
        job.until(lambda: source.readers[0].at == 2)


def test_a_sink_that_cannot_be_opened_is_a_failure_of_its_subtask(source, sink):
    """R4, U3: the reason names the operator."""
    sink.breaks = OSError("there is no such sink")
    with stepped_slots(a_chain(source, sink)) as job:
        job.host()
        job.until(lambda: job.reported(SubtaskFailure))
        (failed,) = job.reported(SubtaskFailure)
    assert failed.cause is FailureCause.USER_CODE
    assert failed.reason.startswith(f"{WRITE} could not be set up: ")
    assert "there is no such sink" in failed.reason


def test_a_lost_connection_fails_those_who_used_it(source, sink):
    """R1: what was on its way is gone, so both ends begin anew."""
    source.feed(1)
    with stepped_slots(a_chain(source, sink), APART) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.until(lambda: sink.written == [1])
        job.slots[1].exchange.close()
        job.until(lambda: job.reported(SubtaskFailure), 0)
        (failed,) = job.reported(SubtaskFailure)
    assert (failed.subtask, failed.cause) == (READ_0, FailureCause.CONNECTION)


def test_a_subtask_that_has_failed_fails_no_second_time(source, sink):
    """R4: what follows from its first failure is not another one."""
    source.feed(1)
    with stepped_slots(a_chain(source, sink), APART) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.until(lambda: sink.written == [1])
        source.breaks = True
        job.until(lambda: job.reported(SubtaskFailure))
        job.slots[1].exchange.close()
        job.settle(0)
        (failed,) = job.reported(SubtaskFailure)
    assert failed.cause is FailureCause.USER_CODE


def test_a_receiver_without_a_slot_fails_no_subtask_here(source, sink):
    """R4: its slot was lost before we heard where it is; an innocent process is not recycled."""
    source.feed(1, 2)
    with stepped_slots(a_chain(source, sink)) as job:
        job.subtask_addresses.pop(WORK_0)
        job.host()
        job.assign(READ_0, ONE)
        job.until(lambda: source.readers and source.readers[0].at == 2)
        job.settle()
        assert job.reported(SubtaskFailure) == []


# For people


def test_gauges_say_what_each_subtask_has_done(source, sink):
    """U1."""
    source.feed(1, 2, 3)
    with stepped_slots(a_chain(source, sink)) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.until(lambda: len(sink.written) == 3)
        gauges = {gauge.subtask: gauge for gauge in job.slots[0].mailbox.gauges()}
    assert (gauges[WORK_0].rows_in, gauges[WORK_0].rows_out) == (3, 3)
    assert gauges[READ_0].rows_out == 3
    assert not gauges[READ_0].back_pressured


def test_a_sender_whose_receiver_does_not_read_is_back_pressured(source, sink):
    """U1, R7."""
    source.at_once = 1
    source.feed(*range(100))
    with stepped_slots(a_chain(source, sink), APART) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.settle(0)
        gauges = {gauge.subtask: gauge for gauge in job.slots[0].mailbox.gauges()}
        assert gauges[READ_0].back_pressured
        assert source.readers[0].at < 100


def test_the_operator_is_notified_of_a_completion(source, sink):
    """C8: a sink lets go of what a committing checkpoint has covered."""
    source.feed(1)
    with stepped_slots(a_chain(source, sink)) as job:
        begin(job)
        job.assign(READ_0, ONE)
        job.until(lambda: sink.written == [1])
        for checkpoint in (1, 2):
            job.send(READ_0, a_barrier(checkpoint))
            job.until(lambda number=checkpoint: job.is_acked(number))
            job.send(
                WRITE_0, CheckpointCompleted(checkpoint, a_barrier(checkpoint).kind, leaving=False)
            )
    first, second = (job.acks(number)[WRITE_0].snapshot for number in (1, 2))
    assert [transaction.name for transaction in first.transactions] == ["write-0-a1-1"]
    assert second.transactions == ()
    assert WORK in {subtask.operator for subtask in job.acks(2)}


def test_a_message_that_the_mailbox_does_not_know_is_an_error(source, sink):
    """Whatever is posted is a value of a known kind."""
    with stepped_slots(a_chain(source, sink)) as job:
        job.slots[0].mailbox.post(lambda: None)
        with pytest.raises(AssertionError, match="cannot receive"):
            job.step()
