"""A peer that knows the job's secret gets a link; any other is dropped and logged."""

import re
import secrets
import socket
import ssl
from contextlib import ExitStack
from dataclasses import replace
from queue import Queue
from threading import Thread, active_count

import pytest

from throwaway_certificates import a_certificate
from weir.errors import JobRejected, Unavailable
from weir.wire import authenticated_sockets
from weir.wire.authenticated_sockets import MOST_UNAUTHENTICATED, Listener, Purpose, dial

SECRET = b"the secret of this very job....."
OTHER_SECRET = b"the secret of some other job...."
HELLO = {"slot": "slot-3"}
LONG_ENOUGH = 30


class OutOfThreads(Thread):
    """What a machine gives that has no thread left."""

    def start(self):
        raise RuntimeError("can't start new thread")


class Door:
    """A listener whose connections wait in a queue."""

    def __init__(self, secret=SECRET, tls=None):
        self.guests = Queue()
        self.listener = Listener("127.0.0.1", secret, Purpose.EXCHANGE, tls)
        self.listener.serve(lambda *guest: self.guests.put(guest))

    @property
    def address(self):
        return self.listener.address

    def next_guest(self):
        return self.guests.get(timeout=LONG_ENOUGH)

    def dialled(self, secret=SECRET, purpose=Purpose.EXCHANGE, tls=None):
        return dial(self.address, secret, purpose, tls, HELLO)

    def connected(self):
        """A raw connection, to misbehave on."""
        return socket.create_connection(self.address, timeout=LONG_ENOUGH)

    def close(self):
        self.listener.close()
        while not self.guests.empty():
            self.guests.get()[0].close()


@pytest.fixture
def open_door():
    doors = []

    def opened(**how):
        doors.append(Door(**how))
        return doors[-1]

    yield opened
    for door in doors:
        door.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return a_certificate(tmp_path_factory.mktemp("tls"), "job")


@pytest.fixture
def impostor():
    """A listener that answers every greeting with given bytes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            guest, _ = server.accept()
            with guest:
                guest.recv(100)
                guest.sendall(secrets.token_bytes(64))
                guest.recv(100)

        thread = Thread(target=answer)
        thread.start()
        yield server.getsockname()
        thread.join()


def test_who_knows_the_secret_gets_a_link_and_is_introduced(open_door):
    """X1."""
    door = open_door()
    with door.dialled() as near:
        far, hello = door.next_guest()
        with far:
            assert hello == HELLO
            near.sendall(b"over there")
            assert far.recv(100) == b"over there"
            far.sendall(b"and back")
            assert near.recv(100) == b"and back"


def test_a_listener_that_does_not_know_the_secret_is_refused(open_door, impostor):
    """X1: a slot must not send its rows to another program at an old address."""
    for address in (open_door(secret=OTHER_SECRET).address, impostor):
        where = re.escape(f"{address[0]}:{address[1]}")
        with pytest.raises(Unavailable, match=f"{where} .*: it does not know this job's secret"):
            dial(address, SECRET, Purpose.EXCHANGE, None, HELLO)


def test_a_dialler_that_does_not_know_the_secret_is_dropped_with_a_warning(open_door, caplog):
    """X1: even one that does not check the listener."""
    door = open_door()
    with door.connected() as intruder:
        where = "{}:{}".format(*intruder.getsockname())
        intruder.sendall(b"weir-link/1\n" + bytes(32))
        assert len(intruder.recv(64, socket.MSG_WAITALL)) == 64
        intruder.sendall(bytes(32) + b"\x00\x02{}")
        assert intruder.recv(1) == b""
    door.close()

    assert door.guests.empty()
    (warning,) = caplog.records
    assert warning.exc_info is None
    assert f"Dropped {where}" in warning.message
    assert "does not know this job's secret" in warning.message


def test_a_proof_for_one_purpose_is_worth_nothing_for_another(open_door):
    """X1."""
    door = open_door()
    with pytest.raises(Unavailable, match="secret for slot-control"):
        door.dialled(purpose=Purpose.SLOT_CONTROL)
    assert door.guests.empty()


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (b"GET / HTTP/1", "does not use Weir's protocol"),
        (b"weir", "closed the connection during the handshake"),
        (b"", "closed the connection during the handshake"),
    ],
)
def test_a_stranger_is_dropped_with_a_warning(open_door, caplog, said, cause):
    door = open_door()
    with door.connected() as stranger:
        stranger.sendall(said)
        stranger.shutdown(socket.SHUT_WR)
        assert stranger.recv(1) == b""
    door.close()

    (warning,) = caplog.records
    assert cause in warning.message


def test_a_silent_peer_does_not_delay_other_peers(open_door):
    door = open_door()
    with door.connected(), door.connected(), door.dialled():
        far, _ = door.next_guest()
        far.close()


def test_a_peer_that_says_nothing_is_dropped_in_the_end(open_door, monkeypatch, caplog):
    monkeypatch.setattr(authenticated_sockets, "_HANDSHAKE_SECONDS", 0.05)
    door = open_door()
    with door.connected() as silent:
        assert silent.recv(1) == b""
    door.close()

    (warning,) = caplog.records
    assert "timed out" in warning.message


def test_a_flood_of_strangers_keeps_no_slot_from_registering(open_door):
    """X1 R3: the oldest of those that prove nothing give way."""
    door = open_door()
    with ExitStack() as strangers:
        silent = [
            strangers.enter_context(door.connected()) for _ in range(2 * MOST_UNAUTHENTICATED)
        ]
        with door.dialled():
            far, hello = door.next_guest()
            far.close()
        assert hello == HELLO
        assert silent[0].recv(1) == b""


def test_a_flood_of_strangers_costs_a_bounded_number_of_threads(open_door):
    """R7: no peer on the network decides how many the driver has."""
    door = open_door()
    before = active_count()
    with ExitStack() as strangers:
        for _ in range(3 * MOST_UNAUTHENTICATED):
            strangers.enter_context(door.connected())
        with door.dialled():
            far, _ = door.next_guest()
            far.close()
            assert active_count() - before <= MOST_UNAUTHENTICATED


def test_a_listener_accepts_again_when_there_was_no_thread_for_a_guest(
    open_door, caplog, monkeypatch
):
    """R3: a lost slot can always register again."""
    door = open_door()
    with monkeypatch.context() as machine:
        machine.setattr(authenticated_sockets, "Thread", OutOfThreads)
        with door.connected() as unlucky:
            assert unlucky.recv(1) == b""
    with door.dialled():
        far, _ = door.next_guest()
        far.close()

    assert "can't start new thread" in caplog.text


def test_a_connection_without_a_thread_to_serve_it_is_dropped(caplog):
    """R3: the slot learns that its link has ended, and registers again."""

    def no_thread_left(*_):
        raise RuntimeError("can't start new thread")

    listener = Listener("127.0.0.1", SECRET, Purpose.EXCHANGE, None)
    listener.serve(no_thread_left)
    with dial(listener.address, SECRET, Purpose.EXCHANGE, None, HELLO) as near:
        assert near.recv(1) == b""
    listener.close()

    assert "can't start new thread" in caplog.text


def test_a_flood_of_strangers_does_not_fill_the_log(open_door, caplog):
    """X1: the first are named, the others are not."""
    door = open_door()
    for _ in range(100):
        with door.connected() as stranger:
            stranger.sendall(b"GET / HTTP/1")
            assert stranger.recv(1) == b""
    door.close()

    assert 0 < len(caplog.records) < 50


def test_closing_waits_for_no_slow_peer_and_ends_every_thread(open_door):
    door = open_door()
    with door.connected() as silent:
        silent.sendall(b"weir-link/1\n" + bytes(32))
        assert len(silent.recv(64, socket.MSG_WAITALL)) == 64
        door.close()
        assert silent.recv(1) == b""

    with pytest.raises(Unavailable, match="no peer answers at"):
        door.dialled()


def test_a_taken_port_is_named_with_the_remedy(open_door):
    """U3."""
    host, port = open_door().address
    with pytest.raises(
        JobRejected, match=f"port {port} of {host}.*in use.*another port, or port 0"
    ):
        Listener(host, SECRET, Purpose.EXCHANGE, None, port)


def test_the_kernel_gives_up_dead_peers_soon(open_door):
    door = open_door()
    with door.dialled() as near:
        far, _ = door.next_guest()
        with far:
            for end in (near, far):
                assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                assert end.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
                assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) < 10
            assert far.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 10_000


def test_tls_protects_a_link(open_door, certificate):
    """X1."""
    door = open_door(tls=certificate)
    with door.dialled(tls=certificate) as near:
        far, hello = door.next_guest()
        with far:
            assert hello == HELLO
            assert near.version() == "TLSv1.3"
            near.sendall(b"in private")
            assert far.recv(100) == b"in private"


def test_a_certificate_of_another_authority_is_refused(open_door, certificate, tmp_path):
    door = open_door(tls=a_certificate(tmp_path, "other"))
    with pytest.raises(Unavailable, match="certificate verify failed"):
        door.dialled(tls=certificate)


@pytest.mark.parametrize("encrypted", ["the dialler", "the listener"])
def test_tls_on_one_side_only_is_refused(open_door, certificate, encrypted):
    door = open_door(tls=certificate if encrypted == "the listener" else None)
    with pytest.raises(Unavailable):
        door.dialled(tls=certificate if encrypted == "the dialler" else None)
    assert door.guests.empty()


def test_a_man_in_the_middle_cannot_terminate_tls_with_another_certificate(
    open_door, certificate, tmp_path
):
    """X1: the proofs cover the certificate, so one that the dialler trusts is not enough."""
    door = open_door(tls=certificate)
    theirs = a_certificate(tmp_path, "middle")
    with MiddleMan(door, theirs) as address, pytest.raises(Unavailable, match="job's secret"):
        dial(address, SECRET, Purpose.EXCHANGE, theirs, HELLO)


class MiddleMan:
    """Ends TLS with its own certificate and passes the listener's first answer on."""

    def __init__(self, door, tls):
        self.door = door
        self.server = socket.create_server(("127.0.0.1", 0))
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.load_cert_chain(tls.certificate, tls.key)
        self.outward = ssl.create_default_context()
        self.outward.check_hostname = False
        self.outward.verify_mode = ssl.CERT_NONE
        self.thread = Thread(target=self.relay)

    def __enter__(self):
        self.thread.start()
        return self.server.getsockname()

    def __exit__(self, *_):
        self.thread.join()
        self.server.close()

    def relay(self):
        victim, _ = self.server.accept()
        with (
            self.context.wrap_socket(victim, server_side=True) as victim,
            self.outward.wrap_socket(self.door.connected()) as listener,
        ):
            listener.sendall(victim.recv(44))
            victim.sendall(listener.recv(64))
            victim.recv(1)


def test_unusable_tls_files_are_named(certificate, tmp_path):
    """U3."""
    missing = tmp_path / "missing.pem"
    with pytest.raises(JobRejected, match=r"missing\.pem.*No such file"):
        Listener("127.0.0.1", SECRET, Purpose.EXCHANGE, replace(certificate, key=missing))
    with pytest.raises(JobRejected, match=r"missing\.pem.*No such file"):
        dial(
            ("127.0.0.1", 1), SECRET, Purpose.EXCHANGE, replace(certificate, authority=missing), {}
        )
