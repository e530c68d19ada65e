"""A subtask ends in order: nothing follows its last barrier, and all it emitted is committed."""

import pytest

from subtask_harness import (
    A,
    B,
    Slot,
    X,
    Y,
    a_task,
    barrier,
    savepoint,
)
from weir.core.barriers import AlignmentType, EndOfData, EndOfInput
from weir.core.snapshots import CheckpointKind
from weir.core.task import Finish

STOP = CheckpointKind.SAVEPOINT_SUSPEND
DRAIN = CheckpointKind.SAVEPOINT_TERMINATE


def a_source(*rows, leads_to=(X,), credit=100):
    return Slot(a_task((), leads_to, credit=credit), unread=list(rows))


def a_slot(*channels, leads_to=(), credit=100):
    return Slot(a_task(channels, leads_to, credit=credit))


def at_its_end(slot, checkpoint=1):
    """It has processed all there is, and a snapshot was taken after that."""
    slot.end_data()
    slot.trigger(barrier(checkpoint))
    slot.upload(checkpoint)
    return slot


@pytest.mark.parametrize("kind", [STOP, DRAIN])
def test_no_record_leaves_a_source_behind_a_synchronous_savepoint(kind):
    """C11: the job ends with it, and what it had read beyond would be read again."""
    source = a_source("s1", "s2", "s3")
    source.turn()
    source.trigger(savepoint(1, kind))
    source.run()

    assert source.unread == ["s2", "s3"]
    assert source.sent[X][-1] == savepoint(1, kind)


@pytest.mark.parametrize("ordinary", [barrier(1), savepoint(1)], ids=repr)
def test_a_source_reads_on_behind_any_other_barrier(ordinary):
    """C11: only a synchronous savepoint ends the job."""
    source = a_source("s1", "s2")
    source.turn()
    source.trigger(ordinary)

    assert source.sent[X] == ["s1", ordinary, "s2"]


def test_a_drain_comes_before_the_barrier():
    """C11: the last rows and the end of the data belong to the savepoint."""
    source = a_source("s1")
    source.turn()
    source.trigger(savepoint(1, DRAIN))

    assert source.story == [
        "s1",
        "out0: s1",
        "drain",
        "out0: end of data",
        "prepare 1",
        "out0: barrier 1 forced aligned",
        "capture 1",
    ]


def test_stopping_without_a_drain_ends_no_data():
    """C11: the job goes on from the savepoint one day."""
    source = a_source("s1")
    source.trigger(savepoint(1, STOP))

    assert source.sent[X] == [savepoint(1, STOP)]


def test_a_source_that_is_at_its_end_is_not_drained_again():
    """C11: it has reported it once."""
    source = a_source()
    source.end_data()
    source.trigger(savepoint(1, DRAIN))

    assert source.sent[X] == [EndOfData(), savepoint(1, DRAIN)]


def test_a_trigger_that_comes_again_drains_nothing():
    """C11, A9: not newer, so dropped whole."""
    source = a_source("s1")
    source.trigger(barrier(2))
    source.trigger(savepoint(1, DRAIN))

    assert "drain" not in source.story


def test_a_subtask_with_inputs_is_not_drained_by_order():
    """C11: its data ends when the ends of its inputs have come through."""
    slot = a_slot(A)
    slot.feed(A, EndOfInput())
    slot.trigger(savepoint(1, DRAIN))

    assert slot.story == ["prepare 1", "capture 1"]


def test_everyone_leaves_after_a_synchronous_savepoint():
    """C11: when it is complete, and with an end of input for those downstream."""
    source = a_source("s1", leads_to=(X, Y))
    source.trigger(savepoint(1, STOP))
    source.upload(1)
    source.complete(1, STOP, leaving=True)

    assert source.story[-4:] == [
        "complete 1",
        "out0: end of input",
        "out1: end of input",
        "finish",
    ]


def test_a_subtask_leaves_when_the_checkpoint_that_covers_its_end_is_complete():
    """C14: so that its last transactions are committed; the coordinator knows which one it is."""
    slot = at_its_end(a_source())

    slot.complete(1, leaving=False)
    assert slot.ordered(Finish) == []
    slot.complete(2, leaving=True)
    assert slot.ordered(Finish) == [Finish()]


def test_a_subtask_leaves_after_all_it_has_emitted():
    """C14: the end of input keeps its place behind the rows that wait for credit."""
    slot = at_its_end(a_source(credit=0))
    slot.emit("last")

    slot.complete(1, leaving=True)
    assert slot.ordered(Finish) == []
    slot.grant(X, 1)

    assert slot.sent[X][-2:] == ["last", EndOfInput()]
    assert slot.ordered(Finish) == [Finish()]


def test_a_subtask_leaves_after_its_inputs():
    """C14: those upstream may have more barriers for it until they leave."""
    slot = a_slot(A, B)
    slot.end_data()
    slot.feed(A, barrier(1))
    slot.feed(B, barrier(1))
    slot.upload(1)
    slot.complete(1, leaving=True)
    slot.complete(2, leaving=False)

    slot.feed(A, EndOfInput())
    assert slot.ordered(Finish) == []
    slot.feed(B, EndOfInput())
    assert slot.ordered(Finish) == [Finish()]


def test_a_subtask_leaves_once():
    """C14: the final notice is repeated until it is acknowledged."""
    slot = at_its_end(a_source())
    slot.complete(1, leaving=True)
    slot.complete(1, leaving=True)

    assert slot.ordered(Finish) == [Finish()]
    assert slot.sent[X].count(EndOfInput()) == 1


@pytest.mark.parametrize(
    "alignment", [AlignmentType.ALIGNED, AlignmentType.UNALIGNED, AlignmentType.AT_LEAST_ONCE]
)
def test_checkpoints_go_on_after_all_inputs_have_ended(alignment):
    """C14: the coordinator triggers those whose barriers would have come from finished subtasks."""
    casual = alignment is AlignmentType.AT_LEAST_ONCE
    slot = Slot(a_task((A, B), (X,), at_least_once=casual))
    slot.feed(A, "a1", EndOfInput())
    slot.feed(B, "b1", EndOfInput())
    slot.trigger(barrier(1, alignment))
    slot.upload(1)

    assert slot.state_at(1) == {"a1", "b1"}
    assert slot.sent[X] == ["a1", "b1", barrier(1, alignment)]
    assert slot.acks == [1]
