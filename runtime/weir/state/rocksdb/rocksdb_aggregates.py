"""Running aggregates in RocksDB, behind a table in memory that holds the keys in use.

A batch is folded into the table, as in the memory backend; the keys that the table does not have
are read first, all at once. When the table has as many keys as the memory allows, the operator
emits what changed and gives its row numbers back, and the table is written in one batch and begins
anew. So RocksDB is asked once for a batch of rows and written once for many batches.

A capture is a snapshot of RocksDB and the table at the same moment, whose rows are newer.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.core.ids import CheckpointId
from weir.core.snapshots import KeyGroupRange
from weir.ports.keyed_state import AGGREGATES_FILE, Aggregation, RowNumbers
from weir.ports.operators import Batch, Captured, KeyedSnapshot
from weir.state.accumulators import Accumulator, count_of
from weir.state.changed_rows import distinct
from weir.state.layer_merge import layer_of, split_removed
from weir.state.memory.aggregate_table import AggregateTable, CapturedTable
from weir.state.restored_rows import Keys
from weir.state.rocksdb.aggregate_changes import AggregateChanges, TableChanges, merged
from weir.state.rocksdb.changed_keys import KnownChanges
from weir.state.rocksdb.database import Database, Entry, HeldSnapshot
from weir.state.rocksdb.key_codec import KeyCodec, bytes_of, group_bytes
from weir.state.rocksdb.rocksdb_memory import RocksDBMemory
from weir.state.rocksdb.time_order import TimeOrder
from weir.state.snapshot_files import (
    KEY_GROUP,
    ROWS_PER_BATCH,
    FileHeader,
    KeyedState,
    write_keyed,
    write_sorted,
)
from weir.wire.numpy_columns import arrow_of, dtype_of, values_of

Array = npt.NDArray[Any]

MOST_ROWS = 1 << 18
"""Of the table, so that writing it back never takes long."""

_BYTES_OF_A_KEY = 128
_GROUP_BYTES = 2
_BEHIND_KEYS = b"\x02"
"""Keys begin with whether their first value is null, which is one of two bytes."""
_NO_NUMBER = b"\0\0"


class AccumulatorCodec:
    """The accumulators of a key as bytes: their numbers, one after the other."""

    def __init__(self, accumulators: Sequence[Accumulator]) -> None:
        self._dtypes = [dtype_of(one.kind) for one in accumulators]
        self.width = sum(dtype.itemsize for dtype in self._dtypes)

    def encode(self, arrays: Sequence[Array]) -> list[bytes]:
        cells = [
            np.ascontiguousarray(array, dtype).view(np.uint8).reshape(len(array), dtype.itemsize)
            for array, dtype in zip(arrays, self._dtypes, strict=True)
        ]
        return bytes_of(np.hstack(cells))

    def decode(self, values: Sequence[bytes]) -> list[Array]:
        cells = np.frombuffer(b"".join(values), np.uint8).reshape(len(values), self.width)
        arrays, at = [], 0
        for dtype in self._dtypes:
            part = np.ascontiguousarray(cells[:, at : at + dtype.itemsize])
            arrays.append(part.view(dtype).ravel())
            at += dtype.itemsize
        return arrays


class RocksDBAggregates:
    """Aggregates by key. Belongs to the mailbox thread."""

    def __init__(
        self,
        keys: Keys,
        requested: tuple[Sequence[Aggregation], pa.Schema, str | None],
        groups: KeyGroupRange,
        database: Database,
        memory: RocksDBMemory,
    ) -> None:
        self._keys = keys
        self._requested = requested
        self._groups = groups
        self._database = database
        self._memory = memory
        self._table = self._new_table()
        self._identity = self._table.key_fields
        self._codec = KeyCodec(self._identity)
        self._order = None if requested[2] is None else TimeOrder(database, _NO_NUMBER)
        self._is_read = np.zeros(0, np.bool_)
        """Which rows of the table hold their key's aggregates; a row may get another key."""
        self._accumulators = AccumulatorCodec(self._table.accumulators)
        self._log: AggregateChanges | None = None

    def remember_changes(self) -> None:
        """From now on, captures say what has changed since earlier ones."""
        self._log = AggregateChanges(self._identity)

    @property
    def size(self) -> int:
        return self._table.size

    def update(self, batch: Batch) -> RowNumbers:
        row_numbers = self._of_table(self._table.row_numbers(batch))
        self._table.fold(row_numbers, batch)
        if self._log is not None:
            self._log.changed(row_numbers, self._table.size)
        return row_numbers

    def remove(self, row_numbers: RowNumbers) -> None:
        row_numbers = distinct(row_numbers)
        keys = self._table.remove(row_numbers)
        if self._log is not None:
            self._log.removed(keys)
        self._is_read[row_numbers] = False
        self._delete(keys)

    def expired(self, until: int, most: int) -> RowNumbers:
        """Those of the table come first, so the entries that follow are not in it."""
        row_numbers = self._table.expired(until, most)
        if len(row_numbers):
            return row_numbers
        assert self._order is not None, "these aggregates were declared without a namespace"
        while found := self._order.until(until, most):
            entries = self._order.leads_to(found)
            values = self._database.multi_get(entries)
            left_over = [one for one, value in zip(found, values, strict=True) if value is None]
            self._database.write((entry, None) for entry in left_over)
            kept = [one for one, value in zip(entries, values, strict=True) if value is not None]
            if kept:
                keys, _ = self._codec.decode(kept, _GROUP_BYTES)
                return distinct(self._of_table(self._table.rows_of(keys)))
        return np.empty(0, np.int64)

    def merge(self, sources: Sequence[pa.Array], targets: Sequence[pa.Array]) -> RowNumbers:
        merged = self._of_table(self._table.rows_of(sources))
        row_numbers = self._of_table(self._table.rows_of(targets))
        self._table.merge(merged, row_numbers)
        if self._log is not None:
            self._log.changed(row_numbers, self._table.size)
        self.remove(merged)
        return row_numbers

    def rows(self, row_numbers: RowNumbers) -> list[pa.Array]:
        return self._table.rows(row_numbers)

    def is_full(self) -> bool:
        row_bytes = _BYTES_OF_A_KEY + self._accumulators.width
        return self.size >= min(MOST_ROWS, self._memory.unwritten_bytes // row_bytes)

    def write_back(self) -> None:
        """Write the table to RocksDB and begin a new one."""
        self._write(self._table, np.flatnonzero(self._is_read))
        if self._log is not None:
            self._log.written_back(self._table)
        self._table = self._new_table()
        self._is_read = np.zeros(0, np.bool_)

    def capture(self, checkpoint: CheckpointId) -> Captured:
        past: KnownChanges[TableChanges] = KnownChanges(())
        if self._log is not None:
            past = self._log.captured(checkpoint, self._table)
        table, snapshot = self._table.capture(), self._database.snapshot()
        writing = AggregatesWriting(table, snapshot, self._keys, self._table, self._database.path)
        writing.past = past

        def release() -> None:
            table.release()
            snapshot.release()

        piece = KeyedSnapshot(self._groups, writing.whole, AGGREGATES_FILE, writing.since)
        return Captured(keyed=(piece,), release=release, known=past.known)

    def completed(self, checkpoint: CheckpointId) -> None:
        if self._log is not None:
            self._log.truncated(checkpoint)

    def restore(self, files: Sequence[KeyedState], checkpoint: CheckpointId) -> None:
        """The files come in the order they were laid; the rows of a later one are newer."""
        is_as_it_was = True
        for state in files:
            self._table.check_keys(state.key_fields)
            removed, rows = split_removed(state.table)
            is_as_it_was &= rows.schema.equals(self._table.schema)
            self._table.places(rows.schema)
            for batch in () if removed is None else removed.to_batches():
                self._delete(batch.columns[: len(self._identity)])
            for batch in rows.to_batches(max_chunksize=ROWS_PER_BATCH):
                table = self._new_table()
                table.load(pa.Table.from_batches([batch]))
                self._write(table, np.arange(table.size))
        if self._log is not None and is_as_it_was:
            # What is of other types now cannot be laid over the files of then.
            self._log.begun(checkpoint)

    def _new_table(self) -> AggregateTable:
        return AggregateTable(self._keys.names, *self._requested)

    def _entries(self, columns: Sequence[pa.Array]) -> list[bytes]:
        groups = group_bytes(self._keys.groups(columns[: len(self._keys.fields)]))
        return [group + key for group, key in zip(groups, self._codec.encode(columns), strict=True)]

    def _of_table(self, row_numbers: RowNumbers) -> RowNumbers:
        """The same rows of the table, after those that it did not have were read."""
        if self._table.size > len(self._is_read):
            longer = np.zeros(2 * self._table.size, np.bool_)
            longer[: len(self._is_read)] = self._is_read
            self._is_read = longer
        new = row_numbers[~self._is_read[row_numbers]]
        if len(new):
            new = distinct(new)
            self._read(new)
            self._is_read[new] = True
        return row_numbers

    def _delete(self, keys: Sequence[pa.Array]) -> None:
        entries = self._entries(keys)
        self._database.write((entry, None) for entry in entries + self._in_order(keys, entries))

    def _in_order(self, keys: Sequence[pa.Array], entries: Sequence[bytes]) -> list[bytes]:
        return [] if self._order is None else self._order.entries(values_of(keys[-1]), entries)

    def _read(self, row_numbers: RowNumbers) -> None:
        """Fill the rows of these keys."""
        values = self._database.multi_get(self._entries(self._table.keys_of(row_numbers)))
        present = [value for value in values if value is not None]
        if present:
            known = np.fromiter((value is not None for value in values), np.bool_, len(values))
            self._table.put(row_numbers[known], self._accumulators.decode(present))

    def _write(self, table: AggregateTable, row_numbers: RowNumbers) -> None:
        for begin in range(0, len(row_numbers), ROWS_PER_BATCH):
            some = row_numbers[begin : begin + ROWS_PER_BATCH]
            keys = table.keys_of(some)
            entries = self._entries(keys)
            values = self._accumulators.encode(table.numbers_of(some))
            ordered = self._in_order(keys, entries)
            self._database.write_pairs(entries + ordered, values + [b""] * len(ordered))


class AggregatesWriting:
    """Writes what was captured; called on an upload thread, while processing continues."""

    def __init__(
        self,
        table: CapturedTable,
        snapshot: HeldSnapshot,
        keys: Keys,
        of: AggregateTable,
        directory: Path,
    ) -> None:
        self._table = table
        self._snapshot = snapshot
        self._keys = keys
        self._accumulators = of.accumulators
        self._identity = of.key_fields
        self._codec = KeyCodec(self._identity)
        self._numbers = AccumulatorCodec(self._accumulators)
        self.past: KnownChanges[TableChanges] = KnownChanges(())
        """What changed before the capture, as far as it is known."""
        self._path = directory.with_name(f"{directory.name}-{id(self)}.arrow")

    def whole(self) -> pa.Buffer:
        schema = self._schema()
        names = [field.name for field in self._identity]
        header = FileHeader(AGGREGATES_FILE, names, self._keys.max_parallelism)
        return write_sorted(self._path, header, schema, self._batches(schema))

    def since(self, base: CheckpointId) -> pa.Buffer | None:
        """The keys that changed: of the table's rows, from RocksDB, or gone."""
        intervals = self.past.since(base)
        if intervals is None:
            return None
        row_numbers, keys = merged(intervals)
        newer = self._table.read(row_numbers)
        hidden = set(self._encoded(newer.columns[: len(self._identity)]))
        asked = set(self._encoded(keys.columns)) - hidden if keys is not None else set[bytes]()
        values = {entry: self._snapshot.get(entry) for entry in sorted(asked)}
        found = [(entry, value) for entry, value in values.items() if value is not None]
        missing = [entry for entry, value in values.items() if value is None]
        tables = [newer]
        if found:
            older = pa.Table.from_batches([self._older(found, self._schema())])
            tables.append(older.drop_columns([KEY_GROUP.name]).cast(newer.schema))
        gone = [self._keys_behind(missing)] if missing else []
        table = layer_of(pa.concat_tables(tables), gone)
        groups = self._keys.groups(_whole(table.columns[: len(self._keys.fields)]))
        names, most = [field.name for field in self._identity], self._keys.max_parallelism
        return write_keyed(AGGREGATES_FILE, table, groups, names, most)

    def _schema(self) -> pa.Schema:
        kept = (pa.field(one.name, one.kind) for one in self._accumulators)
        return pa.schema([KEY_GROUP, *self._identity, *kept])

    def _keys_behind(self, entries: Sequence[bytes]) -> pa.Table:
        columns, _ = self._codec.decode(entries, _GROUP_BYTES)
        return pa.Table.from_arrays(columns, schema=pa.schema(self._identity))

    def _encoded(self, columns: Sequence[pa.ChunkedArray]) -> list[bytes]:
        whole = _whole(columns)
        groups = group_bytes(self._keys.groups(whole[: len(self._keys.fields)]))
        return [group + key for group, key in zip(groups, self._codec.encode(whole), strict=True)]

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Sorted by key group: entries as they come, with the table's rows of the groups before."""
        newer = self._table.read().combine_chunks()
        columns = [column.combine_chunks() for column in newer.columns[: len(self._identity)]]
        groups = self._keys.groups(columns[: len(self._keys.fields)])
        keys = group_bytes(groups)
        hidden = {group + key for group, key in zip(keys, self._codec.encode(columns), strict=True)}
        order = np.argsort(groups, kind="stable")
        sorted_groups = groups[order]
        newer = newer.take(pa.array(order)).add_column(0, KEY_GROUP, pa.array(sorted_groups))
        emitted = 0
        for older in _chunks(self._entries(), hidden):
            batch = self._older(older, schema)
            last = batch.column(0)[batch.num_rows - 1].as_py()
            until = int(np.searchsorted(sorted_groups, last))
            both = [batch, *newer.slice(emitted, until - emitted).to_batches()]
            emitted = max(until, emitted)
            merged = pa.Table.from_batches([one.cast(schema) for one in both], schema)
            yield from merged.sort_by(KEY_GROUP.name).combine_chunks().to_batches()
        yield from newer.slice(emitted).cast(schema).to_batches()

    def _entries(self) -> Iterator[Entry]:
        """Those of aggregates: behind them in each key group are the entries of batch states."""
        for group in range(self._keys.max_parallelism):
            first = group.to_bytes(_GROUP_BYTES, "big")
            yield from self._snapshot.scan(first, first + _BEHIND_KEYS)

    def _older(self, entries: Sequence[Entry], schema: pa.Schema) -> pa.RecordBatch:
        keys, values = zip(*entries, strict=True)
        columns, _ = self._codec.decode(keys, _GROUP_BYTES)
        first_bytes = b"".join(key[:_GROUP_BYTES] for key in keys)
        groups = pa.array(np.frombuffer(first_bytes, ">u2").astype(np.int32))
        arrays = dict(zip(self._accumulators, self._numbers.decode(values), strict=True))
        kept = []
        for one, numbers in arrays.items():
            count = None if one.reduction.counts else arrays[count_of(one.column)]
            kept.append(arrow_of(numbers, None if count is None else count > 0, one.kind))
        return pa.RecordBatch.from_arrays([groups, *columns, *kept], schema=schema)


def _whole(columns: Sequence[pa.ChunkedArray]) -> list[pa.Array]:
    return [column.combine_chunks() for column in columns]


def _chunks(entries: Iterator[Entry], hidden: set[bytes]) -> Iterator[list[Entry]]:
    """Those that are not hidden, so many at a time."""
    chunk: list[Entry] = []
    for entry in entries:
        if entry[0] not in hidden:
            chunk.append(entry)
            if len(chunk) == ROWS_PER_BATCH:
                yield chunk
                chunk = []
    if chunk:
        yield chunk
