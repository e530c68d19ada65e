"""Carries batches, markers and credits between slots.

One thread, the slot's mailbox, owns an exchange and calls everything but ``wake``. It only waits in
``poll``, up to the given timeout; other threads connect and authenticate, and frames queue
meanwhile. This module does not limit the queues: a sender only has batches for which it has credit.

There is one connection for each ordered pair of slots, opened by the sender, and all frames to that
peer use it in order. A lost connection is reported once and forgotten: the driver decides what to
do about it, and the next frame opens a new one.
"""

import logging
import selectors
import socket
from collections import deque
from collections.abc import Mapping
from threading import Lock, Thread
from time import monotonic
from typing import NamedTuple

from weir.core.ids import ChannelId, SlotId
from weir.errors import WeirError
from weir.exchange.channel_events import Arrived, Broken, Credited, Event, Run
from weir.exchange.connections import Incoming, Outgoing
from weir.exchange.waker import Waker
from weir.wire.authenticated_sockets import Address, Hello, Listener, Purpose, Tls, dial

__all__ = ["Arrived", "Broken", "Credited", "Event", "Exchange", "Run"]

_POLL_BYTES = 8 << 20
_POLL_SECONDS = 0.005
"""One poll does no more than this, so that control stays prompt."""

_READ = selectors.EVENT_READ
_READ_WRITE = selectors.EVENT_READ | selectors.EVENT_WRITE

_log = logging.getLogger(__name__)


class _Dialled(NamedTuple):
    """The end of an attempt to reach a peer: a socket, or else a cause."""

    outgoing: Outgoing
    sock: socket.socket | None
    cause: str = ""


class Exchange:
    """One slot's connections to all others."""

    def __init__(self, name: SlotId, bind_host: str, secret: bytes, tls: Tls | None) -> None:
        """Listen at a host by which the other slots reach this one."""
        self.name = name
        self._listener = Listener(bind_host, secret, Purpose.EXCHANGE, tls)
        self.address = self._listener.address
        self._secret = secret
        self._tls = tls
        self._peers: dict[SlotId, Address] = {}
        self._outgoing: dict[SlotId, Outgoing] = {}
        self._incoming: dict[SlotId, Incoming] = {}
        self._unread: list[Incoming] = []
        self._waker = Waker()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._waker.readable, _READ)
        self._lock = Lock()
        self._closed = False
        self._brought: deque[_Dialled | Incoming] = deque()
        self._listener.serve(self._admit)

    @property
    def queued_bytes(self) -> int:
        """What was sent and is not yet with the kernel."""
        return sum(outgoing.unsent for outgoing in self._outgoing.values())

    def set_peers(self, peers: Mapping[SlotId, Address]) -> None:
        """Where the slots listen; replaces what was known.

        Frames queued for a peer that is gone or has another address are dropped silently.
        """
        self._peers = dict(peers)
        for outgoing in list(self._outgoing.values()):
            if outgoing.address != self._peers.get(outgoing.peer):
                self._forget(outgoing)

    def send(self, to: SlotId, run: Run, channel: ChannelId, element: object) -> None:
        """Queue a batch or a marker."""
        self._to(to).send(run, channel, element)

    def grant(self, to: SlotId, run: Run, channel: ChannelId, batches: int, rows: int) -> None:
        """Grant the sender of a channel credit for so many more batches, best of so many rows."""
        self._to(to).grant(run, channel, batches, rows)

    def drop(self, run: Run) -> None:
        """Forget what is queued of an attempt that is over."""
        for outgoing in self._outgoing.values():
            outgoing.drop(run)

    def wake(self) -> None:
        """Make ``poll`` return, now or the next time. For any thread."""
        self._waker.wake()

    def poll(self, timeout: float) -> list[Event]:
        """Do what can be done now, after waiting up to so many seconds until anything can.

        It may well return nothing before the time is over, having only written.
        """
        events: list[Event] = []
        self._adopt(events)
        for outgoing in list(self._outgoing.values()):
            if outgoing.unsent and outgoing.sock is not None and not outgoing.awaits_room:
                self._write(outgoing, events)
        ready = self._selector.select(0 if events or self._unread else max(timeout, 0))
        unread, self._unread = dict.fromkeys(self._unread), []
        for key, mask in ready:
            match key.data:
                case Outgoing() as outgoing:
                    self._attend(outgoing, mask, events)
                case Incoming() as incoming:
                    unread[incoming] = None
                case _:
                    self._waker.clear()
        self._read(list(unread), events)
        return events

    def close(self) -> None:
        """Drop every connection and everything queued."""
        with self._lock:
            self._closed = True
        self._listener.close()
        for brought in self._brought:
            _close(brought.sock)
        for outgoing in self._outgoing.values():
            _close(outgoing.sock)
        for incoming in self._incoming.values():
            _close(incoming.sock)
        self._outgoing.clear()
        self._incoming.clear()
        self._brought.clear()
        self._selector.close()
        self._waker.close()

    # On the mailbox thread

    def _to(self, peer: SlotId) -> Outgoing:
        outgoing = self._outgoing.get(peer)
        if outgoing is None:
            address = self._peers.get(peer)
            outgoing = self._outgoing[peer] = Outgoing(peer, address)
            if address is None:
                self._bring(_Dialled(outgoing, None, "its address is unknown"))
            else:
                dialling = Thread(target=self._dial, args=(outgoing, address), daemon=True)
                dialling.start()
        return outgoing

    def _adopt(self, events: list[Event]) -> None:
        """Take over what the threads behind have brought."""
        while self._brought:
            match self._brought.popleft():
                case Incoming() as incoming:
                    self._welcome(incoming, events)
                case _Dialled(outgoing, sock) if self._outgoing.get(outgoing.peer) is not outgoing:
                    _close(sock)
                case _Dialled(outgoing, socket.socket() as sock):
                    outgoing.sock = sock
                    self._selector.register(sock, _READ, outgoing)
                case _Dialled(outgoing, None, cause):
                    self._lose(outgoing, cause, events)

    def _welcome(self, incoming: Incoming, events: list[Event]) -> None:
        older = self._incoming.get(incoming.peer)
        if older is not None:
            self._lose(older, "the peer has connected anew", events)
        self._incoming[incoming.peer] = incoming
        self._selector.register(incoming.sock, _READ, incoming)

    def _write(self, outgoing: Outgoing, events: list[Event]) -> None:
        try:
            outgoing.write(_POLL_BYTES // len(self._outgoing))
        except OSError as problem:
            self._lose(outgoing, str(problem), events)
        else:
            self._await_room(outgoing)

    def _await_room(self, outgoing: Outgoing) -> None:
        assert outgoing.sock is not None, "room is in a socket"
        if outgoing.awaits_room != (outgoing.unsent > 0):
            outgoing.awaits_room = not outgoing.awaits_room
            interest = _READ_WRITE if outgoing.awaits_room else _READ
            self._selector.modify(outgoing.sock, interest, outgoing)

    def _attend(self, outgoing: Outgoing, mask: int, events: list[Event]) -> None:
        if mask & _READ:
            try:
                outgoing.check()
            except OSError as problem:
                self._lose(outgoing, str(problem), events)
                return
        if mask & selectors.EVENT_WRITE:
            self._write(outgoing, events)

    def _read(self, ready: list[Incoming], events: list[Event]) -> None:
        """Each gets its share, and each is read once at least, however late it is."""
        deadline = monotonic() + _POLL_SECONDS
        for incoming in ready:
            try:
                incoming.read(events, _POLL_BYTES // len(ready), deadline)
            except OSError as problem:
                self._lose(incoming, str(problem), events)
            else:
                if incoming.has_more:
                    self._unread.append(incoming)

    def _lose(self, connection: Outgoing | Incoming, cause: str, events: list[Event]) -> None:
        self._forget(connection)
        events.append(Broken(connection.peer, cause, connection.runs))

    def _forget(self, connection: Outgoing | Incoming) -> None:
        if isinstance(connection, Outgoing):
            del self._outgoing[connection.peer]
        else:
            del self._incoming[connection.peer]
            self._unread = [it for it in self._unread if it is not connection]
        if connection.sock is not None:
            self._selector.unregister(connection.sock)
            connection.sock.close()

    # On threads behind it

    def _admit(self, sock: socket.socket, hello: Hello) -> None:
        match hello:
            case {"slot": str(name)}:
                sock.settimeout(0)
                self._bring(Incoming(SlotId(name), sock))
            case _:
                _log.warning("Dropped a peer that did not name its slot: %s", hello)
                sock.close()

    def _dial(self, outgoing: Outgoing, address: Address) -> None:
        try:
            hello = {"slot": self.name}
            sock = dial(address, self._secret, Purpose.EXCHANGE, self._tls, hello)
        except WeirError as problem:
            self._bring(_Dialled(outgoing, None, str(problem)))
        else:
            sock.settimeout(0)
            self._bring(_Dialled(outgoing, sock))

    def _bring(self, brought: _Dialled | Incoming) -> None:
        with self._lock:
            if self._closed:
                _close(brought.sock)
                return
            self._brought.append(brought)
        self._waker.wake()


def _close(sock: socket.socket | None) -> None:
    if sock is not None:
        sock.close()
