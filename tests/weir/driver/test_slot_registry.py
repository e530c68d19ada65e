"""Slots register, receive messages, and are detected when they are lost."""

import socket
import threading
from contextlib import ExitStack
from queue import SimpleQueue

import pytest

from coordinated_job import READ_0, SUM_0
from weir.core.attempt import FailureCause, SlotLost, SlotRegistered, SubtaskFailed
from weir.core.ids import AttemptId, SlotId
from weir.core.lifecycle import SubtaskRunning
from weir.driver.slot_registry import MOST_REASONS, Patience, SlotRegistry
from weir.wire.authenticated_sockets import MOST_UNAUTHENTICATED, Listener, Purpose, dial
from weir.wire.control_messages import (
    CheckpointAborted,
    EventReported,
    Heartbeat,
    Registered,
    ShutDownSlot,
    SubtaskFailure,
    SubtaskMessage,
    SubtaskMetrics,
    TerminateSlot,
)
from weir.wire.message_link import MessageLink

SECRET = b"the secret of this very job....."
SLOT = SlotId("slot-0")
FIRST = AttemptId(1)
LONG_ENOUGH = 20.0
HEARTBEAT = Heartbeat(
    0, 4096, (SubtaskMetrics(SUM_0, 10, 5, 3, back_pressured=False, watermark=7),)
)


class Pool:
    """Remembers which tasks it was asked to end."""

    def __init__(self):
        self.killed = SimpleQueue()

    def kill(self, task_attempt, why):
        self.killed.put((task_attempt, why))


class Bench:
    """A driver's slots, and links of slots that a test plays itself."""

    def __init__(self, patience):
        self.heard = SimpleQueue()
        self.pool = Pool()
        self._links = []
        listener = Listener("127.0.0.1", SECRET, Purpose.SLOT_CONTROL, None)
        self.slots = SlotRegistry(listener, self.pool, patience, self.heard.put)
        self.slots.open()

    def link(self):
        sock = dial(self.slots.address, SECRET, Purpose.SLOT_CONTROL, None, {"slot": SLOT})
        self._links.append(MessageLink(sock, SLOT))
        return self._links[-1]

    def register(self, name=SLOT, port=77):
        link = self.link()
        link.send(Registered(name, "executor-1", 5, "10.0.0.1", port, 4711))
        assert self.next() == SlotRegistered(name, "executor-1")
        return link

    def next(self):
        return self.heard.get(timeout=LONG_ENOUGH)

    def close(self):
        self.slots.close()
        for link in self._links:
            link.close()


@pytest.fixture
def bench():
    bench = Bench(Patience())
    yield bench
    bench.close()


# Coming and going


def test_a_slot_that_registers_is_reported_to_the_core_and_has_an_address(bench):
    """R3."""
    bench.register()
    assert bench.slots.addresses() == {SLOT: ("10.0.0.1", 77)}


def test_a_slot_whose_link_ends_is_lost_once(bench):
    """R1: its process is gone, with all that ran in it."""
    link = bench.register()
    link.close()
    lost = bench.next()
    assert isinstance(lost, SlotLost)
    assert (lost.slot, bench.slots.addresses()) == (SLOT, {})
    assert bench.heard.empty()


def test_a_peer_that_begins_with_another_message_is_no_slot(bench, caplog):
    """X3: it is cut off, and the driver goes on."""
    stranger = bench.link()
    stranger.send(ShutDownSlot())
    with pytest.raises(ConnectionError):
        stranger.receive()
    assert "could not register, it began with: ShutDownSlot" in caplog.text
    bench.register()


def test_a_flood_of_strangers_keeps_no_slot_from_registering(bench):
    """X1 R3: a lost slot can always come back."""
    with ExitStack() as strangers:
        for _ in range(MOST_UNAUTHENTICATED + 20):
            sock = socket.create_connection(bench.slots.address, timeout=LONG_ENOUGH)
            strangers.enter_context(sock)
        bench.register()


def test_a_slot_that_says_what_no_slot_says_is_lost(bench):
    """X3."""
    link = bench.register()
    link.send(TerminateSlot())
    assert isinstance(bench.next(), SlotLost)


# From slots


def test_what_a_slot_says_reaches_the_core_in_order(bench):
    """C4."""
    link = bench.register()
    said = [SubtaskRunning(FIRST, subtask) for subtask in (READ_0, SUM_0)]
    for event in said:
        link.send(EventReported(event))
    assert [bench.next(), bench.next()] == said


def test_a_failure_is_an_event_for_the_core_and_words_for_people(bench, caplog):
    """R4, U3."""
    link = bench.register()
    link.send(SubtaskFailure(FIRST, SUM_0, FailureCause.USER_CODE, "ValueError: 2 is not a number"))
    failed = bench.next()
    assert isinstance(failed, SubtaskFailed)
    assert (failed.attempt, failed.subtask) == (FIRST, SUM_0)
    assert 0 <= failed.draw < 1
    assert bench.slots.reason_of(failed) == "sum-0: ValueError: 2 is not a number"
    assert "Task sum-0 failed: ValueError: 2 is not a number" in caplog.text


def test_who_fails_because_others_were_sent_home_first_changes_no_words(bench):
    """U3: a job that failed reports the cause, not later consequences."""
    link = bench.register()
    link.send(SubtaskFailure(FIRST, SUM_0, FailureCause.USER_CODE, "ValueError: 2 is not a number"))
    failed = bench.next()
    bench.slots.dismiss()
    link.send(
        SubtaskFailure(FIRST, READ_0, FailureCause.CONNECTION, "the connection to slot-1 broke")
    )
    link.close()
    bench.slots.until_gone()
    assert bench.slots.reason_of(failed) == "sum-0: ValueError: 2 is not a number"
    assert bench.heard.empty()


def test_the_reason_of_a_failure_outlives_the_loss_of_its_slot(bench):
    """U3: a process in which user code failed is ended, often before the job reports its end."""
    link = bench.register()
    link.send(SubtaskFailure(FIRST, SUM_0, FailureCause.USER_CODE, "ValueError: 2 is not a number"))
    failed = bench.next()
    link.close()
    assert isinstance(bench.next(), SlotLost)
    assert bench.slots.reason_of(failed) == "sum-0: ValueError: 2 is not a number"


def test_only_the_last_reasons_are_remembered(bench):
    """U3 R7: however often subtasks fail."""
    link = bench.register()
    failures = []
    for attempt in range(1, MOST_REASONS + 2):
        link.send(SubtaskFailure(attempt, SUM_0, FailureCause.USER_CODE, "boom"))
        failures.append(bench.next())
    first, *others = (bench.slots.reason_of(failed) for failed in failures)
    assert first == ""
    assert set(others) == {"sum-0: boom"}


def test_the_last_pulse_of_each_slot_is_known(bench):
    """U1."""
    link = bench.register()
    assert bench.slots.heartbeats() == {}
    link.send(HEARTBEAT)
    link.send(EventReported(SubtaskRunning(FIRST, SUM_0)))
    bench.next()
    ((registered, heartbeat),) = bench.slots.heartbeats().values()
    assert (registered.slot, heartbeat) == (SLOT, HEARTBEAT)


# To slots


def test_a_message_to_a_subtask_carries_its_attempt(bench):
    """C4 C17: and arrives as it was decided."""
    link = bench.register()
    for checkpoint in (1, 2):
        bench.slots.send_to_subtask(SLOT, SUM_0, FIRST, CheckpointAborted(checkpoint))
    received = [link.receive(), link.receive()]
    assert received == [
        SubtaskMessage(SUM_0, FIRST, CheckpointAborted(1)),
        SubtaskMessage(SUM_0, FIRST, CheckpointAborted(2)),
    ]


def test_a_slot_that_is_gone_hears_nothing(bench):
    """R1: its loss is, or will be, an event."""
    bench.slots.send_to_subtask(SlotId("unknown"), SUM_0, FIRST, CheckpointAborted(1))
    assert bench.heard.empty()


def test_a_slot_in_which_user_code_failed_is_terminated(bench):
    """R4."""
    link = bench.register()
    bench.slots.recycle(SLOT)
    assert link.receive() == TerminateSlot()


def test_closing_the_registry_shuts_slots_down_and_reports_none_lost(bench):
    """R3."""
    link = bench.register()
    bench.slots.close()
    assert link.receive() == ShutDownSlot()
    link.close()
    assert bench.heard.empty()


def test_a_slot_that_was_sent_home_is_waited_for_until_it_has_gone(bench):
    """C9: what it has begun to write is written then."""
    link = bench.register()
    bench.slots.dismiss()
    waiting = threading.Thread(target=bench.slots.until_gone)
    waiting.start()
    assert link.receive() == ShutDownSlot()
    assert waiting.is_alive()
    link.close()
    waiting.join()
    assert bench.slots.addresses() == {}


# Hanging


def test_a_slot_that_falls_silent_is_ended_and_lost():
    """R1: Spark starts another in its place."""
    bench = Bench(Patience(silence_seconds=0.0))
    try:
        bench.register()
        assert bench.pool.killed.get(timeout=LONG_ENOUGH) == (5, "it is silent")
        assert isinstance(bench.next(), SlotLost)
    finally:
        bench.close()


def test_a_slot_whose_turn_does_not_end_is_ended_and_lost():
    """R1, A11: it still sends heartbeats, and does nothing else."""
    bench = Bench(Patience(turn_seconds=30.0))
    try:
        bench.register().send(Heartbeat(31_000, 0, ()))
        assert bench.pool.killed.get(timeout=LONG_ENOUGH) == (5, "one turn has lasted 31 s")
        assert isinstance(bench.next(), SlotLost)
    finally:
        bench.close()
