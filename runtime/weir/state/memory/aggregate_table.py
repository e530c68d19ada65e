"""Keeps the running aggregates of every key, in columns.

A key's row number is its index in flat arrays, one for each accumulator, so a few vectorised calls
process a batch, regardless of its keys. A capture is the table at one moment: taking it costs
microseconds, another thread reads it, and the table continues to change meanwhile (spec S2, S3).
A removed key leaves a fresh row behind, which another key gets once no capture needs it any more.
Neither key groups nor files are known here.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.errors import JobRejected
from weir.ports.keyed_state import Aggregation
from weir.state.accumulators import Accumulator, aggregated_column, count_of
from weir.state.changed_rows import distinct
from weir.state.memory.copy_on_write import CopyOnWrite, Frozen
from weir.state.memory.free_rows import LiveCaptures
from weir.state.memory.key_index import KeyIndex
from weir.state.memory.number_index import RowNumbers
from weir.state.memory.sorted_runs import SortedRuns
from weir.state.schema_evolution import widens
from weir.wire.numpy_columns import arrow_of, validity_of, values_of
from weir.wire.struct_keys import nullable_inside

Array = npt.NDArray[Any]


class AggregateTable:
    """Aggregates by key. Belongs to the mailbox thread."""

    def __init__(
        self,
        keys: Sequence[str],
        aggregates: Sequence[Aggregation],
        schema: pa.Schema,
        namespace: str | None = None,
    ) -> None:
        """For rows of this schema; refuses what cannot be a key or cannot be aggregated."""
        self._keys = [schema.field(key) for key in keys]
        self._by_namespace = None if namespace is None else SortedRuns()
        if namespace is not None:
            self._keys.append(schema.field(namespace))
        self._index = KeyIndex(self._keys)
        self._aggregates = [aggregated_column(each, schema) for each in aggregates]
        kept = dict.fromkeys(one for each in self._aggregates for one in each.accumulators)
        self._accumulators = {one: place for place, one in enumerate(kept)}
        self._inputs = dict.fromkeys(one.column for one in kept)
        self._numbers = {one.column for one in kept if not one.reduction.counts}
        initial = [one.initial for one in self._accumulators]
        self._columns = CopyOnWrite([*initial, np.bool_(False)])  # noqa: FBT003 - a value
        """The accumulators, and whether a row has a key; that counts from the first removal on."""
        self._has_removed = False
        self._captures = LiveCaptures()

    @property
    def size(self) -> int:
        """All row numbers are below."""
        return self._index.size

    @property
    def key_fields(self) -> tuple[pa.Field, ...]:
        """The namespace, if there is one, is the last of them."""
        return tuple(self._keys)

    @property
    def accumulators(self) -> tuple[Accumulator, ...]:
        """In the order in which they are kept."""
        return tuple(self._accumulators)

    @property
    def schema(self) -> pa.Schema:
        """Of a captured table."""
        kept = (pa.field(one.name, one.kind) for one in self._accumulators)
        return pa.schema([*self._keys, *kept])

    def update(self, batch: pa.RecordBatch) -> RowNumbers:
        """Take the rows in. Returns the row of each row's key."""
        row_numbers = self.row_numbers(batch)
        self.fold(row_numbers, batch)
        return row_numbers

    def row_numbers(self, batch: pa.RecordBatch) -> RowNumbers:
        """The row of each row's key; keys that are new have an initial row now."""
        return self.rows_of([batch.column(field.name) for field in self._keys])

    def fold(self, row_numbers: RowNumbers, batch: pa.RecordBatch) -> None:
        """Take the rows into the rows of their keys."""
        rows = {column: self._rows_of(column, row_numbers, batch) for column in self._inputs}
        # A sum of doubles may well run over, and NaN is a value: neither is worth a warning.
        with np.errstate(over="ignore", invalid="ignore"):
            for one, place in self._accumulators.items():
                one.reduction.fold(self._columns.arrays[place], *rows[one.column])

    def rows(self, row_numbers: RowNumbers) -> list[pa.Array]:
        """The key columns, then the aggregates as they stand, of the keys in these rows."""
        columns = self._index.keys_of(row_numbers)
        for aggregate in self._aggregates:
            places = [self._accumulators[one] for one in aggregate.accumulators]
            kept = [self._columns.arrays[place][row_numbers] for place in places]
            columns.append(aggregate.results(kept))
        return columns

    def remove(self, row_numbers: RowNumbers) -> list[pa.Array]:
        """Forget the keys of these rows; a key that comes again begins afresh. Returns the keys."""
        row_numbers = distinct(row_numbers)
        *accumulators, is_kept = self._columns.arrays
        if not self._has_removed:
            is_kept[: self.size] = True
            self._has_removed = True
        assert is_kept[row_numbers].all(), "only keys that are there can be removed"
        keys = self._index.keys_of(row_numbers)
        self._columns.before_write(row_numbers)
        for one, array in zip(self._accumulators, accumulators, strict=True):
            array[row_numbers] = one.initial
        is_kept[row_numbers] = False
        self._index.remove(row_numbers, self._captures.newest)
        if self._by_namespace is not None:
            self._by_namespace.drop(row_numbers)
        return keys

    def expired(self, until: int, most: int) -> RowNumbers:
        """Rows whose namespace is at most that; the same ones until they are removed."""
        assert self._by_namespace is not None, "these aggregates were declared without a namespace"
        return self._by_namespace.until(until, most)

    def merge(self, sources: RowNumbers, targets: RowNumbers) -> None:
        """Take the aggregates of each source into those of its target; no row is both."""
        *accumulators, _ = self._columns.arrays
        with np.errstate(over="ignore", invalid="ignore"):
            for one, array in zip(self._accumulators, accumulators, strict=True):
                one.reduction.merge.at(array, targets, array[sources])

    def keys_of(self, row_numbers: RowNumbers) -> list[pa.Array]:
        """The key columns of these rows."""
        return self._index.keys_of(row_numbers)

    def numbers_of(self, row_numbers: RowNumbers) -> list[Array]:
        """The accumulators of these rows, as they are kept."""
        *accumulators, _ = self._columns.arrays
        return [array[row_numbers] for array in accumulators]

    def put(self, row_numbers: RowNumbers, numbers: Sequence[Array]) -> None:
        """Set the accumulators of these rows."""
        *accumulators, _ = self._columns.arrays
        for array, values in zip(accumulators, numbers, strict=True):
            array[row_numbers] = values

    def capture(self) -> "CapturedTable":
        return CapturedTable(
            self._index,
            tuple(self._accumulators),
            self._columns.freeze(self.size),
            self._captures,
            has_removed=self._has_removed,
        )

    def hold_keys(self) -> "HeldKeys":
        return HeldKeys(self._index, self._captures)

    def load(self, table: pa.Table) -> None:
        """Take over keys that were captured; the rows of a later table are newer."""
        places = self.places(table.schema)
        self._index.reserve(self.size + table.num_rows)
        self._columns.reserve(self.size + table.num_rows)
        for batch in table.to_batches():
            row_numbers = self.rows_of(batch.columns[: len(self._keys)])
            accumulators = self._columns.arrays[: len(self._accumulators)]
            for array, place in zip(accumulators, places, strict=True):
                # Where nothing was counted, a fresh row has what is needed already.
                loaded, values = _without_nulls(row_numbers, batch.column(place))
                array[loaded] = values

    def remove_keys(self, table: pa.Table) -> None:
        """Forget these keys, whether they are there or not; a key may come twice."""
        for batch in table.to_batches():
            self.remove(self.rows_of(batch.columns[: len(self._keys)]))

    def places(self, stored: pa.Schema) -> list[int]:
        """Which column has which accumulator; refuses what cannot be taken over (spec S12)."""
        self.check_keys(list(stored)[: len(self._keys)])
        return [self._place_of(one, stored) for one in self._accumulators]

    def _rows_of(
        self, column: str, row_numbers: RowNumbers, batch: pa.RecordBatch
    ) -> tuple[RowNumbers, Array]:
        """The rows and values where a column is not null; only counted, it can be of any type."""
        if column in self._numbers:
            return _without_nulls(row_numbers, batch.column(column))
        valid = validity_of(batch.column(column)) if column else None
        present = row_numbers if valid is None else row_numbers[valid]
        return present, present

    def rows_of(self, keys: Sequence[pa.Array]) -> RowNumbers:
        """The rows of these keys, about to be written to; keys that are new have an initial row."""
        if self._has_removed:
            self._index.reuse(self._captures.oldest)
        row_numbers = self._index.row_numbers(keys)
        self._columns.reserve(self.size)
        self._columns.before_write(row_numbers)
        if self._by_namespace is not None:
            new = self._index.inserted
            self._by_namespace.add(values_of(self._index.halves_of(new)[1]), new)
        if self._has_removed:
            self._columns.arrays[-1][row_numbers] = True
        return row_numbers

    def check_keys(self, stored: Sequence[pa.Field]) -> None:
        """Refuse a file with other key columns; without its namespace, windows would be one."""
        wanted = [(field.name, nullable_inside(field.type)) for field in self._keys]
        found = [(field.name, nullable_inside(field.type)) for field in stored]
        if found != wanted:
            raise JobRejected(
                f"the state was kept by {_listed(found)}",
                f"the job groups by {_listed(wanted)}",
                "keep the keys as they were, or give the aggregation a new uid to start afresh",
            )

    def _place_of(self, one: Accumulator, stored: pa.Schema) -> int:
        names = stored.names[len(self._keys) :]
        if one.name not in names:
            raise JobRejected(
                f"the job needs {one.name}, and the state has only {', '.join(names)}",
                "it cannot be computed for rows that went by",
                "give the aggregation a new uid to start afresh",
            )
        place: int = names.index(one.name) + len(self._keys)
        kind = stored.field(place).type
        if not widens(kind, one.kind):
            raise JobRejected(
                f"the state's {one.name} is of type {kind}",
                f"the job's is of {one.kind}, which does not hold every value of it",
                "widen the type, or keep it",
            )
        return place


class CapturedTable:
    """The table at one moment. Belongs to the thread that writes it."""

    def __init__(
        self,
        index: KeyIndex,
        accumulators: Sequence[Accumulator],
        frozen: Frozen,
        captures: LiveCaptures,
        *,
        has_removed: bool,
    ) -> None:
        self._index = index
        self._accumulators = accumulators
        self._frozen = frozen
        self._captures = captures
        self._number = captures.take()
        self._has_removed = has_removed

    def read(self, row_numbers: RowNumbers | None = None) -> pa.Table:
        """The key columns, then the accumulators by name: of these rows, or of all.

        The rows are in ascending order, each once; those without a key are left out. May be called
        once, by any thread, before the release.
        """
        wanted: RowNumbers | slice
        if row_numbers is None:
            wanted = slice(0, self._frozen.size)
            *arrays, is_kept = self._frozen.read()
        else:
            wanted = row_numbers
            *arrays, is_kept = self._frozen.read_rows(row_numbers)
        if self._has_removed:
            arrays = [array[is_kept] for array in arrays]
            wanted = np.flatnonzero(is_kept) if row_numbers is None else row_numbers[is_kept]
        columns = self._index.keys_of(wanted)
        by_accumulator = dict(zip(self._accumulators, arrays, strict=True))
        fields = list(self._index.fields)
        for one, values in by_accumulator.items():
            count = None if one.reduction.counts else by_accumulator[count_of(one.column)]
            columns.append(arrow_of(values, None if count is None else count > 0, one.kind))
            fields.append(pa.field(one.name, one.kind))
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))

    def numbers(self, row_numbers: RowNumbers) -> tuple[list[pa.Array], list[Array]]:
        """The key columns and the accumulators as they are kept; called instead of ``read``."""
        *arrays, is_kept = self._frozen.read_rows(row_numbers)
        if self._has_removed:
            arrays = [array[is_kept] for array in arrays]
            row_numbers = row_numbers[is_kept]
        return self._index.keys_of(row_numbers), arrays

    def release(self) -> None:
        """Free what was kept for this capture. Any thread may call it."""
        self._frozen.release()
        self._captures.end(self._number)


class HeldKeys:
    """The keys of rows, which another thread can read until it releases them."""

    def __init__(self, index: KeyIndex, captures: LiveCaptures) -> None:
        self._index = index
        self._captures = captures
        self._number = captures.take()

    def keys_of(self, row_numbers: RowNumbers) -> list[pa.Array]:
        """Of a row whose key was removed before, that key or any other."""
        return self._index.keys_of(row_numbers)

    def release(self) -> None:
        self._captures.end(self._number)


def _without_nulls(row_numbers: RowNumbers, column: pa.Array) -> tuple[RowNumbers, Array]:
    valid = validity_of(column)
    if valid is None:
        return row_numbers, values_of(column)
    return row_numbers[valid], values_of(column)[valid]


def _listed(fields: Sequence[tuple[str, pa.DataType]]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in fields)
