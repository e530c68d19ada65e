"""What one subtask does at a barrier, and in which order.

When it acks is the subject of ``test_task_acks``, what a barrier overtakes of
``test_task_in_flight``, how a subtask ends of ``test_task_ending``.
"""

from dataclasses import replace

import pytest

from subtask_harness import (
    A,
    B,
    C,
    Slot,
    X,
    Y,
    a_task,
    barrier,
    cancel,
    impatient,
    overtaking,
)
from weir.core.barriers import AlignmentType, EndOfInput, Watermark
from weir.core.ids import Millis
from weir.core.reasons import Reason
from weir.core.task import Ack

CANCELLED = Reason.CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER
SUBSUMED = Reason.CHECKPOINT_DECLINED_SUBSUMED


def a_slot(*channels, leads_to=(), **options):
    return Slot(a_task(channels, leads_to, **options))


def played(slot, *sequence):
    """Each element arrives when all that could be done before it has been done."""
    for channel, element in sequence:
        slot.feed(channel, element)
    return slot.story


AT_THE_BARRIER = ["prepare 1", "capture 1"]


def test_rows_before_the_barrier_are_processed_before_it_and_none_after():
    """A1: a barrier keeps its place."""
    slot = a_slot(A)
    slot.feed(A, "a1", "a2", barrier(1), "a3")

    assert slot.story == ["a1", "a2", *AT_THE_BARRIER, "a3"]


def test_a_barrier_keeps_its_place_on_the_way_out():
    """A1: what was emitted before it leaves before it, and what comes after it leaves after it."""
    slot = a_slot(A, leads_to=(X,))
    slot.feed(A, "a1", barrier(1), "a2")

    assert slot.sent[X] == ["a1", barrier(1), "a2"]


def test_a_channel_that_delivered_the_barrier_waits_while_the_others_go_on():
    """A2: and goes on where it stopped."""
    story = played(
        a_slot(A, B, C),
        *[(A, "a1"), (B, "b1"), (B, barrier(1)), (B, "b2"), (A, "a2"), (C, "c1")],
        *[(A, barrier(1)), (A, "a3"), (C, "c2"), (C, barrier(1)), (C, "c3")],
    )

    assert story == ["a1", "b1", "a2", "c1", "c2", *AT_THE_BARRIER, "a3", "b2", "c3"]


def test_later_barriers_wait_in_their_channels():
    """A2, A8: checkpoints 1 to 3 are in flight, and one at a time is aligned."""
    story = played(
        a_slot(A, B),
        *[(A, barrier(1)), (A, "a1"), (A, barrier(2)), (A, barrier(3)), (A, "a2")],
        *[(B, barrier(1)), (B, "b1"), (B, barrier(2)), (B, barrier(3))],
    )

    assert story == [
        *["prepare 1", "capture 1", "a1", "b1"],
        *["prepare 2", "capture 2", "prepare 3", "capture 3", "a2"],
    ]


def test_watermarks_wait_behind_the_barrier_like_rows():
    """A2: time is not read from a blocked channel either."""
    story = played(a_slot(A, B), (A, barrier(1)), (A, Watermark(Millis(5))), (B, barrier(1)))

    assert story == [*AT_THE_BARRIER, "in0: watermark 5"]


def test_at_least_once_reads_on_behind_the_barrier():
    """A3, A8: the snapshot may hold rows twice after a restore, and misses none."""
    casual = [barrier(n, AlignmentType.AT_LEAST_ONCE) for n in range(4)]
    story = played(
        a_slot(A, B, at_least_once=True),
        *[(A, casual[1]), (A, "a1"), (A, casual[2]), (A, "a2")],
        *[(B, "b1"), (B, casual[1]), (B, casual[2])],
    )

    assert story == ["a1", "a2", "b1", "prepare 1", "capture 1", "prepare 2", "capture 2"]


def test_alignment_and_start_delay_are_measured():
    """A2: from the trigger to the first barrier, and from the first to the last."""
    slot = a_slot(A, B)
    triggered = replace(barrier(1), triggered_at=Millis(100))
    for now, channel in [(130, A), (190, B)]:
        slot.pass_time(now)
        slot.feed(channel, triggered)
    slot.pass_time(500)
    slot.upload(1)

    (ack,) = slot.ordered(Ack)
    assert (ack.start_delay_ms, ack.alignment_ms) == (30, 60)


def test_a_start_delay_is_measured_by_the_clock_of_the_trigger():
    """A2: barriers carry timestamps of the wall clock, which may have been set since the start."""
    slot = a_slot(A)
    slot.task.ahead = -1_000
    slot.pass_time(1_130)
    slot.feed(A, replace(barrier(1), triggered_at=Millis(100)))
    slot.upload(1)

    (ack,) = slot.ordered(Ack)
    assert ack.start_delay_ms == 30


def test_alignment_of_an_overtaking_barrier_is_measured_to_the_last_channel():
    """A2, A4: it blocks no channel, and still takes that long."""
    slot = a_slot(A, B)
    for now, channel in [(30, A), (90, B)]:
        slot.pass_time(now)
        slot.feed(channel, overtaking(1))
        slot.pass_time(now + 10)
    slot.upload(1)

    (ack,) = slot.ordered(Ack)
    assert (ack.start_delay_ms, ack.alignment_ms) == (30, 60)


@pytest.mark.parametrize("kind", [barrier, overtaking])
def test_what_is_processed_between_the_first_barrier_and_the_last_is_measured(kind):
    """A2, A4: neither what came before, nor what follows while the snapshot goes up."""
    slot = a_slot(A, B)
    slot.task.processed_bytes = 100
    slot.feed(A, kind(1))
    slot.task.processed_bytes += 40
    slot.feed(B, kind(1))
    slot.task.processed_bytes += 7
    slot.upload(1)

    (ack,) = slot.ordered(Ack)
    assert ack.processed_bytes == 40


def test_an_announced_barrier_begins_the_measuring():
    """A5: from then on its waiting counts, and so does what is processed meanwhile."""
    slot = a_slot(A)
    slot.arrive(A, "a1", impatient(1, 50))
    slot.task.processed_bytes += 40
    slot.run()
    slot.upload(1)

    (ack,) = slot.ordered(Ack)
    assert ack.processed_bytes == 40


def test_what_was_measured_for_older_checkpoints_is_forgotten():
    """A7: an alignment that a newer barrier cancelled leaves nothing behind."""
    slot = a_slot(A, B)
    slot.feed(A, barrier(1))
    slot.feed(A, barrier(2))
    slot.feed(B, barrier(2))

    assert list(slot.task.first_seen) == [2]


def test_a_clock_that_is_behind_makes_no_negative_delay():
    """A2: the trigger was timed by the driver."""
    slot = a_slot()
    slot.trigger(replace(barrier(1), triggered_at=Millis(100)))
    slot.upload(1)

    (ack,) = slot.ordered(Ack)
    assert (ack.start_delay_ms, ack.alignment_ms) == (0, 0)


def test_the_order_at_a_barrier_is_fixed():
    """C1, A9, A12: prepare; what that emits; the barrier on every output; capture; ack."""
    slot = a_slot(A, leads_to=(X, Y))
    slot.buffered.append("held back")
    slot.feed(A, barrier(1))
    slot.upload(1)

    assert slot.story == [
        "prepare 1",
        "out0: held back",
        "out1: held back",
        "out0: barrier 1 aligned",
        "out1: barrier 1 aligned",
        "capture 1",
        "ack 1",
    ]


def test_the_order_is_the_same_when_the_barrier_overtakes():
    """A9, A4: only the barrier is first on its output, and what it overtook is saved."""
    slot = a_slot(A, leads_to=(X,), credit=0)
    slot.buffered.append("held back")
    slot.feed(A, overtaking(1))
    slot.upload(1)
    slot.upload_in_flight(1)

    assert slot.story == [
        "prepare 1",
        "out0: barrier 1 unaligned",
        "capture 1",
        "save in-flight 1",
        "ack 1",
    ]
    assert slot.caught_at(1) == {X: ("held back",)}


def test_a_checkpoint_that_is_not_newer_is_dropped():
    """A9: a trigger that comes again finds it begun, one that comes late finds it passed."""
    slot = a_slot(leads_to=(X,))
    slot.trigger(barrier(2))
    done = list(slot.story)

    slot.trigger(barrier(2))
    slot.trigger(barrier(1))

    assert slot.story == done


def test_a_checkpoint_that_was_aborted_before_it_came_is_not_begun():
    """A9: the cancel marker is sent on, for those downstream may be waiting."""
    slot = a_slot(leads_to=(X, Y))
    slot.abort(1)

    slot.trigger(barrier(1))

    assert slot.captured == {}
    assert slot.sent == {X: [cancel(1)], Y: [cancel(1)]}
    assert slot.declines == [(1, CANCELLED)]


@pytest.mark.parametrize("late", [barrier(1), overtaking(1), impatient(1, 50)], ids=repr)
def test_a_late_barrier_of_an_aborted_checkpoint_is_ignored(late):
    """A7, A9: the first one sends the cancel marker on, the others do nothing, nothing waits."""
    slot = a_slot(A, B, leads_to=(X,))
    slot.abort(1)
    slot.feed(A, late, "a1")
    slot.feed(B, late, "b1")
    slot.pass_time(1_000)

    assert slot.captured == {}
    assert slot.sent[X] == [cancel(1), "a1", "b1"]
    assert slot.declines == [(1, CANCELLED)]
    assert slot.task.aborted == set(), "once dropped it is too old, and need not be remembered"


def test_an_aborted_checkpoint_never_starts_the_clock():
    """A5, A7: its barrier waits behind data that is not read, and must not overtake it."""
    slot = a_slot(A, B, leads_to=(X,))
    slot.abort(1)
    slot.arrive(A, "a1", impatient(1, 50))

    assert slot.task.next_deadline() is None


def test_an_abort_does_not_outlive_a_newer_checkpoint():
    """A7: nothing has to be remembered for ever."""
    slot = a_slot(A)
    slot.abort(1)
    slot.abort(3)
    slot.feed(A, barrier(2))

    assert slot.task.aborted == {3}


def test_an_abort_releases_the_channels_that_wait():
    """A7, C9: and the subtasks downstream are notified too."""
    slot = a_slot(A, B, leads_to=(X,))
    slot.feed(A, barrier(1), "a1")

    slot.abort(1)
    slot.feed(B, barrier(1), "b1")

    assert slot.captured == {}
    assert slot.sent[X] == [cancel(1), "a1", "b1"]


def test_an_abort_of_an_acknowledged_checkpoint_releases_no_channel():
    """A7: checkpoint 2 is still being aligned."""
    slot = a_slot(A, B)
    slot.feed(A, barrier(1))
    slot.feed(B, barrier(1))
    slot.feed(A, barrier(2), "a1")

    slot.abort(1)

    assert slot.task.aborted == set()
    assert slot.processed[A] == []
    slot.feed(B, barrier(2))
    assert slot.state_at(2) == set()


def test_an_abort_of_a_later_checkpoint_leaves_the_alignment_as_it_is():
    """A7: checkpoint 1 is aligned in peace, and 2 is not begun when it comes."""
    slot = a_slot(A, B)
    slot.feed(A, barrier(1), "a1", barrier(2), "a2")

    slot.abort(2)
    slot.feed(B, barrier(1), "b1", barrier(2))

    assert list(slot.captured) == [1]
    assert slot.declines == [(2, CANCELLED)]
    assert slot.processed == {A: ["a1", "a2"], B: ["b1"]}


def test_an_abort_stops_one_of_several_checkpoints_at_least_once():
    """A7, A8: the others are still followed."""
    slot = a_slot(A, B, at_least_once=True)
    slot.feed(A, barrier(1), barrier(2))

    slot.abort(1)
    assert slot.declines == [(1, CANCELLED)]

    slot.feed(B, barrier(1), barrier(2))
    assert list(slot.captured) == [2]
    assert slot.declines == [(1, CANCELLED)]


def test_a_cancel_marker_releases_the_channels_that_wait_and_travels_on():
    """A7, C9: it keeps its place among the rows, and is passed on once."""
    slot = a_slot(A, B, C, leads_to=(X,))
    slot.feed(A, barrier(1), "a1")
    slot.feed(B, "b1", cancel(1), "b2")
    slot.feed(C, cancel(1), "c1")

    assert slot.captured == {}
    assert slot.sent[X] == ["b1", cancel(1), "a1", "b2", "c1"]
    assert slot.declines == [(1, CANCELLED)]


def test_a_newer_barrier_cancels_the_older_checkpoint_here_and_downstream():
    """A7: downstream gets the end of the old before the start of the new."""
    slot = a_slot(A, B, leads_to=(X,))
    slot.feed(A, barrier(1), "a1", barrier(2))
    slot.feed(B, "b1", barrier(2))

    assert slot.sent[X] == ["b1", cancel(1), "a1", barrier(2)]
    assert slot.state_at(2) == {"a1", "b1"}
    assert slot.declines == [(1, SUBSUMED)]


def test_end_of_input_counts_as_delivered():
    """A7: the rows before it are part of the snapshot."""
    slot = a_slot(A, B)
    slot.feed(A, barrier(1), "a1")
    slot.feed(B, "b1", EndOfInput())

    assert slot.story == ["b1", *AT_THE_BARRIER, "a1"]
