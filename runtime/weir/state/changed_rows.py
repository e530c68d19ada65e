"""Remembers which slots changed, for an operator that emits each changed key once.

A quiet stream changes few of many keys and should not pay for the many; a busy one changes most of
them many times and should not remember each time. So changes are listed while they are few, and
become one flag for each slot when they are not.
"""

import numpy as np
import numpy.typing as npt

RowNumbers = npt.NDArray[np.int64]

_FEW = 1 << 14
_SLOTS_PER_FLAGGED_ROW = 16


class ChangedRows:
    """A set of slots."""

    def __init__(self) -> None:
        self._listed: list[RowNumbers] = []
        self._rows = 0
        self._flags = np.zeros(0, np.bool_)
        self._is_flagged = False

    @property
    def is_empty(self) -> bool:
        return self._rows == 0

    def add(self, slots: RowNumbers, size: int) -> None:
        """These changed, out of ``size`` slots that there are."""
        self._rows += len(slots)
        if not self._is_flagged:
            self._listed.append(slots)
            if self._rows < max(_FEW, size // _SLOTS_PER_FLAGGED_ROW):
                return
            slots = np.concatenate(self._listed)
            self._listed = []
            self._is_flagged = True
        if size > len(self._flags):
            longer = np.zeros(2 * size, np.bool_)
            longer[: len(self._flags)] = self._flags
            self._flags = longer
        self._flags[slots] = True

    def drain(self) -> RowNumbers:
        """Each changed slot once, in ascending order; none are changed afterwards."""
        if self._is_flagged:
            slots = np.flatnonzero(self._flags)
            self._flags[slots] = False
        elif self._listed:
            slots = np.unique(np.concatenate(self._listed))
        else:
            slots = np.empty(0, np.int64)
        self._listed, self._rows, self._is_flagged = [], 0, False
        return slots
