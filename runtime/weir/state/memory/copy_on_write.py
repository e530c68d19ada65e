"""Holds arrays that can be frozen in a moment and go on changing.

A snapshot must be the state at the barrier, and the mailbox must not wait for it (spec S2, S3). The
arrays stay flat, for vectorised updates; they are thought of as chunks of a few rows. Before the
first write into a chunk after a freeze, its content is set aside for the snapshot; the other
chunks are read in place. Chunks are small, so that a batch of scattered keys sets aside little
more than it touches: no batch pays for the whole state. Once a snapshot has been read, it costs the
mailbox nothing.

The mailbox is the only writer. One lock orders it against the snapshots' readers: a chunk is read
in place, or set aside, under the lock, and written only after that.
"""

from collections.abc import Sequence
from concurrent.futures import CancelledError
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from weir.state.changed_rows import distinct

CHUNK_BITS = 4
CHUNK = 1 << CHUNK_BITS
_FIRST_CAPACITY = 1 << 12
_CHUNKS_PER_READ = 1 << 13
_ROWS_PER_READ = 1 << 16

Array = npt.NDArray[Any]
_Aside = tuple[npt.NDArray[np.int64], list[Array]]


class CopyOnWrite:
    """Arrays of equal length, each with the value that a fresh row begins with."""

    def __init__(self, beginnings: Sequence[np.generic]) -> None:
        self._beginnings = tuple(beginnings)
        self._lock = Lock()
        self._frozen: list[Frozen] = []
        self.arrays: list[Array] = [np.full(_FIRST_CAPACITY, value) for value in beginnings]
        self._capacity = _FIRST_CAPACITY

    def reserve(self, size: int) -> None:
        """Have room for so many rows."""
        if size <= self._capacity:
            return
        self._capacity = max(_chunks(size) * CHUNK, 2 * self._capacity)
        self.arrays = [
            _lengthened(array, self._capacity, beginning)
            for array, beginning in zip(self.arrays, self._beginnings, strict=True)
        ]

    def before_write(self, row_numbers: npt.NDArray[np.int64]) -> None:
        """Keep for the snapshots what a write to these rows would destroy."""
        if not self._frozen:
            return
        chunks = row_numbers >> CHUNK_BITS
        with self._lock:
            for frozen in self._frozen:
                frozen.set_aside(chunks, self.arrays)

    def freeze(self, size: int) -> "Frozen":
        """The first ``size`` rows as they are now. Takes as long for many as for few."""
        assert size <= self._capacity, "rows are reserved before they are used"
        frozen = Frozen(self, size, self._lock)
        with self._lock:
            self._frozen.append(frozen)
        return frozen

    def forget(self, frozen: "Frozen") -> None:
        """Called under the lock."""
        self._frozen = [other for other in self._frozen if other is not frozen]


class Frozen:
    """The content of arrays at one moment, until it is released."""

    def __init__(self, owner: CopyOnWrite, size: int, lock: Lock) -> None:
        self._owner = owner
        self.size = size
        self._lock = lock
        # The system hands zeros out lazily, so this takes no longer for a large state.
        self._is_safe = np.zeros(_chunks(size), np.bool_)
        self._set_aside: list[_Aside] = []
        self._is_read = False
        self._is_released = False

    def set_aside(self, chunks: npt.NDArray[np.int64], arrays: Sequence[Array]) -> None:
        """Copy the chunks that are about to change. Called by the mailbox, under the lock."""
        ours = chunks[chunks < len(self._is_safe)]
        unsafe = distinct(ours[~self._is_safe[ours]])
        if len(unsafe):
            contents = [_by_chunk(array).take(unsafe, axis=0) for array in arrays]
            self._set_aside.append((unsafe, contents))
            self._is_safe[unsafe] = True

    def read(self) -> list[Array]:
        """The arrays as they were. Callable once, by any thread, while the mailbox continues."""
        self._read_once()
        chunks = len(self._is_safe)
        copies = [np.empty(chunks * CHUNK, array.dtype) for array in self._owner.arrays]
        for begin in range(0, chunks, _CHUNKS_PER_READ):
            self._read_in_place(slice(begin, begin + _CHUNKS_PER_READ), copies)
        for kept, contents in self._leave():
            for copy, content in zip(copies, contents, strict=True):
                _by_chunk(copy)[kept] = content
        return [copy[: self.size] for copy in copies]

    def read_rows(self, row_numbers: npt.NDArray[np.int64]) -> list[Array]:
        """These rows as they were, which are in ascending order; the others are kept no longer."""
        self._read_once()
        chunks = row_numbers >> CHUNK_BITS
        is_unwanted = np.ones(len(self._is_safe), np.bool_)
        is_unwanted[chunks] = False
        with self._lock:
            self._is_safe |= is_unwanted
        copies = [np.empty(len(row_numbers), array.dtype) for array in self._owner.arrays]
        for begin in range(0, len(row_numbers), _ROWS_PER_READ):
            self._take_in_place(row_numbers, slice(begin, begin + _ROWS_PER_READ), copies)
        for kept, contents in self._leave():
            begins, ends = np.searchsorted(chunks, kept), np.searchsorted(chunks, kept, "right")
            wanted = np.repeat(np.arange(len(kept)), ends - begins)
            skipped = begins - np.cumsum(ends - begins) + (ends - begins)
            places = np.arange(len(wanted)) + skipped[wanted]
            offsets = row_numbers[places] & (CHUNK - 1)
            for copy, content in zip(copies, contents, strict=True):
                copy[places] = content[wanted, offsets]
        return copies

    def _read_once(self) -> None:
        assert not self._is_read, "a frozen version is read once: what was read may change since"
        self._is_read = True

    def release(self) -> None:
        """Free what was kept. A reader that is not through yet is stopped."""
        with self._lock:
            self._is_released = True
            self._set_aside = []
            self._owner.forget(self)

    def _read_in_place(self, block: slice, copies: Sequence[Array]) -> None:
        with self._lock:
            self._expect_not_released()
            # Chunks that were set aside are copied along with the others, and corrected later.
            for copy, array in zip(copies, self._owner.arrays, strict=True):
                rows = _by_chunk(copy)[block]
                rows[:] = _by_chunk(array)[block][: len(rows)]
            self._is_safe[block] = True

    def _take_in_place(
        self, row_numbers: npt.NDArray[np.int64], part: slice, copies: Sequence[Array]
    ) -> None:
        rows = row_numbers[part]
        with self._lock:
            self._expect_not_released()
            # Rows that were set aside are copied along with the others, and corrected later.
            for copy, array in zip(copies, self._owner.arrays, strict=True):
                np.take(array, rows, out=copy[part], mode="clip")
            # The last chunk may go on in the next part.
            self._is_safe[rows[0] >> CHUNK_BITS : rows[-1] >> CHUNK_BITS] = True

    def _leave(self) -> list[_Aside]:
        """Everything is safe: what was set aside is ours, and nothing more will be."""
        with self._lock:
            self._expect_not_released()
            self._owner.forget(self)
            aside, self._set_aside = self._set_aside, []
        return aside

    def _expect_not_released(self) -> None:
        if self._is_released:
            raise CancelledError("the snapshot was aborted while it was being written")


def _chunks(size: int) -> int:
    return (size + CHUNK - 1) >> CHUNK_BITS


def _by_chunk(array: Array) -> Array:
    return array.reshape(-1, CHUNK)


def _lengthened(array: Array, length: int, beginning: np.generic) -> Array:
    longer = np.empty(length, array.dtype)
    longer[: len(array)] = array
    longer[len(array) :] = beginning
    return longer
