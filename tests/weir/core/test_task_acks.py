"""A subtask acks when all of its snapshot is durable, and deletes what is not acked or not used."""

from dataclasses import replace

import pytest

from subtask_harness import (
    A,
    B,
    Slot,
    X,
    Y,
    a_task,
    barrier,
    impatient,
    overtaking,
    savepoint,
)
from weir.core.reasons import Reason
from weir.core.snapshots import CheckpointKind
from weir.core.task import Ack, Complete


def a_slot(*channels, leads_to=(), **options):
    return Slot(a_task(channels, leads_to, **options))


def test_an_ack_waits_until_the_state_is_durable():
    """A9: a captured state is worth nothing yet."""
    slot = a_slot(A)
    slot.feed(A, barrier(1), "a1")
    assert slot.acks == []

    slot.upload(1)
    assert slot.acks == [1]


def test_a_checkpoint_is_acked_once():
    """C7: even if its upload is reported again."""
    slot = a_slot(A)
    slot.feed(A, barrier(1))
    slot.upload(1)
    slot.upload(1)

    assert slot.acks == [1]


@pytest.mark.parametrize("late", ["state", "input"])
def test_an_ack_waits_for_state_and_inputs_and_their_rows(late):
    """A9, A4: whichever comes last, the rows are saved when they are complete, and then acked."""
    slot = a_slot(A, B)
    slot.arrive(B, "b1")
    slot.arrive(A, overtaking(1))
    steps = [lambda: slot.upload(1), lambda: slot.arrive(B, "b2", overtaking(1))]
    first, second = reversed(steps) if late == "state" else steps

    first()
    assert slot.in_flight == {}
    second()
    assert slot.caught_at(1) == {B: ("b1", "b2")}
    assert slot.acks == []
    slot.upload_in_flight(1)

    (ack,) = slot.ordered(Ack)
    assert [handle.channel for handle in ack.snapshot.in_flight] == [B]


def test_an_ack_waits_until_a_barrier_that_may_jump_has_left_every_output():
    """A5, A9: until then it may still have to save what it jumps over."""
    slot = a_slot(A, leads_to=(X, Y), credit=0)
    slot.feed(A, "a1", impatient(1, 50))
    slot.upload(1)

    slot.grant(X, 1)
    assert slot.acks == []
    slot.grant(Y, 1)
    assert slot.acks == [1]
    assert slot.in_flight == {}


def test_an_ack_does_not_wait_for_a_barrier_that_keeps_its_place():
    """A2: what is before it in the queue will be before it at the receiver."""
    slot = a_slot(A, leads_to=(X,), credit=0)
    slot.feed(A, "a1", barrier(1))
    slot.upload(1)

    assert slot.acks == [1]


def aligned_and_uploading(slot):
    slot.feed(A, barrier(1))
    slot.feed(B, barrier(1))


def recording(slot):
    slot.feed(A, overtaking(1))
    slot.upload(1)


def waiting_in_an_output(slot):
    slot.feed(A, "a1", impatient(1, 50))
    slot.feed(B, impatient(1, 50))
    slot.upload(1)


def saving_rows(slot):
    slot.arrive(B, "b1", overtaking(1))
    slot.arrive(A, overtaking(1))
    slot.upload(1)


def acked(slot):
    aligned_and_uploading(slot)
    slot.upload(1)


@pytest.mark.parametrize(
    "stage", [aligned_and_uploading, recording, waiting_in_an_output, saving_rows, acked]
)
def test_an_abort_discards_what_was_uploaded_at_any_stage(stage):
    """C9: the files that the checkpoint had written are deleted, and no ack follows."""
    slot = a_slot(A, B, leads_to=(X,), credit=0)
    stage(slot)
    acks = slot.acks

    slot.abort(1)

    assert slot.discards == [1]
    assert slot.task.aborted == set(), "it is over, and need not be remembered"
    slot.grant(X, 5)
    slot.feed(B, overtaking(1))
    assert slot.acks == acks


def test_an_abort_during_alignment_has_nothing_to_discard():
    """C9: nothing was written."""
    slot = a_slot(A, B)
    slot.feed(A, barrier(1))
    slot.abort(1)

    assert slot.discards == []


def test_an_upload_that_ends_after_the_abort_is_discarded():
    """C9, C7: state of an ack that is not used is deleted."""
    slot = a_slot(A)
    slot.feed(A, barrier(1))
    slot.abort(1)
    slot.upload(1)

    assert slot.discards == [1, 1]
    assert slot.acks == []


def test_in_flight_rows_that_are_saved_after_the_abort_are_discarded():
    """C9, C7: the same for them."""
    slot = a_slot(A, B)
    saving_rows(slot)
    slot.abort(1)
    slot.upload_in_flight(1)

    assert slot.discards == [1, 1]
    assert slot.acks == []


@pytest.mark.parametrize(
    "reason", [Reason.CHECKPOINT_ASYNC_EXCEPTION, Reason.TASK_CHECKPOINT_FAILURE]
)
def test_a_snapshot_that_fails_is_declined_with_its_reason(reason):
    """C9: whatever it had written is discarded."""
    slot = a_slot(A)
    slot.feed(A, barrier(1))
    slot.fail(1, reason)
    slot.upload(1)

    assert slot.declines == [(1, reason)]
    assert slot.discards == [1, 1]
    assert slot.acks == []


def test_a_failure_of_an_aborted_checkpoint_is_not_declined():
    """C9: it was declined before, or never asked for."""
    slot = a_slot(A)
    slot.feed(A, barrier(1))
    slot.abort(1)
    slot.fail(1, Reason.CHECKPOINT_ASYNC_EXCEPTION)

    assert slot.declines == []


@pytest.mark.parametrize(
    ("kind", "commits"), [(CheckpointKind.CHECKPOINT, True), (CheckpointKind.SAVEPOINT, False)]
)
def test_the_operator_hears_of_a_completion_and_whether_output_was_committed(kind, commits):
    """C8: a plain savepoint commits nothing."""
    slot = a_slot(A)
    acked_once = replace(barrier(1), kind=kind)
    slot.feed(A, acked_once)
    slot.upload(1)
    slot.complete(1, kind)

    assert slot.ordered(Complete) == [Complete(acked_once.checkpoint, commits)]
    assert slot.discards == []


def test_what_a_completed_checkpoint_owns_is_never_discarded():
    """C7: not even by an abort that is older news than the completion."""
    slot = a_slot(A)
    slot.feed(A, barrier(1))
    slot.upload(1)
    slot.complete(1)
    slot.abort(1)

    assert slot.discards == []


def test_a_checkpoint_that_completes_ends_older_ones_that_were_not_acked():
    """C8, A8: they are subsumed, and what they wrote is discarded; what was acked is not ours."""
    slot = a_slot(A)
    slot.feed(A, barrier(1), barrier(2), barrier(3))
    slot.upload(1)
    slot.upload(3)
    slot.complete(3)

    assert slot.discards == [2]
    slot.upload(2)
    assert slot.acks == [1, 3]


def test_a_checkpoint_that_completes_leaves_newer_ones_alone():
    """A8: they are in flight at the same time."""
    slot = a_slot(A)
    slot.feed(A, barrier(1), barrier(2))
    slot.upload(1)
    slot.complete(1)
    slot.upload(2)

    assert slot.acks == [1, 2]
    assert slot.discards == []


@pytest.mark.parametrize(
    ("older", "newer"), [(savepoint(1), barrier(2)), (barrier(1), savepoint(2))], ids=repr
)
def test_a_savepoint_neither_ends_nor_is_ended_by_a_checkpoint(older, newer):
    """C8, A8: the older one is still uploading when the newer one completes."""
    slot = a_slot(A)
    slot.feed(A, older, newer)
    slot.upload(2)
    slot.complete(2, newer.kind)
    slot.upload(1)

    assert slot.acks == [2, 1]
    assert slot.discards == []
