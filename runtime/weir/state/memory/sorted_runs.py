"""Keeps rows in the order of a number, such as their time, while rows come and go in batches.

A batch becomes one sorted run. A run is merged with the one before it until each is at most half as
long as that, so there are few runs and each row is moved a few times in its life. Rows up to a
bound are the beginnings of all runs, and rows of a certain number are found by binary search: the
cost is that of the rows that are found, never of all that there are.

A row that is dropped stays in its run, with an older generation than it has now, until its run is
merged or its turn comes. So a row number may be used again at once.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from weir.state.changed_rows import distinct

RowNumbers = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int64]

_HALF = 32
_LOW_HALF = 0xFFFFFFFF
_FEW = 1 << 12
"""Not worth the removal of entries that do not count any more."""


@dataclass(slots=True)
class _Run:
    numbers: Numbers
    """In ascending order."""
    entries: npt.NDArray[np.int64]
    """Row numbers, with the generation of the row in the lower half."""

    def skip(self, count: int) -> None:
        self.numbers, self.entries = self.numbers[count:], self.entries[count:]


class SortedRuns:
    """Row numbers, each with one number. Belongs to the mailbox thread."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._generations = np.zeros(0, np.int64)
        self._rows = 0

    @property
    def entries(self) -> int:
        """How many there are, with those that do not count any more."""
        return sum(len(run.entries) for run in self._runs)

    def add(self, numbers: Numbers, row_numbers: RowNumbers) -> None:
        """Rows that are not there, each once."""
        if not len(row_numbers):
            return
        self._reserve(int(row_numbers.max()) + 1)
        self._rows += len(row_numbers)
        entries = row_numbers << _HALF | self._generations[row_numbers]
        order = np.argsort(numbers, kind="stable")
        self._runs.append(_Run(numbers[order], entries[order]))
        while len(self._runs) > 1 and len(self._runs[-2].entries) < 2 * len(self._runs[-1].entries):
            self._merge_last(2)
        if self.entries > 2 * self._rows + _FEW:
            self._merge_last(len(self._runs))

    def drop(self, row_numbers: RowNumbers) -> None:
        """Rows that are there, each once."""
        self._rows -= len(row_numbers)
        self._generations[row_numbers] = self._generations[row_numbers] + 1 & _LOW_HALF

    def until(self, bound: int, most: int) -> RowNumbers:
        """Rows whose number is at most the bound, in ascending order of rows.

        These are not all of them if there are many; none are left if there are none.
        """
        found: list[RowNumbers] = []
        for run in self._runs:
            if most > 0:
                found.append(self._beginning(run, bound, most))
                most -= len(found[-1])
        self._runs = [run for run in self._runs if len(run.entries)]
        return distinct(np.concatenate(found)) if found else np.empty(0, np.int64)

    def matching(self, numbers: Numbers) -> tuple[npt.NDArray[np.int64], RowNumbers]:
        """The rows of each of these numbers: pairs of a position in them and a row."""
        order = np.argsort(numbers, kind="stable")
        wanted = numbers[order]
        positions, rows = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for run in self._runs:
            begins = np.searchsorted(run.numbers, wanted)
            counts = np.searchsorted(run.numbers, wanted, "right") - begins
            ends = np.cumsum(counts)
            places = np.repeat(begins - ends + counts, counts) + np.arange(counts.sum())
            entries = run.entries[places]
            counts_still = self._is_current(entries)
            positions.append(np.repeat(order, counts)[counts_still])
            rows.append(entries[counts_still] >> _HALF)
        found, matched = np.concatenate(positions), np.concatenate(rows)
        in_order = np.argsort(found, kind="stable")
        return found[in_order], matched[in_order]

    def _beginning(self, run: _Run, bound: int, most: int) -> RowNumbers:
        stop = int(np.searchsorted(run.numbers, bound, "right"))
        while stop:
            entries = run.entries[: min(stop, most)]
            is_current = self._is_current(entries)
            skipped = int(np.argmax(is_current)) if is_current.any() else len(entries)
            run.skip(skipped)
            stop -= skipped
            if skipped < len(entries):
                rows: RowNumbers = entries[is_current] >> _HALF
                return rows
        return np.empty(0, np.int64)

    def _is_current(self, entries: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        is_current: npt.NDArray[np.bool_] = (
            self._generations[entries >> _HALF] == entries & _LOW_HALF
        )
        return is_current

    def _merge_last(self, count: int) -> None:
        merged, self._runs = self._runs[-count:], self._runs[:-count]
        numbers = np.concatenate([run.numbers for run in merged])
        entries = np.concatenate([run.entries for run in merged])
        is_current = self._is_current(entries)
        numbers, entries = numbers[is_current], entries[is_current]
        order = np.argsort(numbers, kind="stable")
        self._runs.append(_Run(numbers[order], entries[order]))

    def _reserve(self, size: int) -> None:
        if size > len(self._generations):
            longer = np.zeros(2 * size, np.int64)
            longer[: len(self._generations)] = self._generations
            self._generations = longer
