"""Gives 64-bit numbers small dense row numbers, a batch at a time.

A loop over numbers in Python would cost more than the rest of an aggregation, so NumPy looks up a
batch at once, by open addressing: all rows probe their home cell, and the few that found another
number there continue together.

The cell of a removed number stays taken, so that the numbers behind it are still found, until the
cells are laid out anew. Its row number goes to another number as soon as no capture that was taken
before the removal is left: until then a thread that writes such a capture reads it.
"""

import numpy as np
import numpy.typing as npt

from weir.state.memory.free_rows import FreeRows

RowNumbers = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int64]

NO_ROW = -1
_FREE = NO_ROW
_REMOVED = -2
_FIRST_BITS = 12
_HALF = 32
# Both are odd; the first is 2**64 divided by the golden ratio, the second has bits of no pattern.
_FIRST_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SECOND_FACTOR = np.uint64(0xD6E8FEB86659FD93)


class NumberIndex:
    """Row numbers of 64-bit numbers. At most half of its cells are ever taken."""

    def __init__(self) -> None:
        self._bits = _FIRST_BITS
        self._cells = np.full(1 << self._bits, _FREE, np.int32)
        self._numbers = np.zeros(1 << self._bits, np.int64)
        self._size = 0
        self._kept = 0
        self._removed = 0
        self.free_rows = FreeRows()
        self.inserted: list[RowNumbers] = []
        """The row numbers that the last lookup gave to new numbers."""

    @property
    def size(self) -> int:
        """All row numbers are below."""
        return self._size

    def numbers_of(self, row_numbers: RowNumbers | slice) -> Numbers:
        return self._numbers[row_numbers]

    def row_numbers(self, numbers: Numbers) -> RowNumbers:
        """The row of each number; those that are new get one now."""
        self.inserted = []
        row_numbers = self.find(numbers)
        missing = np.flatnonzero(row_numbers == _FREE)
        if len(missing):
            row_numbers[missing] = self._insert(numbers[missing])
        return row_numbers

    def remove(self, row_numbers: RowNumbers, capture: int) -> None:
        """Forget the numbers of these rows, each of which has one, behind that capture."""
        cells = self._homes(self._numbers[row_numbers])
        astray = np.flatnonzero(self._cells[cells] != row_numbers)
        while len(astray):
            cells[astray] = self._next(cells[astray])
            astray = astray[self._cells[cells[astray]] != row_numbers[astray]]
        self._cells[cells] = _REMOVED
        self._kept -= len(row_numbers)
        self._removed += len(row_numbers)
        self.free_rows.add(row_numbers, capture)

    def reserve(self, size: int) -> None:
        """Have at least two cells for each of so many numbers, beside those that were removed."""
        if 2 * (size + self._removed) <= len(self._cells):
            return
        if self._removed:
            # So much may be removed again until the next time, or that would be soon.
            size += size // 2
        row_numbers = self._cells[self._cells >= 0]
        self._removed = 0
        self._bits = max((2 * size - 1).bit_length(), _FIRST_BITS)
        self._cells = np.full(1 << self._bits, _FREE, np.int32)
        homes = self._homes(self._numbers[row_numbers])
        # The old cells were in the order of their homes but for short runs, and sorting by runs is
        # quick with that. In order, each number takes its home or the cell behind the one before.
        order = np.argsort(homes, kind="stable")
        ranks = np.arange(len(row_numbers))
        cells = np.maximum.accumulate(homes[order] - ranks) + ranks
        fitting = int(np.searchsorted(cells, len(self._cells)))
        self._cells[cells[:fitting]] = row_numbers[order[:fitting]]
        for row_number in row_numbers[order[fitting:]]:
            self._cells[np.flatnonzero(self._cells == _FREE)[0]] = row_number

    def without_number(self) -> int:
        """A row that no number leads to."""
        return int(self._append(np.zeros(1, np.int64))[0])

    def find(self, numbers: Numbers) -> RowNumbers:
        """The row of each number; ``NO_ROW`` where there is none."""
        cells = self._homes(numbers)
        row_numbers = self._cells.take(cells).astype(np.int64)
        # A free cell's row is -1, which reads some number and is no match anyway.
        is_other = (self._numbers.take(row_numbers, mode="wrap") != numbers) & (row_numbers >= 0)
        if self._removed:
            is_other |= row_numbers == _REMOVED
        astray = np.flatnonzero(is_other)
        cells, wanted = cells[astray], numbers[astray]
        while len(astray):
            cells = self._next(cells)
            met = self._cells[cells]
            row_numbers[astray] = met
            again = (met == _REMOVED) | (met >= 0) & (self._numbers[met] != wanted)
            astray, cells, wanted = astray[again], cells[again], wanted[again]
        return row_numbers

    def _insert(self, wanted: Numbers) -> RowNumbers:
        """Row numbers for numbers that have none yet, of which some may be equal.

        All write their own mark into the free cell that they came to; whose mark stays has won the
        cell. Equal numbers share the winner's row, and the others continue with the next cell.
        """
        self.reserve(self._kept + len(wanted))
        row_numbers = np.empty(len(wanted), np.int64)
        rows = np.arange(len(wanted), dtype=np.int32)
        cells = self._homes(wanted)
        while len(rows):
            free = np.flatnonzero(self._cells[cells] == _FREE)
            marks = _REMOVED - 1 - rows[free]
            self._cells[cells[free]] = marks
            won = free[self._cells[cells[free]] == marks]
            self._cells[cells[won]] = self._appended(wanted[won])
            met = self._cells[cells]
            others = (met == _REMOVED) | (self._numbers[met] != wanted)
            row_numbers[rows] = met
            rows, cells, wanted = rows[others], self._next(cells[others]), wanted[others]
        return row_numbers

    def _appended(self, new: Numbers) -> RowNumbers:
        """Row numbers that nothing has, first of all those of removed numbers."""
        again = self.free_rows.take(len(new))
        self._numbers[again] = new[: len(again)]
        row_numbers = np.concatenate((again, self._append(new[len(again) :])))
        self._kept += len(new)
        self.inserted.append(row_numbers)
        return row_numbers

    def _append(self, new: Numbers) -> RowNumbers:
        size = self._size + len(new)
        assert size < 1 << 31, "a cell holds 31 bits of a row"
        if size > len(self._numbers):
            roomy = np.zeros(max(size, 2 * len(self._numbers)), np.int64)
            roomy[: self._size] = self._numbers[: self._size]
            self._numbers = roomy
        self._numbers[self._size : size] = new
        row_numbers = np.arange(self._size, size)
        self._size = size
        return row_numbers

    def _next(self, cells: Numbers) -> Numbers:
        return cells + 1 & len(self._cells) - 1

    def _homes(self, numbers: Numbers) -> Numbers:
        return (spread(numbers) >> np.uint64(64 - self._bits)).view(np.int64)


def spread(numbers: Numbers) -> npt.NDArray[np.uint64]:
    """Hash numbers so that the highest bits depend on every bit; they are a number's home cell.

    Multiplying once is not enough: pairs of equal halves, which correlated columns make, would
    share their homes.
    """
    mixed = numbers.view(np.uint64) * _FIRST_FACTOR
    mixed ^= mixed >> np.uint64(_HALF)
    mixed *= _SECOND_FACTOR
    return mixed
