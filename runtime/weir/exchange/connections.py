"""The two ends of a connection between slots: one queues and writes, the other reads.

A connection carries frames from one slot to another, in order, and nothing back. Neither end ever
waits: each does what the socket allows right now, within the bounds it is given, and raises
``OSError`` when the connection is lost.
"""

import socket
import ssl
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from time import monotonic

from weir.core.ids import ChannelId, SlotId
from weir.exchange.channel_events import Event, Run
from weir.exchange.frame_codec import FrameDecoder, FrameEncoder, Message
from weir.wire.authenticated_sockets import Address
from weir.wire.frames import FrameReader

NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

_GATHERED = 32
"""How many frames are given to the kernel in one call."""


@dataclass(slots=True)
class _Leaving:
    run: Run | None
    parts: list[memoryview]
    has_begun: bool = False
    """Some of it may be on the wire, so all of it must follow."""

    @property
    def size(self) -> int:
        return sum(len(part) for part in self.parts)


class Outgoing:
    """The frames to one peer, queued until there is a socket and room in it."""

    def __init__(self, peer: SlotId, address: Address | None) -> None:
        self.peer = peer
        self.address = address
        self.sock: socket.socket | None = None
        self.awaits_room = False
        self.unsent = 0
        self._encoder = FrameEncoder()
        self._queue: deque[_Leaving] = deque()

    @property
    def runs(self) -> frozenset[Run]:
        return frozenset(self._encoder.runs)

    def send(self, run: Run, channel: ChannelId, element: object) -> None:
        self._put(self._encoder.element(run, channel, element))

    def grant(self, run: Run, channel: ChannelId, batches: int, rows: int) -> None:
        self._put(self._encoder.grant(run, channel, batches, rows))

    def drop(self, run: Run) -> None:
        kept = (it for it in self._queue if it.has_begun or it.run != run)
        self._queue = deque(kept)
        self.unsent = sum(leaving.size for leaving in self._queue)
        self._put(self._encoder.forget(run))

    def write(self, budget: int) -> None:
        """Give the kernel what it takes, up to about so many bytes."""
        while self._queue and budget > 0:
            self._queue[0].has_begun = True
            try:
                sent = self._offer()
            except NOT_NOW:
                return
            budget -= sent
            self._left(sent)

    def check(self) -> None:
        """The peer never answers here: a readable socket means the end of the connection."""
        assert self.sock is not None, "only a socket can be ready"
        try:
            received = self.sock.recv(1)
        except NOT_NOW:
            return
        raise ConnectionResetError(
            "the peer sent data" if received else "the peer closed the connection"
        )

    def _put(self, messages: Iterable[Message]) -> None:
        for run, parts in messages:
            leaving = _Leaving(run, list(parts))
            self._queue.append(leaving)
            self.unsent += leaving.size

    def _offer(self) -> int:
        assert self.sock is not None, "only a connected peer is written to"
        if isinstance(self.sock, ssl.SSLSocket):  # which cannot gather
            return self.sock.send(self._queue[0].parts[0])
        return self.sock.sendmsg(
            [part for leaving in islice(self._queue, _GATHERED) for part in leaving.parts]
        )

    def _left(self, sent: int) -> None:
        self.unsent -= sent
        while sent:
            parts = self._queue[0].parts
            if sent < len(parts[0]):
                parts[0] = parts[0][sent:]
                self._queue[0].has_begun = True
                return
            sent -= len(parts[0])
            del parts[0]
            if not parts:
                self._queue.popleft()


class Incoming:
    """The frames from one peer."""

    def __init__(self, peer: SlotId, sock: socket.socket) -> None:
        self.peer = peer
        self.sock = sock
        self._reader = FrameReader()
        self._decoder = FrameDecoder(peer)

    @property
    def runs(self) -> frozenset[Run]:
        return frozenset(self._decoder.runs.values())

    @property
    def has_more(self) -> bool:
        """Whether TLS holds bytes that no selector knows of."""
        return isinstance(self.sock, ssl.SSLSocket) and self.sock.pending() > 0

    def read(self, events: list[Event], budget: int, deadline: float) -> None:
        """Add what has come, up to about so many bytes and until about this time."""
        while True:
            space = self._reader.space()
            try:
                count = self.sock.recv_into(space)
            except NOT_NOW:
                return
            if not count:
                raise ConnectionResetError("the peer closed the connection")
            for frame in self._reader.filled(count):
                event = self._decoder.decode(frame)
                if event is not None:
                    events.append(event)
            budget -= count
            if budget <= 0 or monotonic() >= deadline:
                return
