"""Keeps the row numbers of removed keys until another key may have them.

A capture reads the keys of its rows in place, on another thread, so a removed key's row number must
not go to another key while a capture that was taken before the removal is alive. Captures are
numbered in their order; a removal remembers the number of the last one before it.
"""

from collections import deque
from threading import Lock

import numpy as np
import numpy.typing as npt

RowNumbers = npt.NDArray[np.int64]


class FreeRows:
    """Row numbers that have no key any more."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, RowNumbers]] = deque()
        self._free: list[RowNumbers] = []

    def add(self, row_numbers: RowNumbers, capture: int) -> None:
        """Removed behind this capture."""
        self._waiting.append((capture, row_numbers))

    def reuse(self, oldest: int) -> None:
        """No capture before this one is left."""
        while self._waiting and self._waiting[0][0] < oldest:
            self._free.append(self._waiting.popleft()[1])

    def take(self, most: int) -> RowNumbers:
        """Row numbers for new keys, not more than so many."""
        taken: list[RowNumbers] = []
        while most and self._free:
            row_numbers = self._free.pop()
            if len(row_numbers) > most:
                self._free.append(row_numbers[most:])
            taken.append(row_numbers[:most])
            most -= len(taken[-1])
        return np.concatenate(taken) if taken else np.empty(0, np.int64)


class LiveCaptures:
    """The captures that a thread may still read; any thread may end one."""

    def __init__(self) -> None:
        self.newest = 0
        """The number of the last capture that was taken."""
        self._live: set[int] = set()
        self._lock = Lock()

    def take(self) -> int:
        with self._lock:
            self.newest += 1
            self._live.add(self.newest)
        return self.newest

    def end(self, number: int) -> None:
        with self._lock:
            self._live.discard(number)

    @property
    def oldest(self) -> int:
        """The oldest that is alive, or the next to be taken."""
        with self._lock:
            return min(self._live, default=self.newest + 1)
