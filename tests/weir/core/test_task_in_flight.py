"""What a barrier overtakes belongs to the snapshot: every row of it, once, and not a row more."""

import pytest

from subtask_harness import (
    PLENTY,
    REPLAY,
    A,
    B,
    Slot,
    X,
    Y,
    a_task,
    barrier,
    cancel,
    impatient,
    overtaking,
    savepoint,
)
from weir.core.barriers import EndOfData, EndOfInput, Watermark
from weir.core.ids import Millis
from weir.core.reasons import Reason
from weir.core.snapshots import Side


def a_slot(*channels, leads_to=(), credit=PLENTY, rows_per_turn=PLENTY):
    return Slot(a_task(channels, leads_to, credit=credit), rows_per_turn=rows_per_turn)


def test_the_first_barrier_triggers_and_is_forwarded_at_once():
    """A4: before anything that is queued at the inputs or the outputs."""
    slot = a_slot(A, B, leads_to=(X,), credit=0)
    slot.feed(A, "a1")
    slot.arrive(A, "a2", overtaking(1))

    assert slot.story == ["a1", "prepare 1", "out0: barrier 1 unaligned", "capture 1"]


def test_the_queue_of_every_input_is_part_of_the_snapshot():
    """A4: that of the channel which brought the barrier too: those rows are before it as well."""
    slot = a_slot(A, B)
    slot.arrive(A, "a1", "a2")
    slot.arrive(B, "b1")
    slot.arrive(A, overtaking(1))
    slot.arrive(B, overtaking(1))
    slot.upload(1)

    assert slot.state_at(1) == set()
    assert slot.caught_at(1) == {A: ("a1", "a2"), B: ("b1",)}


def test_what_arrives_before_the_barrier_does_is_part_of_the_snapshot():
    """A4: it is caught when it arrives, and processed in its turn all the same."""
    slot = a_slot(A, B)
    slot.feed(A, overtaking(1))
    slot.feed(B, "b1")
    slot.feed(B, "b2")
    slot.feed(B, overtaking(1))
    slot.upload(1)

    assert slot.caught_at(1) == {B: ("b1", "b2")}
    assert slot.processed[B] == ["b1", "b2"]


def test_nothing_behind_the_barrier_is_part_of_the_snapshot():
    """A4: neither on the channel that delivered first nor on the one that came last."""
    slot = a_slot(A, B)
    slot.arrive(A, overtaking(1), "a1")
    slot.arrive(B, "b1", overtaking(1), "b2")
    slot.run()
    slot.upload(1)

    assert slot.caught_at(1) == {B: ("b1",)}


def test_no_row_is_both_in_the_state_and_in_flight():
    """A4: what was processed before the barrier is state."""
    slot = a_slot(A, B)
    slot.feed(B, "b1")
    slot.arrive(B, "b2")
    slot.arrive(A, overtaking(1))
    slot.feed(B, overtaking(1))
    slot.upload(1)

    assert slot.state_at(1) == {"b1"}
    assert slot.caught_at(1) == {B: ("b2",)}


def test_the_rest_of_a_cut_batch_is_in_flight():
    """A4, A11: the rows that the turn had got to are state, the others are not lost."""
    slot = a_slot(A, B, rows_per_turn=2)
    slot.arrive(B, ("b1", "b2", "b3"), "b4")
    slot.turn()
    slot.arrive(A, overtaking(1))
    slot.feed(B, overtaking(1))
    slot.upload(1)

    assert slot.state_at(1) == {"b1", "b2"}
    assert slot.caught_at(1) == {B: ("b3", "b4")}
    assert slot.processed[B] == ["b1", "b2", "b3", "b4"]


def test_the_queue_of_every_output_is_part_of_the_snapshot():
    """A4: the state has seen those rows, and the receiver has not."""
    slot = a_slot(A, leads_to=(X, Y), credit=0)
    slot.feed(A, "a1", "a2")
    slot.grant(X, 1)
    slot.arrive(A, overtaking(1))
    slot.upload(1)

    assert slot.caught_at(1) == {X: ("a2",), Y: ("a1", "a2")}
    assert {side for _, side in slot.in_flight[1]} == {Side.OUTPUT}


def test_overtaken_output_travels_behind_the_barrier():
    """A4: it is saved for a restore, and delivered all the same."""
    slot = a_slot(A, leads_to=(X,), credit=0)
    slot.feed(A, "a1")
    slot.feed(A, overtaking(1))
    slot.grant(X, 5)

    assert slot.sent[X] == [overtaking(1), "a1"]


def test_markers_are_not_in_flight_data():
    """A4, A10: watermarks restart from the snapshot, and ends from its finished subtasks."""
    slot = a_slot(A, B, leads_to=(X,), credit=0)
    slot.task.emit(X, Watermark(Millis(1)))
    slot.arrive(A, Watermark(Millis(2)), EndOfData())
    slot.arrive(B, Watermark(Millis(3)), overtaking(1))
    slot.arrive(A, Watermark(Millis(4)), overtaking(1))
    slot.upload(1)

    assert slot.in_flight == {}
    assert slot.acks == [1]


def test_recovered_rows_that_were_not_replayed_yet_are_in_flight_again():
    """A4, A10: a checkpoint may come before the last one's in-flight data is through."""
    slot = a_slot(REPLAY, A)
    slot.arrive(REPLAY, "r1", "r2", EndOfInput())
    slot.arrive(A, "a1", overtaking(1))
    slot.upload(1)

    assert slot.acks == []
    assert slot.caught_at(1) == {REPLAY: ("r1", "r2"), A: ("a1",)}


def test_an_end_that_is_queued_closes_its_channel():
    """A4, A7: nothing more can come, though the rows before the end are yet to be processed."""
    slot = a_slot(A, B)
    slot.arrive(B, "b1", EndOfInput())
    slot.arrive(A, overtaking(1))
    slot.upload(1)

    assert slot.caught_at(1) == {B: ("b1",)}


def test_an_end_that_arrives_closes_its_channel():
    """A4, A7: the same if it comes after the barrier of another channel."""
    slot = a_slot(A, B)
    slot.arrive(A, overtaking(1))
    slot.upload(1)
    slot.arrive(B, "b1", EndOfInput())

    assert slot.caught_at(1) == {B: ("b1",)}


def test_a_subtask_triggered_in_place_of_finished_inputs_records_until_their_ends():
    """A4, C14: the coordinator's trigger overtakes like a barrier."""
    slot = a_slot(A, B)
    slot.feed(A, EndOfInput())
    slot.arrive(B, "b1")
    slot.task.trigger(overtaking(1), slot.now)
    slot.upload(1)
    slot.arrive(B, "b2", EndOfInput())

    assert slot.caught_at(1) == {B: ("b1", "b2")}


def test_an_alignment_in_time_has_nothing_in_flight():
    """A5: it starts aligned, and the timeout never comes."""
    slot = a_slot(A, B)
    slot.feed(A, impatient(1, 50), "a1")
    slot.pass_time(49)
    slot.feed(B, "b1", impatient(1, 50))
    slot.upload(1)
    slot.pass_time(1_000)

    assert slot.state_at(1) == {"b1"}
    assert slot.acks == [1]
    assert slot.in_flight == {}


def test_an_alignment_that_takes_too_long_overtakes():
    """A5: rows of the blocked channel are behind the barrier, those of the others before it."""
    slot = a_slot(A, B)
    slot.feed(A, impatient(1, 50))
    slot.arrive(A, "a1")
    slot.arrive(B, "b1")
    slot.pass_time(50)
    slot.arrive(B, "b2", impatient(1, 50), "b3")
    slot.upload(1)

    assert slot.state_at(1) == set()
    assert slot.caught_at(1) == {B: ("b1", "b2")}
    slot.run()
    assert slot.processed == {A: ["a1"], B: ["b1", "b2", "b3"]}


def test_a_barrier_that_waits_behind_data_times_out_where_it_is():
    """A5: no channel has got to it, and its waiting counts from its arrival."""
    slot = a_slot(A, B)
    slot.arrive(A, "a1", impatient(1, 50), "a2")
    slot.arrive(B, "b1")

    assert slot.task.next_deadline() == 50
    slot.pass_time(50)
    slot.arrive(B, "b2", impatient(1, 50), "b3")
    slot.upload(1)

    assert slot.caught_at(1) == {A: ("a1",), B: ("b1", "b2")}


def test_a_barrier_that_waits_behind_data_everywhere_has_all_its_rows_when_it_times_out():
    """A5: every channel has delivered it at that moment, so nothing more is recorded."""
    slot = a_slot(A, B)
    slot.arrive(A, "a1", impatient(1, 50), "a2")
    slot.arrive(B, "b1", impatient(1, 50), "b2")
    slot.pass_time(50)
    slot.upload(1)
    slot.upload_in_flight(1)

    assert slot.caught_at(1) == {A: ("a1",), B: ("b1",)}
    assert slot.acks == [1]


def test_a_barrier_that_turned_unaligned_upstream_overtakes_here_at_once():
    """A5: what A has behind the barrier stays behind it, what B has before it is in flight."""
    slot = a_slot(A, B)
    slot.feed(A, impatient(1, 50), "a1")
    slot.arrive(B, "b1", overtaking(1), "b2")
    slot.upload(1)

    assert slot.state_at(1) == set()
    assert slot.caught_at(1) == {B: ("b1",)}


def test_a_barrier_that_waits_too_long_in_an_output_overtakes_it():
    """A5: where it still waits; what it jumped over is saved, what came after it is not."""
    slot = a_slot(A, leads_to=(X, Y), credit=0)
    slot.feed(A, "a1", impatient(1, 50), "a2")
    slot.upload(1)
    slot.grant(X, 1)

    slot.pass_time(49)
    assert slot.sent[Y] == []
    slot.pass_time(50)

    assert slot.sent == {X: ["a1", impatient(1, 50)], Y: [overtaking(1)]}
    assert slot.caught_at(1) == {Y: ("a1",)}


def test_waiting_in_an_output_counts_from_the_snapshot():
    """A5: a slot knows when to look again."""
    slot = a_slot(A, leads_to=(X,), credit=0)
    slot.pass_time(100)
    slot.feed(A, "a1", impatient(1, 50))
    assert slot.task.next_deadline() == 150

    slot.grant(X, 1)
    assert slot.task.next_deadline() is None


def test_a_savepoint_never_overtakes():
    """A6: not at the inputs and not in the outputs, however long it waits."""
    slot = a_slot(A, B, leads_to=(X,), credit=0)
    slot.feed(A, savepoint(1), "a1")
    slot.arrive(B, "b1")
    slot.pass_time(1_000)
    assert slot.captured == {}
    slot.feed(B, savepoint(1), "b2")
    slot.upload(1)
    slot.pass_time(2_000)
    slot.grant(X, 5)

    assert slot.state_at(1) == {"b1"}
    assert slot.in_flight == {}
    assert slot.sent[X] == ["b1", savepoint(1), "a1", "b2"]


def test_an_abort_ends_the_recording():
    """A7: rows flow as before, and the next checkpoint starts with a clean page."""
    slot = a_slot(A, B)
    slot.feed(A, overtaking(1))
    slot.arrive(B, "b1")
    slot.abort(1)
    slot.arrive(B, "b2", overtaking(1), "b3")
    slot.arrive(A, overtaking(2))
    slot.arrive(B, overtaking(2))
    slot.upload(2)

    assert list(slot.captured) == [1, 2]
    assert slot.state_at(2) == {"b1"}
    assert slot.caught_at(2) == {B: ("b2", "b3")}


def test_a_failed_upload_does_not_stop_the_barriers_that_follow():
    """A7, C9: the barrier of the failed checkpoint comes late and counts for nothing."""
    slot = a_slot(A, B)
    slot.feed(A, overtaking(1))
    slot.fail(1, Reason.CHECKPOINT_ASYNC_EXCEPTION)
    slot.feed(B, "b1", impatient(1, 50), "b2")
    slot.feed(A, overtaking(2))
    slot.feed(B, overtaking(2))
    slot.upload(2)

    assert slot.acks == [2]
    assert slot.state_at(2) == {"b1", "b2"}


def test_a_newer_barrier_ends_the_recording_of_an_older_checkpoint():
    """A7: what was uploaded is discarded, and downstream is notified."""
    slot = a_slot(A, B, leads_to=(X,))
    slot.feed(A, overtaking(1))
    slot.feed(B, "b1")
    slot.feed(B, overtaking(2))
    slot.feed(A, overtaking(2))
    slot.upload(2)

    assert slot.sent[X] == [overtaking(1), "b1", cancel(1), overtaking(2)]
    assert slot.discards == [1]
    assert slot.declines == [(1, Reason.CHECKPOINT_DECLINED_SUBSUMED)]
    assert slot.acks == [2]


def test_a_newer_barrier_that_may_time_out_is_heard_on_arrival_while_recording():
    """A5, A7: the older barrier is not coming on that channel, and waiting counts from here."""
    slot = a_slot(A, B)
    slot.feed(A, overtaking(1))
    slot.pass_time(100)
    slot.arrive(B, "b1", impatient(2, 50))

    assert slot.discards == [1]
    assert slot.task.next_deadline() == 150


@pytest.mark.parametrize("alignment", [barrier, overtaking])
def test_what_no_barrier_overtakes_is_not_in_flight(alignment):
    """A2, A4: empty queues, so the snapshot is the state and nothing else."""
    slot = a_slot(A, B, leads_to=(X,))
    slot.feed(A, "a1")
    slot.feed(A, alignment(1))
    slot.feed(B, alignment(1))
    slot.upload(1)

    assert slot.acks == [1]
    assert slot.in_flight == {}
