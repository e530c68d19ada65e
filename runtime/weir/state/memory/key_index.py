"""Gives every key a row number: a small dense number, the key's index into the arrays of values.

A loop over keys in Python would cost more than the rest of an aggregation, so NumPy looks up a
batch of numbers at once, by open addressing: all rows probe their home cell, and the few that found
another key there continue together. Other keys are mapped to numbers first: a string by a
dictionary of the batch's distinct values, several columns by the pair of numbers that the first
columns and the next one have, and a struct by the flat columns of its fields.

Row numbers are assigned in ascending order and never reused, and a key never changes. So another
thread may read the keys of row numbers that were assigned before, while the mailbox adds new ones.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.wire.keys import canonical, check_key_type
from weir.wire.numpy_columns import arrow_of, validity_of, values_of
from weir.wire.struct_keys import columns_of_leaves, leaf_types, leaves_of

RowNumbers = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int64]

_FREE = -1
_FIRST_BITS = 12
_HALF = 32
_LOW_HALF = 0xFFFFFFFF
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

    @property
    def size(self) -> int:
        return self._size

    def numbers_of(self, row_numbers: RowNumbers | slice) -> Numbers:
        return self._numbers[row_numbers]

    def row_numbers(self, numbers: Numbers) -> RowNumbers:
        """The row of each number; those that are new get one now."""
        row_numbers = self._find(numbers)
        missing = np.flatnonzero(row_numbers == _FREE)
        if len(missing):
            row_numbers[missing] = self._insert(numbers[missing])
        return row_numbers

    def reserve(self, size: int) -> None:
        """Have at least two cells for each of so many numbers."""
        if 2 * size <= len(self._cells):
            return
        row_numbers = self._cells[self._cells >= 0]
        self._bits = (2 * size - 1).bit_length()
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

    def _find(self, numbers: Numbers) -> RowNumbers:
        cells = self._homes(numbers)
        row_numbers = self._cells.take(cells).astype(np.int64)
        # A free cell's row is -1, which reads some number and is no match anyway.
        astray = np.flatnonzero(
            (self._numbers.take(row_numbers, mode="wrap") != numbers) & (row_numbers >= 0)
        )
        cells, wanted = cells[astray], numbers[astray]
        while len(astray):
            cells = self._next(cells)
            met = self._cells[cells]
            row_numbers[astray] = met
            again = (met >= 0) & (self._numbers[met] != wanted)
            astray, cells, wanted = astray[again], cells[again], wanted[again]
        return row_numbers

    def _insert(self, wanted: Numbers) -> RowNumbers:
        """Row numbers for numbers that have none yet, of which some may be equal.

        All write their own mark into the free cell that they came to; whose mark stays has won the
        cell. Equal numbers share the winner's row, and the others continue with the next cell.
        """
        self.reserve(self._size + len(wanted))
        row_numbers = np.empty(len(wanted), np.int64)
        rows = np.arange(len(wanted), dtype=np.int32)
        cells = self._homes(wanted)
        while len(rows):
            free = np.flatnonzero(self._cells[cells] == _FREE)
            marks = _FREE - 1 - rows[free]
            self._cells[cells[free]] = marks
            won = free[self._cells[cells[free]] == marks]
            self._cells[cells[won]] = self._append(wanted[won])
            met = self._cells[cells]
            others = self._numbers[met] != wanted
            row_numbers[rows] = met
            rows, cells, wanted = rows[others], self._next(cells[others]), wanted[others]
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


class _ColumnIndex(Protocol):
    """Row numbers of the values of one column; null is a value like others."""

    @property
    def size(self) -> int: ...

    def reserve(self, size: int) -> None:
        """Have room for so many distinct values."""

    def row_numbers(self, column: pa.Array) -> RowNumbers: ...

    def values_of(self, row_numbers: RowNumbers | slice) -> pa.Array: ...


class _FixedWidth:
    """Numbers, booleans, dates and timestamps."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._index = NumberIndex()
        self._null = _FREE

    @property
    def size(self) -> int:
        return self._index.size

    def reserve(self, size: int) -> None:
        self._index.reserve(size)

    def row_numbers(self, column: pa.Array) -> RowNumbers:
        numbers = self._encode(column)
        valid = validity_of(column)
        if valid is None:
            return self._index.row_numbers(numbers)
        if self._null == _FREE:
            self._null = self._index.without_number()
        row_numbers = np.full(len(column), self._null, np.int64)
        row_numbers[valid] = self._index.row_numbers(numbers[valid])
        return row_numbers

    def values_of(self, row_numbers: RowNumbers | slice) -> pa.Array:
        numbers = self._index.numbers_of(row_numbers)
        values = numbers.view(np.float64) if pa.types.is_floating(self._kind) else numbers
        return arrow_of(values, self._validity(row_numbers), self._kind)

    def _validity(self, row_numbers: RowNumbers | slice) -> npt.NDArray[np.bool_] | None:
        if self._null == _FREE:
            return None
        if isinstance(row_numbers, slice):
            row_numbers = np.arange(row_numbers.start, row_numbers.stop)
        is_valid: npt.NDArray[np.bool_] = row_numbers != self._null
        return is_valid

    def _encode(self, column: pa.Array) -> Numbers:
        values = values_of(column)
        if pa.types.is_floating(self._kind):
            return canonical(values).view(np.int64)
        return values.astype(np.int64, copy=False)


class _Varying:
    """Strings and binaries: a dictionary is asked for each distinct value of a batch."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._row_numbers: dict[object, int] = {}
        self._values: list[object] = []

    @property
    def size(self) -> int:
        return len(self._values)

    def reserve(self, size: int) -> None:
        """A dictionary makes room by itself."""

    def row_numbers(self, column: pa.Array) -> RowNumbers:
        encoded = column.dictionary_encode(null_encoding="encode")
        values = encoded.dictionary.to_pylist()
        distinct = list(map(self._row_numbers.get, values))
        if None in distinct:
            distinct = list(map(self._row_number, values))
        codes: npt.NDArray[np.int32] = values_of(encoded.indices)
        return np.array(distinct, np.int64)[codes]

    def values_of(self, row_numbers: RowNumbers | slice) -> pa.Array:
        values = self._values
        if isinstance(row_numbers, slice):
            return pa.array(values[row_numbers], self._kind)
        return pa.array([values[row_number] for row_number in row_numbers.tolist()], self._kind)

    def _row_number(self, value: object) -> int:
        row_number = self._row_numbers.setdefault(value, len(self._values))
        if row_number == len(self._values):
            self._values.append(value)
        return row_number


class KeyIndex:
    """Row numbers by key columns, of any types and any number."""

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        """Refuses types that cannot be keys."""
        for field in fields:
            check_key_type(field)
        self._kinds = [field.type for field in fields]
        self._columns = [_index_of(leaf) for kind in self._kinds for leaf in leaf_types(kind)]
        self._pairs = [NumberIndex() for _ in self._columns[1:]]

    @property
    def size(self) -> int:
        """How many keys there are; their rows are the numbers below."""
        return self._pairs[-1].size if self._pairs else self._columns[0].size

    def reserve(self, size: int) -> None:
        """Have room for so many keys, so as not to grow again and again on the way there."""
        (self._pairs[-1] if self._pairs else self._columns[0]).reserve(size)

    def row_numbers(self, keys: Sequence[pa.Array]) -> RowNumbers:
        """The row number of each row; keys that are new get one now."""
        first, *others = (leaf for column in keys for leaf in leaves_of(column))
        row_numbers = self._columns[0].row_numbers(first)
        for pair, column, values in zip(self._pairs, self._columns[1:], others, strict=True):
            row_numbers = pair.row_numbers(row_numbers << _HALF | column.row_numbers(values))
        return row_numbers

    def keys_of(self, row_numbers: RowNumbers | slice) -> list[pa.Array]:
        """The key columns of these rows. Any thread may ask for rows that it was given.

        A slice has a start and a stop, and is read in place where the keys are one column.
        """
        leaves = []
        for pair, column in zip(reversed(self._pairs), reversed(self._columns), strict=False):
            pairs = pair.numbers_of(row_numbers)
            leaves.append(column.values_of(pairs & _LOW_HALF))
            row_numbers = pairs >> _HALF
        leaves.append(self._columns[0].values_of(row_numbers))
        return columns_of_leaves(self._kinds, leaves[::-1])


def _index_of(kind: pa.DataType) -> _ColumnIndex:
    varying = pa.types.is_string, pa.types.is_large_string, pa.types.is_binary
    if any(is_kind(kind) for is_kind in (*varying, pa.types.is_large_binary)):
        return _Varying(kind)
    return _FixedWidth(kind)
