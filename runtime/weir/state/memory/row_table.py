"""Keeps rows of columns by key, for states that are used by whole batches.

A row's number is its index in flat arrays, as in ``weir.state.memory.aggregate_table``. Numbers,
booleans and times are arrays of numbers with an array that says which are not null; texts and
nested values are arrays of objects. Rows are found by all their key columns, by those before the
ordinal (``match``), and in the order of their time (``expired``).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.ports.keyed_state import Found, Matches, RowNumbers
from weir.ports.operators import Batch
from weir.state.batch_rows import BatchRows
from weir.state.changed_rows import distinct
from weir.state.memory.copy_on_write import CopyOnWrite, Frozen
from weir.state.memory.free_rows import LiveCaptures
from weir.state.memory.key_index import KeyIndex
from weir.state.memory.sorted_runs import SortedRuns
from weir.wire.numpy_columns import arrow_of, dtype_of, validity_of, values_of

Array = npt.NDArray[Any]


class _NumberColumn:
    """Values of fixed width, and which of them are not null."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self.fresh: tuple[Any, ...] = (dtype_of(kind).type(0), np.bool_(False))  # noqa: FBT003

    def arrays_of(self, column: pa.Array) -> tuple[Array, ...]:
        valid = validity_of(column)
        return values_of(column), np.ones(len(column), np.bool_) if valid is None else valid

    def column_of(self, arrays: Sequence[Array]) -> pa.Array:
        values, valid = arrays
        return arrow_of(values, valid, self._kind)


class _ObjectColumn:
    """Values of any type, as Arrow makes them for Python."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self.fresh: tuple[Any, ...] = (None,)

    def arrays_of(self, column: pa.Array) -> tuple[Array, ...]:
        if pa.types.is_nested(column.type) or pa.types.is_decimal(column.type):
            # Arrow's own conversion makes arrays of lists, in which a null is NaN.
            return (np.fromiter(column.to_pylist(), np.object_, len(column)),)
        return (column.to_numpy(zero_copy_only=False),)

    def column_of(self, arrays: Sequence[Array]) -> pa.Array:
        return pa.array(arrays[0].tolist(), self._kind)


def _column_of(kind: pa.DataType) -> _NumberColumn | _ObjectColumn:
    is_number = pa.types.is_primitive(kind) and not pa.types.is_decimal(kind)
    return _NumberColumn(kind) if is_number else _ObjectColumn(kind)


class RowTable:
    """Belongs to the mailbox thread."""

    def __init__(self, rows: BatchRows) -> None:
        """Refuses what cannot be a key."""
        self._rows = rows
        self._index = KeyIndex(rows.identity)
        self._kinds = [_column_of(field.type) for field in rows.values]
        self._columns = CopyOnWrite(
            [*(one for kind in self._kinds for one in kind.fresh), np.False_]
        )
        """Those of the values, and whether a row has a key."""
        self._by_key = SortedRuns() if rows.has_ordinals else None
        self._by_time = None if rows.time is None else SortedRuns()
        before = self._kinds[: rows.time_at or 0]
        self._time = sum(len(kind.fresh) for kind in before)
        self._captures = LiveCaptures()

    @property
    def size(self) -> int:
        """All row numbers are below."""
        return self._index.size

    @property
    def schema(self) -> pa.Schema:
        """Of a captured table."""
        return self._rows.file_schema

    def get(self, keys: Batch) -> Found:
        row_numbers = self.find(keys)
        present = row_numbers >= 0
        return Found(present, self.rows(row_numbers[present]))

    def match(self, keys: Batch) -> Matches:
        assert self._by_key is not None, "only rows with ordinals are matched"
        names = self._rows.keys.names
        numbers = self._index.find([keys.column(name) for name in names])
        positions, row_numbers = self._by_key.matching(numbers)
        return Matches(positions, self.rows(row_numbers))

    def expired(self, until: int, most: int) -> Batch:
        assert self._by_time is not None, "these rows were declared without a time"
        return self.rows(self._by_time.until(until, most))

    def find(self, keys: Batch) -> RowNumbers:
        """The rows with these key columns and ordinals; negative where there is none."""
        row_numbers = self._index.find([keys.column(name) for name in self._rows.identity_names])
        *_, is_kept = self._columns.arrays
        return np.where(is_kept[row_numbers], row_numbers, -1)

    def rows(self, row_numbers: RowNumbers) -> Batch:
        arrays = [array[row_numbers] for array in self._columns.arrays[:-1]]
        columns = [*self._index.keys_of(row_numbers), *_values(self._kinds, arrays)]
        return pa.RecordBatch.from_arrays(columns, schema=self._rows.schema)

    def put(self, rows: Batch) -> RowNumbers:
        """The last row of those with one key is kept."""
        columns = [rows.column(field.name) for field in self._rows.schema]
        return self._put(columns)

    def remove(self, row_numbers: RowNumbers) -> list[pa.Array]:
        """Rows that are there. Returns their key columns."""
        row_numbers = distinct(row_numbers)
        *values, is_kept = self._columns.arrays
        assert is_kept[row_numbers].all(), "only rows that are there can be removed"
        keys = self._index.keys_of(row_numbers)
        self._columns.before_write(row_numbers)
        fresh = [one for kind in self._kinds for one in kind.fresh]
        for array, value in zip(values, fresh, strict=True):
            array[row_numbers] = value
        is_kept[row_numbers] = False
        for order in (self._by_key, self._by_time):
            if order is not None:
                order.drop(row_numbers)
        self._index.remove(row_numbers, self._captures.newest)
        return keys

    def capture(self) -> "CapturedRowTable":
        frozen = self._columns.freeze(self.size)
        return CapturedRowTable(self._rows, self._kinds, self._index, frozen, self._captures)

    def load(self, table: pa.Table) -> None:
        """Take over rows that were captured; the rows of a later table are newer."""
        self._index.reserve(self.size + table.num_rows)
        self._columns.reserve(self.size + table.num_rows)
        for batch in table.select(self.schema.names).to_batches():
            self._put(batch.columns)

    def remove_keys(self, table: pa.Table) -> None:
        """Forget the rows with these key columns, whether they are there or not."""
        for batch in table.to_batches():
            row_numbers = self.find(batch)
            self.remove(row_numbers[row_numbers >= 0])

    def _put(self, columns: Sequence[pa.Array]) -> RowNumbers:
        keys = len(self._rows.identity)
        self._index.reuse(self._captures.oldest)
        row_numbers = self._index.row_numbers(columns[:keys])
        self._columns.reserve(self.size)
        self._columns.before_write(row_numbers)
        *values, is_kept = self._columns.arrays
        put = distinct(row_numbers)
        was_kept = is_kept[put]
        times = values[self._time][put] if self._by_time is not None else None
        pairs = zip(self._kinds, columns[keys:], strict=True)
        written = [array for kind, column in pairs for array in kind.arrays_of(column)]
        for array, new in zip(values, written, strict=True):
            array[row_numbers] = new
        is_kept[put] = True
        if self._by_key is not None:
            new_rows = put[~was_kept]
            self._by_key.add(self._index.halves_of(new_rows)[0], new_rows)
        if self._by_time is not None:
            has_moved = values[self._time][put] != times
            self._by_time.drop(put[was_kept & has_moved])
            moved = put[~was_kept | has_moved]
            self._by_time.add(values[self._time][moved], moved)
        return row_numbers


class CapturedRowTable:
    """The table at one moment. Belongs to the thread that writes it."""

    def __init__(
        self,
        rows: BatchRows,
        kinds: Sequence[_NumberColumn | _ObjectColumn],
        index: KeyIndex,
        frozen: Frozen,
        captures: LiveCaptures,
    ) -> None:
        self._rows = rows
        self._kinds = kinds
        self._index = index
        self._frozen = frozen
        self._captures = captures
        self._number = captures.take()

    def read(self, row_numbers: RowNumbers | None = None) -> pa.Table:
        """The key columns, then the values: of these rows in ascending order, or of all.

        Those without a key are left out. May be called once, by any thread, before the release.
        """
        if row_numbers is None:
            *arrays, is_kept = self._frozen.read()
            wanted = np.flatnonzero(is_kept)
        else:
            *arrays, is_kept = self._frozen.read_rows(row_numbers)
            wanted = row_numbers[is_kept]
        values = _values(self._kinds, [array[is_kept] for array in arrays])
        columns = [*self._index.keys_of(wanted), *values]
        return pa.Table.from_arrays(columns, schema=self._rows.file_schema)

    def release(self) -> None:
        """Free what was kept for this capture. Any thread may call it."""
        self._frozen.release()
        self._captures.end(self._number)


def _values(
    kinds: Sequence[_NumberColumn | _ObjectColumn], arrays: Sequence[Array]
) -> list[pa.Array]:
    columns, at = [], 0
    for kind in kinds:
        columns.append(kind.column_of(arrays[at : at + len(kind.fresh)]))
        at += len(kind.fresh)
    return columns
