"""The one thread of a slot does control first, then data in bounded and fair turns."""

from dataclasses import replace

import pytest

from subtask_harness import (
    REPLAY,
    SUBTASK,
    A,
    B,
    C,
    Slot,
    X,
    Y,
    a_task,
    barrier,
    cancel,
    savepoint,
)
from weir.core.barriers import EndOfData, EndOfInput, Idle, Watermark
from weir.core.ids import Millis
from weir.core.scheduler import (
    ControlMarker,
    Mail,
    PollSource,
    ProcessBatches,
    Scheduler,
    Suspend,
    TimeMarker,
)
from weir.core.snapshots import CheckpointKind
from weir.core.task import Grant


def scheduler_of(*tasks, output_limit=2, batch_limit=10):
    scheduler = Scheduler(output_limit, batch_limit)
    for task in tasks:
        scheduler.add(task)
    return scheduler


def numbered(index, task):
    return replace(task, subtask=SUBTASK._replace(index=index))


def queued(task, channel, *elements):
    task.inboxes[channel].queue.extend(elements)
    return task


def with_full_output(task):
    """As many batches wait for credit as may."""
    for _ in range(2):
        task.emit(X, "waiting")
    return task


def a_full_task(channel, *elements):
    return with_full_output(queued(a_task((A, B), (X,), credit=0), channel, *elements))


def test_mail_of_the_driver_comes_before_everything():
    """A11: a trigger or an abort waits for no barrier, let alone data."""
    scheduler = scheduler_of(queued(a_task(), A, barrier(1), "a1"))
    scheduler.post(SUBTASK, "trigger")
    scheduler.post(SUBTASK, "abort")

    assert scheduler.next() == Mail(SUBTASK, "trigger")
    assert scheduler.next() == Mail(SUBTASK, "abort")
    assert scheduler.next() == ControlMarker(SUBTASK, A, barrier(1))


@pytest.mark.parametrize("marker", [barrier(1), cancel(1), EndOfInput()], ids=repr)
def test_control_comes_before_data(marker):
    """A11: wherever in the slot it is."""
    busy = queued(a_task(), A, "a1")
    other = queued(numbered(1, a_task()), B, marker)
    scheduler = scheduler_of(busy, other)

    assert scheduler.next() == ControlMarker(other.subtask, B, marker)
    assert scheduler.next() == ProcessBatches(SUBTASK, A, ["a1"])


@pytest.mark.parametrize("marker", [barrier(1), cancel(1), EndOfInput()], ids=repr)
def test_control_is_handled_whether_or_not_an_output_has_room(marker):
    """A11: backpressure holds data back, never a checkpoint."""
    scheduler = scheduler_of(a_full_task(A, marker, "a1"))

    assert scheduler.next() == ControlMarker(SUBTASK, A, marker)
    assert scheduler.next() == Suspend()


@pytest.mark.parametrize("element", ["a1", Watermark(Millis(5)), Idle(), EndOfData()], ids=repr)
def test_data_waits_until_every_output_has_room(element):
    """A11: time and ends of data too, for user code may emit at them."""
    task = queued(a_task((A,), (X, Y), credit=0), A, element)
    scheduler = scheduler_of(task)
    for _ in range(2):
        task.emit(Y, "waiting")
    assert scheduler.next() == Suspend()

    task.granted(Y, 1)
    assert not isinstance(scheduler.next(), Suspend)


def test_a_subtask_without_room_does_not_hold_up_another():
    """A11: they share a thread, not their outputs."""
    other = queued(numbered(1, a_task()), A, "a1")
    scheduler = scheduler_of(a_full_task(A, "never"), other)

    assert scheduler.next() == ProcessBatches(other.subtask, A, ["a1"])


def test_control_keeps_its_place_in_its_channel():
    """A1, A11: first of all turns, but not before the rows that it is behind."""
    scheduler = scheduler_of(queued(a_task(), A, "a1", barrier(1)))

    assert scheduler.next() == ProcessBatches(SUBTASK, A, ["a1"])
    assert scheduler.next() == ControlMarker(SUBTASK, A, barrier(1))


@pytest.mark.parametrize("element", ["a1", barrier(2), Watermark(Millis(5))], ids=repr)
def test_nothing_is_read_from_a_blocked_channel(element):
    """A2: neither data nor control nor time."""
    task = queued(a_task(), A, element)
    task.aligner.blocked.add(A)

    assert scheduler_of(task).next() == Suspend()


def test_consecutive_batches_coalesce_into_one_turn():
    """A11: a busy channel has large turns, up to a limit and up to the next marker."""
    scheduler = scheduler_of(queued(a_task(), A, "a1", "a2", "a3", barrier(1), "a4"), batch_limit=2)

    assert scheduler.next() == ProcessBatches(SUBTASK, A, ["a1", "a2"])
    assert scheduler.next() == ProcessBatches(SUBTASK, A, ["a3"])


def test_a_turn_that_is_over_makes_room_for_what_it_consumed():
    """A11: the sender is granted as many batches again."""
    scheduler = scheduler_of(queued(a_task(), A, "a1", "a2"))
    turn = scheduler.next()

    assert scheduler.processed(turn) == [Grant(A, 2)]


def test_a_turn_that_was_cut_puts_the_rest_back():
    """A11: it still takes room, is first in its channel, and is granted when it is consumed."""
    scheduler = scheduler_of(queued(a_task(), A, "a1", "a2", "a3"), batch_limit=2)
    turn = scheduler.next()

    assert scheduler.processed(turn, rest=["rest of a2"]) == [Grant(A, 1)]
    turn = scheduler.next()
    assert turn == ProcessBatches(SUBTASK, A, ["rest of a2", "a3"])
    assert scheduler.processed(turn) == [Grant(A, 2)]


def test_a_turn_that_consumed_no_whole_batch_grants_nothing():
    """A11: a long batch is cut many times, and granted once."""
    scheduler = scheduler_of(queued(a_task(), A, "a1"))

    assert scheduler.processed(scheduler.next(), rest=["rest of a1"]) == []


def test_control_comes_between_the_pieces_of_a_long_batch():
    """A11: a barrier on another channel waits one turn, not one batch."""
    slot = Slot(a_task(leads_to=()), rows_per_turn=1)
    slot.arrive(A, ("a1", "a2", "a3"))
    slot.turn()
    slot.arrive(B, cancel(1))
    slot.run()

    assert slot.story == [
        "a1",
        "decline 1: CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER",
        "a2",
        "a3",
    ]


def processed_by(scheduler, number):
    """The subtasks of so many turns, when all of them always have more to do."""
    order = []
    for _ in range(number):
        turn = scheduler.next()
        order.append((turn.subtask.index, turn.channel))
        scheduler.processed(turn, rest=["more"])
    return order


def test_no_input_is_preferred_for_good():
    """A11: round and round, even if each always has more."""
    task = a_task((A, B, C))
    for channel in (A, B, C):
        queued(task, channel, "more")

    assert processed_by(scheduler_of(task), 6) == [(0, c) for c in (A, B, C, A, B, C)]


def test_an_idle_input_does_not_cost_a_busy_one_its_turn():
    """A11: a turn goes to the next channel that has something."""
    task = queued(queued(a_task((A, B, C)), A, "more"), C, "more")

    assert processed_by(scheduler_of(task), 4) == [(0, c) for c in (A, C, A, C)]


def test_no_subtask_is_preferred_for_good():
    """A11: each gets one turn per round, however many inputs it has."""
    wide = a_task((A, B))
    for channel in (A, B):
        queued(wide, channel, "more")
    narrow = queued(numbered(1, a_task((C,))), C, "more")

    assert processed_by(scheduler_of(wide, narrow), 4) == [(0, A), (1, C), (0, B), (1, C)]


def test_recovered_data_goes_before_anything_new():
    """A10, A11: rows and time of the other channels wait until the recovered one has ended."""
    task = queued(a_task((REPLAY, A)), A, "a1")
    scheduler = scheduler_of(task)
    assert scheduler.next() == Suspend()

    queued(task, REPLAY, "r1", EndOfInput())
    replayed = scheduler.next()
    assert replayed == ProcessBatches(SUBTASK, REPLAY, ["r1"])
    assert scheduler.processed(replayed) == [], "there is no sender to grant anything to"
    end = scheduler.next()
    assert end == ControlMarker(SUBTASK, REPLAY, EndOfInput())
    task.reach(REPLAY, end.marker, Millis(0))

    assert scheduler.next() == ProcessBatches(SUBTASK, A, ["a1"])


def test_control_does_not_wait_for_recovered_data():
    """A11: a checkpoint may come while the last one's in-flight data is still replayed."""
    task = queued(queued(a_task((REPLAY, A)), A, barrier(1)), REPLAY, "r1")

    assert scheduler_of(task).next() == ControlMarker(SUBTASK, A, barrier(1))


def test_a_source_reads_while_its_outputs_have_room():
    """A11: backpressure ends at the source."""
    source = a_task((), (X,), credit=0)
    scheduler = scheduler_of(source)
    assert scheduler.next() == PollSource(SUBTASK)

    with_full_output(source)
    assert scheduler.next() == Suspend()
    source.granted(X, 1)
    assert scheduler.next() == PollSource(SUBTASK)


def test_a_source_without_splits_is_left_alone():
    """A11: until something arrives for it."""
    scheduler = scheduler_of(a_task((), (X,)))
    scheduler.idle_sources.add(SUBTASK)
    assert scheduler.next() == Suspend()

    scheduler.idle_sources.discard(SUBTASK)
    assert scheduler.next() == PollSource(SUBTASK)


def test_a_source_at_its_end_reads_no_more():
    """C14: it waits for the checkpoint that covers its end."""
    source = a_task((), (X,))
    source.at_end = True

    assert scheduler_of(source).next() == Suspend()


def test_a_source_behind_a_synchronous_savepoint_reads_no_more():
    """C11: after its barrier no record leaves a source."""
    source = a_task((), (X,))
    source.trigger(savepoint(1, CheckpointKind.SAVEPOINT_SUSPEND), Millis(0))

    assert scheduler_of(source).next() == Suspend()


def test_time_and_ends_of_data_are_turns_of_their_own():
    """A11: user code may run long at them, so they stand between turns like batches."""
    scheduler = scheduler_of(queued(a_task(), A, "a1", Watermark(Millis(5)), EndOfData()))

    assert [scheduler.next() for _ in range(4)] == [
        ProcessBatches(SUBTASK, A, ["a1"]),
        TimeMarker(SUBTASK, A, Watermark(Millis(5))),
        TimeMarker(SUBTASK, A, EndOfData()),
        Suspend(),
    ]


def test_a_subtask_that_is_gone_takes_its_mail_with_it():
    """R4: its mail is dropped."""
    gone, stays = queued(a_task(), A, "a1"), numbered(1, a_task())
    scheduler = scheduler_of(gone, stays)
    turn = scheduler.next()
    scheduler.post(gone.subtask, "late")
    scheduler.post(stays.subtask, "hello")
    scheduler.remove(gone.subtask)
    scheduler.post(gone.subtask, "later")

    assert scheduler.processed(turn, rest=["rest of a1"]) == []
    assert scheduler.next() == Mail(stays.subtask, "hello")
    assert scheduler.next() == Suspend()


def test_removing_a_subtask_twice_is_removing_it_once():
    """R4: its slot may learn of its end from both sides."""
    scheduler = scheduler_of(a_task())
    scheduler.remove(SUBTASK)
    scheduler.remove(SUBTASK)

    assert scheduler.next() == Suspend()


def test_a_subtask_that_comes_back_is_new():
    """R4: the next attempt's source has splits to read, whatever the last one had."""
    scheduler = scheduler_of(a_task((), (X,)))
    scheduler.idle_sources.add(SUBTASK)
    scheduler.remove(SUBTASK)
    scheduler.add(a_task((), (X,)))

    assert scheduler.next() == PollSource(SUBTASK)
