"""Where elements go, and what is kept for receivers that are not there yet."""

import pytest

from fake_connectors import READ_0, WORK_0, WRITE_0, FakeSink, FakeSource, a_chain, rows
from weir.core.ids import AttemptId, ChannelId, CheckpointId, EdgeId, Epoch, SlotId
from weir.core.rescale import StateAssignment
from weir.exchange import Arrived, Credited, Exchange
from weir.slot.slot_exchange import SlotExchange
from weir.wire.control_messages import DeploySubtasks, SubtaskAddress

HERE = SlotId("here")
FIRST, SECOND, THIRD = (1, 1), (1, 2), (1, 3)
INTO_WORK = ChannelId(EdgeId("rows"), 0, 0)
INTO_WRITE = ChannelId(EdgeId("done"), 0, 0)


@pytest.fixture
def exchange():
    peers = Exchange(HERE, "127.0.0.1", b"a secret that is long enough", None)
    yield SlotExchange(peers, a_chain(FakeSource(), FakeSink()).topology)
    peers.close()


def place(exchange, run, *subtasks):
    """These begin anew in this attempt; everybody sits here."""
    everyone = tuple(SubtaskAddress(s, HERE, "127.0.0.1", 1) for s in (READ_0, WORK_0, WRITE_0))
    own = tuple(StateAssignment(subtask) for subtask in subtasks)
    epoch, attempt = run
    exchange.place(DeploySubtasks(Epoch(epoch), AttemptId(attempt), CheckpointId(0), own, everyone))


def test_an_element_inside_the_slot_arrives_with_the_next_look(exchange):
    """Channels inside a slot behave as those between slots: not within the turn that sends."""
    place(exchange, FIRST, READ_0, WORK_0)
    batch = rows(1)
    exchange.send(FIRST, INTO_WORK, batch)
    assert exchange.has_local
    assert exchange.collect(10.0) == [Arrived(HERE, FIRST, INTO_WORK, batch)]
    assert not exchange.has_local


def test_a_credit_inside_the_slot_goes_to_the_sender(exchange):
    """R7."""
    place(exchange, FIRST, READ_0, WORK_0)
    exchange.grant(FIRST, INTO_WORK, 3, 16)
    assert exchange.collect(10.0) == [Credited(FIRST, INTO_WORK, 3, 16)]


def test_what_is_kept_is_given_once_and_in_order(exchange):
    """R1."""
    exchange.keep_early(FIRST, INTO_WORK, "a")
    exchange.keep_early(FIRST, INTO_WORK, "b")
    place(exchange, FIRST, WORK_0)
    assert exchange.take_early(WORK_0, FIRST) == [(INTO_WORK, "a"), (INTO_WORK, "b")]
    assert exchange.take_early(WORK_0, FIRST) == []


def test_what_an_older_attempt_sends_is_dropped(exchange):
    """C17."""
    place(exchange, SECOND, WORK_0)
    exchange.keep_early(FIRST, INTO_WORK, "old")
    assert exchange.take_early(WORK_0, FIRST) == []


def test_a_newer_attempt_of_another_region_takes_nothing_from_a_subtask_that_is_not_ready(exchange):
    """R4: regions restart on their own, each under its own attempt."""
    place(exchange, FIRST, WORK_0)
    exchange.keep_early(FIRST, INTO_WORK, "kept")
    place(exchange, SECOND, WRITE_0)
    assert exchange.take_early(WORK_0, FIRST) == [(INTO_WORK, "kept")]


def test_what_came_for_an_attempt_that_never_began_here_goes_with_the_next(exchange):
    """R7: nothing is kept that no attempt will take."""
    exchange.keep_early(FIRST, INTO_WORK, "for an attempt that ended before it began")
    place(exchange, SECOND, WRITE_0)
    assert exchange.take_early(WORK_0, FIRST) == []


def test_the_end_of_an_attempt_leaves_what_came_for_the_next(exchange):
    """R3."""
    place(exchange, FIRST, WORK_0)
    exchange.keep_early(FIRST, INTO_WORK, "old")
    exchange.keep_early(SECOND, INTO_WORK, "new")
    exchange.remove(WORK_0)
    assert exchange.take_early(WORK_0, FIRST) == []
    place(exchange, SECOND, WORK_0)
    assert exchange.take_early(WORK_0, SECOND) == [(INTO_WORK, "new")]


def test_an_attempt_is_current_from_its_deployment_to_its_end(exchange):
    """C17."""
    place(exchange, SECOND, WORK_0)
    assert exchange.is_current(WORK_0, SECOND)
    assert not exchange.is_current(WORK_0, THIRD)
    exchange.remove(WORK_0)
    assert not exchange.is_current(WORK_0, SECOND)


def test_a_subtask_talks_to_the_slots_at_the_other_ends_of_its_channels(exchange):
    """R1: a broken connection concerns only those."""
    place(exchange, FIRST, WORK_0)
    assert exchange.connects(READ_0, HERE)
    assert not exchange.connects(READ_0, "elsewhere")


def test_what_goes_to_a_slot_that_was_lost_goes_nowhere(exchange):
    """R1: the driver knows of the loss, and resets both ends."""
    exchange.send(FIRST, INTO_WRITE, rows(1))
    exchange.grant(FIRST, INTO_WRITE, 1, 16)
    assert exchange.collect(0.0) == []
