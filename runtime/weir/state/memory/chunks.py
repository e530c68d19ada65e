"""Keeps rows in chunks that snapshots and the running state share until one of them is written.

A snapshot takes the list of chunks, a pointer for each thousand rows, and marks every chunk as
shared; the first write to a shared chunk copies that one chunk and leaves the old to the snapshots
(spec S3). So a capture does not grow with the values, any number of captures may be alive, and
the writer of a snapshot reads lists that never change again.

A row holds None or an immutable value; what it means is not known here.
"""

from typing import Generic, TypeAlias, TypeVar

CHUNK_BITS = 10
CHUNK_ROWS = 1 << CHUNK_BITS
OFFSET_MASK = CHUNK_ROWS - 1

T = TypeVar("T")
Chunk: TypeAlias = list[T | None]

_SHARED = b"\x01"


class Chunks(Generic[T]):
    """A growing column of rows."""

    __slots__ = ("captures", "chunks", "shared")

    def __init__(self) -> None:
        self.chunks: list[Chunk[T]] = []
        self.shared = bytearray()
        """For each chunk, whether some capture may hold it too."""
        self.captures = 0
        """How many captures there were; values that are copied on write remember it."""

    def grow(self) -> None:
        self.chunks.append([None] * CHUNK_ROWS)
        self.shared.append(0)

    def capture(self) -> tuple[Chunk[T], ...]:
        self.captures += 1
        self.shared = bytearray(_SHARED) * len(self.chunks)
        return tuple(self.chunks)

    def own(self, number: int) -> Chunk[T]:
        """The chunk, to be written to."""
        if self.shared[number]:
            self.chunks[number] = self.chunks[number].copy()
            self.shared[number] = 0
        return self.chunks[number]

    def put(self, row_number: int, value: T | None) -> None:
        self.own(row_number >> CHUNK_BITS)[row_number & OFFSET_MASK] = value

    def at(self, row_number: int) -> T | None:
        return self.chunks[row_number >> CHUNK_BITS][row_number & OFFSET_MASK]
