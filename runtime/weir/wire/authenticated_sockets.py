"""Opens sockets between driver and slots, and accepts only peers that know the job's secret.

Both ends prove that they know it before they send anything else (spec X1): each sends a nonce, and
each answers with an HMAC over both nonces, its own role, the purpose of the link and, under TLS,
the listener's certificate. So a recorded proof cannot be replayed, a proof cannot be sent back to
its author, and no man in the middle can terminate TLS with another certificate. Without TLS the
secret still keeps other programs out, but a reader of the network can read the rows.

Certificates are checked against the job's authority and not against host names: pods have no
permanent ones, and the secret already authenticates the peer.

A listener authenticates each connection on a separate thread, so that a slow one delays no other; a
connection that fails is dropped with a warning that names its address. Unauthenticated connections
are limited in number, and the oldest is evicted when another one waits: a flood of connections
costs a bounded number of threads, and cannot keep a slot from registering. Only ``close`` ends
accepting.
"""

import hmac
import json
import logging
import secrets
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from threading import Condition, Event, Thread
from time import monotonic

from weir.errors import JobRejected, Unavailable

Address = tuple[str, int]
Hello = Mapping[str, object]
"""The description of a connecting peer, such as its slot's name: a small JSON object."""

AcceptHandler = Callable[[socket.socket, Hello], None]
"""Takes over an authenticated socket. Called on the connection's thread, never after ``close``."""

LEAST_SECRET = 16
"""A secret of fewer bytes could be guessed."""

_GREETING = b"weir-link/1\n"
_ACCEPTED = b"\x01"
_NONCE = 32
_PROOF = sha256().digest_size
_HELLO_LIMIT = 4096
_HANDSHAKE_SECONDS = 5.0
_RETRY_SECONDS = 1.0
_BACKLOG = 1024

MOST_UNAUTHENTICATED = 256
"""So many peers may be in the handshake at a time."""

_UNDISTURBED_SECONDS = 0.5
"""A connection is not evicted for so long, so that many slots can register at once."""

_WARNING_SECONDS = 60.0
_MOST_WARNINGS = 30
"""So many dropped connections are logged in that time; a flood must not fill the disk."""

_IDLE_SECONDS, _PROBE_SECONDS, _PROBES = 4, 2, 3
_UNANSWERED_MS = 10_000
_UNREAD_MS = 60_000

_log = logging.getLogger(__name__)


class Purpose(StrEnum):
    """What a link is for. A proof made for one purpose is worth nothing for another."""

    SLOT_CONTROL = "slot-control"
    EXCHANGE = "exchange"


@dataclass(frozen=True, slots=True)
class Tls:
    """The job's certificate, its key, and the authority that signed it: PEM files.

    A certificate that signed itself is its own authority.
    """

    certificate: Path
    key: Path
    authority: Path


class _Refused(Exception):
    """The peer failed the handshake. The message is the reason."""


class _Handshake:
    """The handshake on a new connection, which must complete before a deadline."""

    def __init__(self, sock: socket.socket, secret: bytes, purpose: Purpose) -> None:
        self._sock = sock
        self._secret = secret
        self._purpose = purpose
        self._deadline = monotonic() + _HANDSHAKE_SECONDS

    def encrypt(self) -> bytes:
        """Begin TLS, if the link has it. Returns the mark of the certificate that was shown."""
        if not isinstance(self._sock, ssl.SSLSocket):
            return b""
        self._limit()
        self._sock.do_handshake()
        return _fingerprint(self._sock.getpeercert(binary_form=True) or b"")

    def send(self, data: bytes) -> None:
        self._limit()
        self._sock.sendall(data)

    def receive(self, length: int) -> bytes:
        received = b""
        while len(received) < length:
            self._limit()
            more = self._sock.recv(length - len(received))
            if not more:
                raise _Refused("it closed the connection during the handshake")
            received += more
        return received

    def proof(self, role: bytes, *parts: bytes) -> bytes:
        mac = hmac.new(self._secret, digestmod=sha256)
        for part in (role, self._purpose.encode(), *parts):
            mac.update(len(part).to_bytes(4, "big") + part)
        return mac.digest()

    def verify(self, given: bytes, role: bytes, *parts: bytes) -> None:
        if not hmac.compare_digest(given, self.proof(role, *parts)):
            raise _Refused(f"it does not know this job's secret for {self._purpose}")

    def _limit(self) -> None:
        left = self._deadline - monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(left)


def dial(
    address: Address, secret: bytes, purpose: Purpose, tls: Tls | None, hello: Hello
) -> socket.socket:
    """Connect to a listener of this job. The socket that is returned blocks and has no timeout."""
    where = f"{address[0]}:{address[1]}"
    assert len(secret) >= LEAST_SECRET, "a job's secret is long"
    context = None if tls is None else _dialling_context(tls)
    try:
        sock = socket.create_connection(address, _HANDSHAKE_SECONDS)
    except (OSError, UnicodeError, OverflowError) as problem:  # the last two: no such host, port
        raise Unavailable(
            f"no peer answers at {where} ({purpose})",
            _cause(problem),
            "check that the machines of the job reach each other; it is tried again",
            retry_after=_RETRY_SECONDS,
        ) from problem
    unread_ms = _UNREAD_MS if purpose is Purpose.EXCHANGE else _UNANSWERED_MS
    try:
        _notice_breaks(sock, unread_ms)
        if context is not None:
            sock = context.wrap_socket(sock, do_handshake_on_connect=False)
        _authenticate_as_client(_Handshake(sock, secret, purpose), hello)
        sock.settimeout(None)
    except (OSError, _Refused) as problem:
        sock.close()
        raise Unavailable(
            f"no peer of this job is at {where} ({purpose})",
            _cause(problem),
            "check that the address belongs to this job; it is tried again",
            retry_after=_RETRY_SECONDS,
        ) from problem
    return sock


@dataclass(slots=True, eq=False)
class _PendingConnection:
    """A peer on its way through the handshake."""

    sock: socket.socket
    peer: str
    since: float = field(default_factory=monotonic)
    thread: Thread | None = None
    is_authenticated: bool = False
    """It has proved that it knows the secret."""
    is_evicted: bool = False


class _RateLimitedWarnings:
    """Logs dropped connections, up to a limit; the rest is counted."""

    def __init__(self) -> None:
        self._since = monotonic()
        self._given = 0
        self._left_out = 0

    def give(self, text: str, *details: object) -> None:
        now = monotonic()
        if now - self._since > _WARNING_SECONDS:
            if self._left_out:
                _log.warning("%s more connections were dropped and not logged.", self._left_out)
            self._since, self._given, self._left_out = now, 0, 0
        if self._given < _MOST_WARNINGS:
            _log.warning(text, *details)
            self._given += 1
        else:
            self._left_out += 1


class Listener:
    """Accepts links of one purpose."""

    def __init__(
        self, bind_host: str, secret: bytes, purpose: Purpose, tls: Tls | None, port: int = 0
    ) -> None:
        """Listen at a host by which the others reach this one; port 0 takes any free port."""
        assert len(secret) >= LEAST_SECRET, "a job's secret is long"
        self._secret = secret
        self._purpose = purpose
        self._tls = None if tls is None else _ListeningTls(tls)
        self._sock = _bound(bind_host, port)
        self.address: Address = self._sock.getsockname()[:2]
        self._closing = Event()
        self._changed = Condition()
        self._pending: dict[_PendingConnection, None] = {}
        """The oldest first."""
        self._warnings = _RateLimitedWarnings()
        self._accepting = Thread(target=self._accept, daemon=True, name=f"{purpose}-listener")

    def serve(self, handler: AcceptHandler) -> None:
        """Start to accept, on a separate thread."""
        self._handler = handler
        self._accepting.start()

    def close(self) -> None:
        """Accept no more connections. Sockets that were handed over stay open."""
        self._closing.set()
        _shut(self._sock)
        with self._changed:
            self._changed.notify_all()
        if self._accepting.ident is not None:
            self._accepting.join()
        with self._changed:
            connections = list(self._pending)
        for connection in connections:
            _shut(connection.sock)
            assert connection.thread is not None, "a connection has its thread"
            connection.thread.join()
        self._sock.close()

    def _accept(self) -> None:
        while not self._closing.is_set():
            self._make_room()
            try:
                sock, peer = self._sock.accept()
            except OSError as problem:
                # Out of descriptors, most likely: some may be free again in a moment.
                if not self._closing.wait(_RETRY_SECONDS):
                    _log.warning("Cannot accept at the %s port: %s", self._purpose, _cause(problem))
            else:
                self._admit(_PendingConnection(sock, f"{peer[0]}:{peer[1]}"))

    def _make_room(self) -> None:
        """Wait until a connection ends, or evict the oldest unauthenticated one."""
        with self._changed:
            while not self._closing.is_set():
                unauthenticated = [
                    connection for connection in self._pending if not connection.is_authenticated
                ]
                if len(unauthenticated) < MOST_UNAUTHENTICATED:
                    return
                oldest = unauthenticated[0]
                left = oldest.since + _UNDISTURBED_SECONDS - monotonic()
                if left <= 0 and not oldest.is_evicted:
                    oldest.is_evicted = True
                    _shut(oldest.sock)
                self._changed.wait(left if left > 0 else _UNDISTURBED_SECONDS)

    def _admit(self, connection: _PendingConnection) -> None:
        try:
            _notice_breaks(connection.sock, _UNANSWERED_MS)
            if self._tls is not None:
                connection.sock = self._tls.context.wrap_socket(
                    connection.sock, server_side=True, do_handshake_on_connect=False
                )
            connection.thread = Thread(
                target=self._authenticate,
                args=(connection,),
                daemon=True,
                name=f"connection-{connection.peer}",
            )
            with self._changed:
                self._pending[connection] = None
            connection.thread.start()
        except Exception as problem:  # noqa: BLE001 - no connection, and no lack of threads, ends this
            self._leave(connection)
            self._drop(connection, problem)

    def _authenticate(self, connection: _PendingConnection) -> None:
        try:
            certificate = b"" if self._tls is None else self._tls.fingerprint
            hello = _authenticate_client(
                _Handshake(connection.sock, self._secret, self._purpose), certificate
            )
            connection.sock.settimeout(None)
            connection.is_authenticated = True
            self._hand_over(connection.sock, hello)
        except (OSError, RuntimeError, _Refused) as problem:  # the second: no thread for it
            self._drop(connection, problem)
        finally:
            self._leave(connection)

    def _leave(self, connection: _PendingConnection) -> None:
        with self._changed:
            self._pending.pop(connection, None)
            self._changed.notify_all()

    def _hand_over(self, sock: socket.socket, hello: Hello) -> None:
        if self._closing.is_set():
            sock.close()
        else:
            self._handler(sock, hello)

    def _drop(self, connection: _PendingConnection, problem: Exception) -> None:
        cause = _cause(problem)
        if connection.is_evicted:
            most = MOST_UNAUTHENTICATED
            cause = f"it was the oldest of {most} that had not yet finished the handshake"
        if not self._closing.is_set():
            self._warnings.give(
                "Dropped %s at the %s port: %s", connection.peer, self._purpose, cause
            )
        connection.sock.close()


class _ListeningTls:
    """A listener's side of TLS, read from its files once."""

    def __init__(self, tls: Tls) -> None:
        try:
            self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self.context.load_cert_chain(tls.certificate, tls.key)
            self.fingerprint = _fingerprint(_first_certificate(tls.certificate.read_text()))
        except (OSError, ValueError) as problem:
            raise JobRejected(
                f"TLS cannot use the certificate {tls.certificate} with the key {tls.key}",
                _cause(problem),
                "use readable PEM files that belong together",
            ) from problem


def _dialling_context(tls: Tls) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=tls.authority)
    except OSError as problem:
        raise JobRejected(
            f"TLS cannot use the authority {tls.authority}",
            _cause(problem),
            "use a readable PEM file with the certificate that signed the job's",
        ) from problem
    context.check_hostname = False
    return context


def _authenticate_as_client(shake: _Handshake, hello: Hello) -> None:
    """The dialling side of the handshake."""
    text = json.dumps(hello).encode()
    assert len(text) <= _HELLO_LIMIT, "a hello is small"
    certificate = shake.encrypt()
    nonce = secrets.token_bytes(_NONCE)
    shake.send(_GREETING + nonce)
    answer = shake.receive(_NONCE + _PROOF)
    nonces = nonce + answer[:_NONCE]
    shake.verify(answer[_NONCE:], b"listener", nonces, certificate)
    proof = shake.proof(b"dialler", nonces, certificate, text)
    shake.send(proof + len(text).to_bytes(2, "big") + text)
    if shake.receive(len(_ACCEPTED)) != _ACCEPTED:
        raise _Refused("it did not accept")


def _authenticate_client(shake: _Handshake, certificate: bytes) -> Hello:
    """The listening side of the handshake."""
    shake.encrypt()
    if shake.receive(len(_GREETING)) != _GREETING:
        raise _Refused("it does not use Weir's protocol; perhaps TLS is enabled on its side only")
    nonce = secrets.token_bytes(_NONCE)
    nonces = shake.receive(_NONCE) + nonce
    shake.send(nonce + shake.proof(b"listener", nonces, certificate))
    proof = shake.receive(_PROOF)
    length = int.from_bytes(shake.receive(2), "big")
    if length > _HELLO_LIMIT:
        raise _Refused(f"it introduces itself with {length} bytes, above {_HELLO_LIMIT}")
    text = shake.receive(length)
    shake.verify(proof, b"dialler", nonces, certificate, text)
    hello = _read_hello(text)
    shake.send(_ACCEPTED)
    return hello


def _read_hello(text: bytes) -> Hello:
    try:
        hello = json.loads(text)
    except ValueError as problem:
        raise _Refused("its introduction is not JSON") from problem
    if not isinstance(hello, dict):
        raise _Refused("its introduction is not a JSON object")
    return hello


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as problem:
        raise JobRejected(
            f"cannot listen at port {port} of {host}",
            _cause(problem),
            "choose another port, or port 0 for any that is free, and an address of this machine",
        ) from problem


def _notice_breaks(sock: socket.socket, unanswered_ms: int) -> None:
    """Let the kernel give up a dead peer by itself, however busy Python is.

    The limit also holds for a peer that is alive and does not read. The exchange is read by a
    thread that user code may keep busy, so the dialling side has a longer timeout than the
    listening side, which never waits for a window and detects a dead peer first.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        (socket.TCP_NODELAY, 1),
        (socket.TCP_KEEPIDLE, _IDLE_SECONDS),
        (socket.TCP_KEEPINTVL, _PROBE_SECONDS),
        (socket.TCP_KEEPCNT, _PROBES),
        (socket.TCP_USER_TIMEOUT, unanswered_ms),
    ):
        sock.setsockopt(socket.IPPROTO_TCP, option, value)


def _shut(sock: socket.socket) -> None:
    """Wake the thread that waits for this socket; that thread closes it."""
    with suppress(OSError):
        # Not TLS's own shutdown, which would change the object under the other thread.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _first_certificate(chain: str) -> bytes:
    begin, end = chain.find(ssl.PEM_HEADER), chain.find(ssl.PEM_FOOTER)
    return ssl.PEM_cert_to_DER_cert(chain[begin : end + len(ssl.PEM_FOOTER)])


def _fingerprint(certificate: bytes) -> bytes:
    return sha256(certificate).digest()


def _cause(problem: Exception) -> str:
    return (isinstance(problem, OSError) and problem.strerror) or str(problem)
