"""A link carries values in order, never waits to send, and ends in one way only."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import pytest

from coordinated_job import SUM_0
from throwaway_certificates import a_certificate
from weir.core.attempt import FailureCause
from weir.core.ids import AttemptId, CheckpointId
from weir.errors import JobRejected
from weir.wire import frames
from weir.wire.authenticated_sockets import Listener, Purpose, dial
from weir.wire.control_messages import CheckpointAborted, ShutDownSlot, SubtaskFailure
from weir.wire.frames import write_frame
from weir.wire.message_link import MessageLink

SECRET = b"the secret of this very job....."
LONG_ENOUGH = 20.0


def linked(near, far):
    return MessageLink(near, "near"), MessageLink(far, "far")


class SocketWithoutMemory(socket.socket):
    """What a write finds when the machine has nothing left."""

    def sendall(self, *_):
        raise MemoryError


@pytest.fixture
def pair():
    near, far = linked(*socket.socketpair())
    yield near, far
    near.close()
    far.close()


def test_messages_arrive_in_order(pair):
    """C4."""
    near, far = pair
    for number in range(100):
        near.send(CheckpointAborted(CheckpointId(number)))
    assert [far.receive().checkpoint for _ in range(100)] == list(range(100))


def test_both_ends_speak_at_once(pair):
    """C4."""
    near, far = pair
    near.send(ShutDownSlot())
    far.send(CheckpointAborted(CheckpointId(1)))
    assert (far.receive(), near.receive()) == (ShutDownSlot(), CheckpointAborted(1))


def test_sending_does_not_wait_for_a_peer_that_does_not_read(pair):
    """A11: the sender is the loop of a driver or the mailbox of a slot."""
    near, far = pair
    for number in range(20_000):
        near.send(CheckpointAborted(CheckpointId(number)))
    assert far.receive() == CheckpointAborted(0)
    near.cut()


def test_closing_writes_what_is_queued(pair):
    """R3: the last message is often the one to shut down."""
    near, far = pair
    near.send(ShutDownSlot())
    near.close()
    assert far.receive() == ShutDownSlot()


def test_the_end_of_the_peer_is_a_connection_error(pair):
    """R1."""
    near, far = pair
    near.close()
    with pytest.raises(ConnectionError):
        far.receive()


def test_a_cut_is_heard_at_both_ends(pair):
    """R1: also by a thread that waits here."""
    near, far = pair
    with ThreadPoolExecutor(1) as waiting:
        heard = waiting.submit(near.receive)
        near.cut()
        with pytest.raises(ConnectionError):
            heard.result(LONG_ENOUGH)
    with pytest.raises(ConnectionError):
        far.receive()


def test_a_peer_that_the_kernel_gave_up_is_a_connection_error():
    """R1: a machine that lost its power closes nothing; its keepalive just stops."""
    near, far = socket.socketpair()
    near.settimeout(0.001)
    link = MessageLink(near, "near")
    with pytest.raises(ConnectionError, match="timed out"):
        link.receive()
    link.close()
    far.close()


def test_a_link_that_was_closed_here_is_a_connection_error(pair):
    """R1: the thread that reads ends by itself."""
    near, _ = pair
    near.close()
    with pytest.raises(ConnectionError):
        near.receive()


def test_an_unreadable_message_ends_the_link():
    """X2, X3."""
    near, far = socket.socketpair()
    link = MessageLink(near, "near")
    write_frame(far, 1, b'{"$": "NoSuchWord"}')
    with pytest.raises(ConnectionError, match="unreadable message"):
        link.receive()
    link.close()
    far.close()


def test_a_message_above_the_limit_is_refused_to_its_sender(pair, monkeypatch):
    """R7 U3: by name, size and remedy; the link carries the next one."""
    monkeypatch.setattr(frames, "FRAME_LIMIT", 1000)
    near, far = pair
    with pytest.raises(JobRejected, match=r"SubtaskFailure .* \d{4} bytes: .* 1000\..*Remedy"):
        near.send(SubtaskFailure(AttemptId(1), SUM_0, FailureCause.USER_CODE, "x" * 1000))
    near.send(ShutDownSlot())
    assert far.receive() == ShutDownSlot()


def test_a_link_whose_writer_cannot_go_on_ends(monkeypatch):
    """R1: after an error on one side, both ends learn of it."""
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    near, far = socket.socketpair()
    near, far = linked(SocketWithoutMemory(near.family, near.type, 0, near.detach()), far)
    near.send(ShutDownSlot())
    with pytest.raises(ConnectionError):
        far.receive()
    with pytest.raises(ConnectionError):
        near.receive()
    near.close()
    far.close()


def test_a_link_may_be_closed_twice(pair):
    """R3."""
    near, _ = pair
    near.close()
    near.close()


def test_an_encrypted_link_carries_both_ways_at_once_and_can_be_cut(tmp_path):
    """X1: TLS is one setting, and changes nothing else."""
    tls = a_certificate(tmp_path, "job")
    guests = SimpleQueue()
    with ThreadPoolExecutor(2) as threads:
        listener = Listener("127.0.0.1", SECRET, Purpose.SLOT_CONTROL, tls)
        listener.serve(lambda sock, _: guests.put(sock))
        near = dial(listener.address, SECRET, Purpose.SLOT_CONTROL, tls, {"slot": "a"})
        near, far = linked(near, guests.get(timeout=LONG_ENOUGH))
        listener.close()
        received = [threads.submit(receive, link, 500) for link in (near, far)]
        for number in range(500):
            near.send(CheckpointAborted(CheckpointId(number)))
            far.send(CheckpointAborted(CheckpointId(number)))
        assert all(future.result(LONG_ENOUGH) == list(range(500)) for future in received)
        waiting = threads.submit(near.receive)
        near.cut()
        with pytest.raises(ConnectionError):
            waiting.result(LONG_ENOUGH)
    near.close()
    far.close()


def receive(link, count):
    return [link.receive().checkpoint for _ in range(count)]
