"""Remembers which rows changed, for an operator that emits each changed key once.

A quiet stream changes few of many keys and should not pay for the many; a busy one changes most of
them many times and should not remember each time. So changes are listed while they are few, and
become one flag for each row when they are not.
"""

import numpy as np
import numpy.typing as npt

RowNumbers = npt.NDArray[np.int64]

_FEW = 1 << 14
_ROWS_PER_FLAGGED_CHANGE = 16


class ChangedRows:
    """A set of rows."""

    def __init__(self) -> None:
        self._listed: list[RowNumbers] = []
        self._rows = 0
        self._flags = np.zeros(0, np.bool_)
        self._is_flagged = False

    @property
    def is_empty(self) -> bool:
        return self._rows == 0

    def add(self, row_numbers: RowNumbers, size: int) -> None:
        """These changed, out of ``size`` rows that there are."""
        self._rows += len(row_numbers)
        if not self._is_flagged:
            self._listed.append(row_numbers)
            if self._rows < max(_FEW, size // _ROWS_PER_FLAGGED_CHANGE):
                return
            row_numbers = np.concatenate(self._listed)
            self._listed = []
            self._is_flagged = True
        if size > len(self._flags):
            longer = np.zeros(2 * size, np.bool_)
            longer[: len(self._flags)] = self._flags
            self._flags = longer
        self._flags[row_numbers] = True

    def row_numbers(self) -> RowNumbers:
        """Each changed row once, in ascending order."""
        if self._is_flagged:
            return np.flatnonzero(self._flags)
        return distinct(np.concatenate(self._listed)) if self._listed else np.empty(0, np.int64)

    def drain(self) -> RowNumbers:
        """Each changed row once, in ascending order; none are changed afterwards."""
        row_numbers = self.row_numbers()
        if self._is_flagged:
            self._flags[row_numbers] = False
        self._listed, self._rows, self._is_flagged = [], 0, False
        return row_numbers


def distinct(numbers: RowNumbers) -> RowNumbers:
    """Each number once, in ascending order.

    ``np.unique`` hashes integers since NumPy 2.3, which takes ten times as long as sorting them.
    """
    in_order = np.sort(numbers)
    is_first = np.ones(len(in_order), np.bool_)
    np.not_equal(in_order[1:], in_order[:-1], out=is_first[1:])
    return in_order[is_first]
