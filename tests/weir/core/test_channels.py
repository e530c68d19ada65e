"""A channel keeps its order and its bound; only a barrier may overtake, and reports what."""

from collections import deque

import pytest

from subtask_harness import A, X, barrier, cancel, impatient, overtaking
from weir.core.barriers import EndOfData, EndOfInput, Idle, Watermark
from weir.core.channels import Inbox, Outbox
from weir.core.ids import CheckpointId, Millis


def an_outbox(*elements, credit=0):
    outbox = Outbox(X, credit)
    for element in elements:
        outbox.put(element)
    return outbox


def an_inbox(*elements):
    return Inbox(A, deque(elements))


def watermark(time):
    return Watermark(Millis(time))


def test_a_batch_needs_credit():
    """A11: what has no room at the receiver stays queued at the sender."""
    outbox = an_outbox("a1", "a2", "a3", credit=2)

    assert outbox.sendable() == ["a1", "a2"]
    assert outbox.sendable() == []
    outbox.credit += 1
    assert outbox.sendable() == ["a3"]


@pytest.mark.parametrize(
    "marker", [barrier(1), cancel(1), watermark(5), Idle(), EndOfData(), EndOfInput()], ids=repr
)
def test_a_marker_needs_no_credit(marker):
    """A11: a barrier reaches a receiver that has no room for data."""
    outbox = an_outbox(marker, credit=0)

    assert outbox.sendable() == [marker]
    assert outbox.credit == 0


def test_a_marker_uses_up_no_credit():
    """A11: credit is room for batches."""
    assert an_outbox(barrier(1), "a1", barrier(2), credit=1).sendable() == [
        barrier(1),
        "a1",
        barrier(2),
    ]


def test_a_marker_keeps_its_place_behind_a_batch_without_credit():
    """A1: an aligned barrier does not overtake, even though it needs no credit."""
    outbox = an_outbox("a1", barrier(1), "a2", credit=0)

    assert outbox.sendable() == []
    outbox.credit += 2
    assert outbox.sendable() == ["a1", barrier(1), "a2"]


def test_an_outbox_counts_the_batches_that_wait():
    """A11: markers wait without counting, so they cannot fill an output."""
    outbox = an_outbox("a1", barrier(1), "a2", watermark(1), credit=1)

    assert outbox.batches == 2
    outbox.sendable()
    assert outbox.batches == 1


def test_an_overtaking_barrier_leaves_at_once_and_tells_what_it_overtook():
    """A4: the batches, in order; they stay queued and travel behind it."""
    outbox = an_outbox("a1", watermark(1), "a2")

    assert outbox.put_first(overtaking(1)) == ["a1", "a2"]
    assert outbox.sendable() == [overtaking(1)]
    outbox.credit += 2
    assert outbox.sendable() == ["a1", watermark(1), "a2"]


def test_a_barrier_that_waited_too_long_jumps_the_queue():
    """A5: it returns what it overtook, not what is behind it, and becomes an overtaking one."""
    outbox = an_outbox("a1", watermark(1), "a2", impatient(1, 50), "a3")

    assert outbox.promote(CheckpointId(1)) == (overtaking(1), ["a1", "a2"])
    assert outbox.sendable() == [overtaking(1)]
    outbox.credit += 3
    assert outbox.sendable() == ["a1", watermark(1), "a2", "a3"]


@pytest.mark.parametrize("queued", [("a1",), ("a1", barrier(2))])
def test_a_barrier_that_has_left_cannot_jump(queued):
    """A5: and another checkpoint's barrier keeps its place."""
    outbox = an_outbox(*queued)

    assert outbox.promote(CheckpointId(1)) is None
    assert list(outbox.queue) == list(queued)


def test_watermarks_coalesce_while_they_wait():
    """A11: an output that is not read for an hour holds one of them, the newest."""
    outbox = an_outbox("a1", watermark(1), watermark(2), watermark(3))

    assert list(outbox.queue) == ["a1", watermark(3)]


def test_a_watermark_does_not_move_past_a_batch_or_a_barrier():
    """A1: each concerns what is behind it."""
    elements = ["a1", watermark(1), "a2", watermark(2), barrier(1), watermark(3)]

    assert list(an_outbox(*elements).queue) == elements


def test_a_turn_takes_the_consecutive_batches_at_the_head():
    """A11: as many as are there, up to a limit, and never past a marker."""
    inbox = an_inbox("a1", "a2", "a3", barrier(1), "a4")

    assert inbox.take_batches(2) == ["a1", "a2"]
    assert inbox.take_batches(2) == ["a3"]
    assert inbox.take_batches(2) == []


def test_what_a_turn_did_not_get_to_is_the_first_thing_the_next_one_sees():
    """A11: the rest of a cut batch keeps its place."""
    inbox = an_inbox("a1", "a2")
    inbox.take_batches(1)
    inbox.put_back("rest of a1")

    assert inbox.take_batches(2) == ["rest of a1", "a2"]


def test_what_is_queued_before_the_barrier_is_overtaken():
    """A4: batches before it, none behind; the barrier has done its work and is taken out."""
    inbox = an_inbox("a1", watermark(1), "a2", barrier(1), "a3")

    assert inbox.overtaken_by(CheckpointId(1)) == (["a1", "a2"], True)
    assert list(inbox.queue) == ["a1", watermark(1), "a2", "a3"]


def test_more_is_to_come_while_the_barrier_is_not_here():
    """A4: another checkpoint's barrier is not the one."""
    inbox = an_inbox("a1", barrier(7), "a2")

    assert inbox.overtaken_by(CheckpointId(8)) == (["a1", "a2"], False)
    assert list(inbox.queue) == ["a1", barrier(7), "a2"]


def test_nothing_more_can_come_once_the_end_is_here():
    """A4, A7: the end stays queued, for it is yet to be reached."""
    inbox = an_inbox("a1", EndOfData(), EndOfInput())

    assert inbox.overtaken_by(CheckpointId(1)) == (["a1"], True)
    assert list(inbox.queue) == ["a1", EndOfData(), EndOfInput()]
