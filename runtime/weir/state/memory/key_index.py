"""Gives every key a row number: a small dense number, the key's index into the arrays of values.

Numbers are looked up by ``weir.state.memory.number_index``. Other keys are mapped to numbers first:
a string by a dictionary of the batch's distinct values, several columns by the pair of numbers that
the first columns and the next one have, and a struct by the flat columns of its fields.

A row number is reused only when no capture from before its key's removal is left. So another thread
may read the keys of a capture's rows, while the mailbox adds and removes keys. Of several columns,
a value is removed with the last key that has it.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.state.changed_rows import distinct
from weir.state.memory.free_rows import FreeRows
from weir.state.memory.number_index import NO_ROW, NumberIndex, Numbers, RowNumbers
from weir.wire.keys import canonical, check_key_type
from weir.wire.numpy_columns import arrow_of, validity_of, values_of
from weir.wire.struct_keys import columns_of_leaves, leaf_types, leaves_of

_HALF = 32
_LOW_HALF = 0xFFFFFFFF


class _ColumnIndex(Protocol):
    """Row numbers of the values of one column; null is a value like others."""

    @property
    def size(self) -> int: ...

    def reserve(self, size: int) -> None:
        """Have room for so many distinct values."""

    def row_numbers(self, column: pa.Array) -> RowNumbers: ...

    def find(self, column: pa.Array) -> RowNumbers:
        """The same, with ``NO_ROW`` for values that are not there."""

    def values_of(self, row_numbers: RowNumbers | slice) -> pa.Array: ...

    def remove(self, row_numbers: RowNumbers, capture: int) -> None:
        """Forget the values of these rows, which are there, behind that capture."""

    def reuse(self, oldest: int) -> None:
        """No capture before this one is left."""


class _FixedWidth:
    """Numbers, booleans, dates and timestamps."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._index = NumberIndex()
        self._null = NO_ROW

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
        if self._null == NO_ROW:
            self._null = self._index.without_number()
        row_numbers = np.full(len(column), self._null, np.int64)
        row_numbers[valid] = self._index.row_numbers(numbers[valid])
        return row_numbers

    def find(self, column: pa.Array) -> RowNumbers:
        row_numbers = self._index.find(self._encode(column))
        valid = validity_of(column)
        return row_numbers if valid is None else np.where(valid, row_numbers, self._null)

    def values_of(self, row_numbers: RowNumbers | slice) -> pa.Array:
        numbers = self._index.numbers_of(row_numbers)
        values = numbers.view(np.float64) if pa.types.is_floating(self._kind) else numbers
        return arrow_of(values, self._validity(row_numbers), self._kind)

    def remove(self, row_numbers: RowNumbers, capture: int) -> None:
        """The row of null stays: captures know by its number that it has no value."""
        self._index.remove(row_numbers[row_numbers != self._null], capture)

    def reuse(self, oldest: int) -> None:
        self._index.free_rows.reuse(oldest)

    def _validity(self, row_numbers: RowNumbers | slice) -> npt.NDArray[np.bool_] | None:
        if self._null == NO_ROW:
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
        self._free_rows = FreeRows()

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

    def find(self, column: pa.Array) -> RowNumbers:
        encoded = column.dictionary_encode(null_encoding="encode")
        distinct = [
            self._row_numbers.get(value, NO_ROW) for value in encoded.dictionary.to_pylist()
        ]
        codes: npt.NDArray[np.int32] = values_of(encoded.indices)
        return np.array(distinct, np.int64)[codes]

    def values_of(self, row_numbers: RowNumbers | slice) -> pa.Array:
        values = self._values
        if isinstance(row_numbers, slice):
            return pa.array(values[row_numbers], self._kind)
        return pa.array([values[row_number] for row_number in row_numbers.tolist()], self._kind)

    def remove(self, row_numbers: RowNumbers, capture: int) -> None:
        for row_number in row_numbers.tolist():
            del self._row_numbers[self._values[row_number]]
        self._free_rows.add(row_numbers, capture)

    def reuse(self, oldest: int) -> None:
        self._free_rows.reuse(oldest)

    def _row_number(self, value: object) -> int:
        row_number = self._row_numbers.get(value)
        if row_number is None:
            row_number = self._row_numbers[value] = self._placed(value)
        return row_number

    def _placed(self, value: object) -> int:
        again = self._free_rows.take(1)
        if not len(again):
            self._values.append(value)
            return len(self._values) - 1
        row_number = int(again[0])
        self._values[row_number] = value
        return row_number


class _Uses:
    """How many keys have each value of a column."""

    def __init__(self) -> None:
        self._counts = np.zeros(0, np.int64)

    def add(self, row_numbers: RowNumbers) -> None:
        if not len(row_numbers):
            return
        size = int(row_numbers.max()) + 1
        if size > len(self._counts):
            longer = np.zeros(2 * size, np.int64)
            longer[: len(self._counts)] = self._counts
            self._counts = longer
        np.add.at(self._counts, row_numbers, 1)

    def drop(self, row_numbers: RowNumbers) -> RowNumbers:
        """Those that no key has any more."""
        np.subtract.at(self._counts, row_numbers, 1)
        return distinct(row_numbers[self._counts[row_numbers] == 0])


class KeyIndex:
    """Row numbers by key columns, of any types and any number."""

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        """Refuses types that cannot be keys."""
        for field in fields:
            check_key_type(field)
        self.fields = tuple(fields)
        self._kinds = [field.type for field in fields]
        self._columns = [_index_of(leaf) for kind in self._kinds for leaf in leaf_types(kind)]
        self._pairs = [NumberIndex() for _ in self._columns[1:]]
        self._uses = [(_Uses(), _Uses()) for _ in self._pairs]
        """Of the values on the left and on the right of the pairs."""

    @property
    def size(self) -> int:
        """All row numbers are below."""
        return self._pairs[-1].size if self._pairs else self._columns[0].size

    def reserve(self, size: int) -> None:
        """Have room for so many keys, so as not to grow again and again on the way there."""
        (self._pairs[-1] if self._pairs else self._columns[0]).reserve(size)

    def row_numbers(self, keys: Sequence[pa.Array]) -> RowNumbers:
        """The row number of each row; keys that are new get one now."""
        first, *others = (leaf for column in keys for leaf in leaves_of(column))
        row_numbers = self._columns[0].row_numbers(first)
        levels = zip(self._pairs, self._columns[1:], self._uses, others, strict=True)
        for pair, column, (left, right), values in levels:
            row_numbers = pair.row_numbers(row_numbers << _HALF | column.row_numbers(values))
            for inserted in pair.inserted:
                numbers = pair.numbers_of(inserted)
                left.add(numbers >> _HALF)
                right.add(numbers & _LOW_HALF)
        return row_numbers

    def find(self, keys: Sequence[pa.Array]) -> RowNumbers:
        """The row number of each row, or ``NO_ROW``; one that was removed may still be found.

        Of the first key columns only, the number that the rows with these values share.
        """
        first, *others = (leaf for column in keys for leaf in leaves_of(column))
        row_numbers = self._columns[0].find(first)
        for pair, column, values in zip(self._pairs, self._columns[1:], others, strict=False):
            # What lacks a half is negative, and no pair is.
            row_numbers = pair.find(row_numbers << _HALF | column.find(values))
        return row_numbers

    @property
    def inserted(self) -> RowNumbers:
        """The row numbers that the last call gave to new keys, of two or more flat columns."""
        return np.concatenate([np.empty(0, np.int64), *self._pairs[-1].inserted])

    def halves_of(self, row_numbers: RowNumbers) -> tuple[RowNumbers, pa.Array]:
        """What the columns before the last are found by, and the last one, of these rows."""
        numbers = self._pairs[-1].numbers_of(row_numbers)
        return numbers >> _HALF, self._columns[-1].values_of(numbers & _LOW_HALF)

    def remove(self, row_numbers: RowNumbers, capture: int) -> None:
        """Forget the keys of these rows, each of which is there, behind that capture."""
        levels = zip(self._pairs, self._columns[1:], self._uses, strict=True)
        for pair, column, (left, right) in reversed(list(levels)):
            numbers = pair.numbers_of(row_numbers)
            pair.remove(row_numbers, capture)
            column.remove(right.drop(numbers & _LOW_HALF), capture)
            row_numbers = left.drop(numbers >> _HALF)
        self._columns[0].remove(row_numbers, capture)

    def reuse(self, oldest: int) -> None:
        """No capture before this one is left, so what was removed before it may be used again."""
        for column in self._columns:
            column.reuse(oldest)
        for pair in self._pairs:
            pair.free_rows.reuse(oldest)

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
