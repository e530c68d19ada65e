"""Cuts a byte stream into frames: a fixed header, then a payload whose length the header gives.

The header has two small numbers, a channel's and a run's, because the exchange sends both with
every batch; the control link leaves them zero. The reader decides what a kind means. A large
payload is received directly into a separate buffer, so that Arrow can read it in place.

Bytes that are not a valid frame cannot be skipped, because the start of the next frame is unknown:
after a ``DamagedFrame`` the connection is closed, as if it had been lost.
"""

import socket
from struct import Struct
from typing import NamedTuple

import pyarrow as pa

FRAME_LIMIT = 256 << 20
"""The largest payload in bytes; above it a length is taken for damage."""

MAGIC = b"WF\x01"
"""Two letters and the version of the form."""

HEADER = Struct("!3sBIII")
_RECEIVED_AT_ONCE = 64 << 10


class DamagedFrame(ConnectionError):
    """The bytes are no frame of ours, so the connection is of no more use."""


class Frame(NamedTuple):
    """One message. The payload is a separate buffer that never changes."""

    kind: int
    channel: int
    run: int
    payload: memoryview


class _Head(NamedTuple):
    kind: int
    channel: int
    run: int
    length: int


def header(kind: int, length: int, channel: int = 0, run: int = 0) -> bytes:
    """What precedes a payload of this length."""
    if length > FRAME_LIMIT:
        raise ValueError(f"a frame of {length} bytes is above the limit of {FRAME_LIMIT} bytes")
    return HEADER.pack(MAGIC, kind, channel, run, length)


def write_frame(sock: socket.socket, kind: int, payload: bytes) -> None:
    """Write a whole frame, for as long as it takes."""
    sock.sendall(header(kind, len(payload)) + payload)


def read_frame(sock: socket.socket) -> Frame:
    """Wait for a whole frame. A stream that ends is a ``ConnectionError``, wherever it ends."""
    start = memoryview(bytearray(HEADER.size))
    _fill(sock, start)
    head = _read_header(start)
    payload = _memory(head.length)
    _fill(sock, payload)
    return Frame(head.kind, head.channel, head.run, payload)


class FrameReader:
    """Takes a stream in pieces of any size, without waiting for any.

    The caller receives into ``space`` and passes the number of bytes to ``filled``. Small frames
    are received many at a time and copied once; of a large one only the beginning is.
    """

    def __init__(self) -> None:
        self._together = memoryview(bytearray(_RECEIVED_AT_ONCE))
        self._used = 0
        self._unfinished: Frame | None = None
        self._received = 0

    def space(self) -> memoryview:
        """Where the next bytes belong; never empty."""
        if self._unfinished:
            return self._unfinished.payload[self._received :]
        return self._together[self._used :]

    def filled(self, count: int) -> list[Frame]:
        """So many bytes were received into ``space``. Returns the frames they complete."""
        if not self._unfinished:
            self._used += count
            return self._cut()
        self._received += count
        if self._received < len(self._unfinished.payload):
            return []
        finished, self._unfinished = self._unfinished, None
        return [finished]

    def _cut(self) -> list[Frame]:
        frames: list[Frame] = []
        start, end = 0, self._used
        while not self._unfinished and end - start >= HEADER.size:
            head = _read_header(self._together[start : start + HEADER.size])
            start += HEADER.size
            here = min(head.length, end - start)
            frame = Frame(head.kind, head.channel, head.run, _memory(head.length))
            frame.payload[:here] = self._together[start : start + here]
            start += here
            if here < head.length:
                self._unfinished, self._received = frame, here
            else:
                frames.append(frame)
        self._used = end - start
        self._together[: self._used] = bytes(self._together[start:end])
        return frames


def _read_header(start: memoryview) -> _Head:
    magic, kind, channel, run, length = HEADER.unpack(start)
    if magic != MAGIC:
        raise DamagedFrame(f"a frame begins with {magic!r} instead of {MAGIC!r}")
    if length > FRAME_LIMIT:
        raise DamagedFrame(
            f"a frame announces {length} bytes, above the limit of {FRAME_LIMIT} bytes"
        )
    return _Head(kind, channel, run, length)


def _memory(length: int) -> memoryview:
    """Aligned as Arrow likes it, and not cleared first."""
    return memoryview(pa.allocate_buffer(length)).cast("B")


def _fill(sock: socket.socket, space: memoryview) -> None:
    received = 0
    while received < len(space):
        count = sock.recv_into(space[received:])
        if not count:
            raise ConnectionResetError("the peer closed the connection")
        received += count
