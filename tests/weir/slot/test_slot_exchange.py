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
def post():
    exchange = Exchange(HERE, "127.0.0.1", b"a secret that is long enough", None)
    yield SlotExchange(exchange, a_chain(FakeSource(), FakeSink()).topology)
    exchange.close()


def seat(post, run, *subtasks):
    """These begin anew in this attempt; everybody sits here."""
    everyone = tuple(SubtaskAddress(s, HERE, "127.0.0.1", 1) for s in (READ_0, WORK_0, WRITE_0))
    own = tuple(StateAssignment(subtask) for subtask in subtasks)
    epoch, attempt = run
    post.seat(DeploySubtasks(Epoch(epoch), AttemptId(attempt), CheckpointId(0), own, everyone))


def test_an_element_inside_the_slot_arrives_with_the_next_look(post):
    """Channels inside a slot behave as those between slots: not within the turn that sends."""
    seat(post, FIRST, READ_0, WORK_0)
    batch = rows(1)
    post.send(FIRST, INTO_WORK, batch)
    assert post.has_local
    assert post.collect(10.0) == [Arrived(HERE, FIRST, INTO_WORK, batch)]
    assert not post.has_local


def test_a_credit_inside_the_slot_goes_to_the_sender(post):
    """R7."""
    seat(post, FIRST, READ_0, WORK_0)
    post.grant(FIRST, INTO_WORK, 3)
    assert post.collect(10.0) == [Credited(FIRST, INTO_WORK, 3)]


def test_what_is_kept_is_given_once_and_in_order(post):
    """R1."""
    post.keep_early(FIRST, INTO_WORK, "a")
    post.keep_early(FIRST, INTO_WORK, "b")
    seat(post, FIRST, WORK_0)
    assert post.early(WORK_0, FIRST) == [(INTO_WORK, "a"), (INTO_WORK, "b")]
    assert post.early(WORK_0, FIRST) == []


def test_what_an_older_attempt_sends_is_nobodys(post):
    """C17."""
    seat(post, SECOND, WORK_0)
    post.keep_early(FIRST, INTO_WORK, "old")
    assert post.early(WORK_0, FIRST) == []


def test_a_newer_attempt_of_another_region_takes_nothing_from_a_subtask_that_is_not_ready(post):
    """R4: regions restart on their own, each under its own attempt."""
    seat(post, FIRST, WORK_0)
    post.keep_early(FIRST, INTO_WORK, "kept")
    seat(post, SECOND, WRITE_0)
    assert post.early(WORK_0, FIRST) == [(INTO_WORK, "kept")]


def test_what_came_for_an_attempt_that_never_began_here_goes_with_the_next(post):
    """R7: nothing is kept that nobody will ask for."""
    post.keep_early(FIRST, INTO_WORK, "for an attempt that ended before it began")
    seat(post, SECOND, WRITE_0)
    assert post.early(WORK_0, FIRST) == []


def test_the_end_of_an_attempt_leaves_what_came_for_the_next(post):
    """R3."""
    seat(post, FIRST, WORK_0)
    post.keep_early(FIRST, INTO_WORK, "old")
    post.keep_early(SECOND, INTO_WORK, "new")
    post.unseat(WORK_0)
    assert post.early(WORK_0, FIRST) == []
    seat(post, SECOND, WORK_0)
    assert post.early(WORK_0, SECOND) == [(INTO_WORK, "new")]


def test_an_attempt_is_current_from_its_deployment_to_its_end(post):
    """C17."""
    seat(post, SECOND, WORK_0)
    assert post.is_current(WORK_0, SECOND)
    assert not post.is_current(WORK_0, THIRD)
    post.unseat(WORK_0)
    assert not post.is_current(WORK_0, SECOND)


def test_a_subtask_talks_to_the_slots_at_the_other_ends_of_its_channels(post):
    """R1: a broken connection concerns only those."""
    seat(post, FIRST, WORK_0)
    assert post.talks_to(READ_0, HERE)
    assert not post.talks_to(READ_0, "elsewhere")


def test_what_goes_to_a_slot_that_was_lost_goes_nowhere(post):
    """R1: the driver knows of the loss, and resets both ends."""
    post.send(FIRST, INTO_WRITE, rows(1))
    post.grant(FIRST, INTO_WRITE, 1)
    assert post.collect(0.0) == []
