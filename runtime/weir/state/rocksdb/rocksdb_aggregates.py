"""Running aggregates in RocksDB, behind a table in memory that holds the keys in use.

A batch is folded into the table, as in the memory backend; the keys that the table does not have
are read first, all at once. When the table has as many keys as the memory allows, the operator
emits what changed and gives its row numbers back, and the table is written in one batch and begins
anew. So RocksDB is asked once for a batch of rows and written once for many batches.

A capture writes the rows of the table that RocksDB does not have yet, on the upload's thread, from
the table as it was at the barrier; the table itself stays, so its keys are not read again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.core.ids import CheckpointId
from weir.core.snapshots import KeyGroupRange
from weir.ports.keyed_state import AGGREGATES_FILE, Aggregation, RowNumbers
from weir.ports.operators import Batch, Captured, KeyedSnapshot, LocalState
from weir.state.accumulators import Accumulator, count_of
from weir.state.changed_rows import distinct
from weir.state.layer_merge import layer_of, split_removed
from weir.state.memory.aggregate_table import AggregateTable, HeldKeys
from weir.state.restored_rows import Keys
from weir.state.rocksdb.aggregate_changes import AggregateChanges, TableChanges, merged
from weir.state.rocksdb.changed_keys import KnownChanges
from weir.state.rocksdb.database import Database, Entry
from weir.state.rocksdb.key_codec import KeyCodec, bytes_of, group_bytes
from weir.state.rocksdb.native_snapshot import file_without_rows, native_snapshot
from weir.state.rocksdb.rocksdb_capture import RocksDBCapture
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
        """The namespace, if there is one, is the last of them."""
        self._codec = KeyCodec(self._identity)
        self._order = None if requested[2] is None else TimeOrder(database, _NO_NUMBER)
        self._is_read = np.zeros(0, np.bool_)
        """Which rows of the table hold their key's aggregates; a row may get another key."""
        self._is_changed = np.zeros(0, np.bool_)
        """Which rows RocksDB does not have as they are."""
        self._capture: RocksDBCapture | None = None
        """Writes the rows that had changed at the last barrier; None: they are written."""
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
        self._is_changed[row_numbers] = True
        return row_numbers

    def remove(self, row_numbers: RowNumbers) -> None:
        row_numbers = distinct(row_numbers)
        keys = self._table.remove(row_numbers)
        if self._log is not None:
            self._log.removed(keys)
        self._is_read[row_numbers] = False
        self._is_changed[row_numbers] = False
        self._settle()
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
        merging = self._of_table(self._table.rows_of(sources))
        row_numbers = self._of_table(self._table.rows_of(targets))
        self._table.merge(merging, row_numbers)
        self._is_changed[row_numbers] = True
        if self._log is not None:
            self._log.changed(row_numbers, self._table.size)
        self.remove(merging)
        return row_numbers

    def rows(self, row_numbers: RowNumbers) -> list[pa.Array]:
        return self._table.rows(row_numbers)

    def is_full(self) -> bool:
        row_bytes = _BYTES_OF_A_KEY + self._accumulators.width
        return self.size >= min(MOST_ROWS, self._memory.unwritten_bytes // row_bytes)

    def write_back(self) -> None:
        """Write the table to RocksDB and begin a new one."""
        self._settle()
        self._write(self._table, np.flatnonzero(self._is_changed))
        if self._log is not None:
            self._log.written_back(self._table)
        self._table = self._new_table()
        self._is_read = np.zeros(0, np.bool_)
        self._is_changed = np.zeros(0, np.bool_)

    def capture(self, checkpoint: CheckpointId, *, keeps_files: bool) -> Captured:
        self._settle()
        past: KnownChanges[TableChanges] = KnownChanges(())
        if self._log is not None:
            past = self._log.captured(checkpoint, self._table)
        changed = np.flatnonzero(self._is_changed)
        self._is_changed[changed] = False
        table, held = self._table.capture(), self._table.hold_keys()

        read: list[tuple[Sequence[pa.Array], Sequence[Array]]] = []

        def write() -> None:
            if not read:  # a write that failed is repeated
                read.append(table.numbers(changed))
                table.release()
            self._write_rows(*read[0])

        keeps_files = keeps_files and self._order is None  # which its files do not describe
        capture = RocksDBCapture(self._database, write, keeps_files=keeps_files)
        self._capture = capture
        path = self._database.path.with_suffix(f".{checkpoint}")
        writing = AggregatesWriting(capture, self._keys, self._table, path, held, past)
        piece = KeyedSnapshot(self._groups, writing.whole, AGGREGATES_FILE, writing.since)

        def release() -> None:
            held.release()
            capture.release()

        return Captured(
            keyed=(piece,),
            release=release,
            native=native_snapshot(capture, self._database, self._groups, (self.described(),)),
            known=past.known,
        )

    def described(self) -> LocalState:
        """As one state of the instance, all of whose entries are its."""
        fields = (*self._keys.fields, *_columns(self._table.accumulators))
        return LocalState(
            AGGREGATES_FILE, 0, file_without_rows(AGGREGATES_FILE, fields, self._keys)
        )

    def completed(self, checkpoint: CheckpointId) -> None:
        if self._log is not None:
            self._log.truncated(checkpoint)

    def restore(self, files: Sequence[KeyedState], checkpoint: CheckpointId) -> None:
        """The files come in the order they were laid; the rows of a later one are newer."""
        is_as_it_was = self.load(files)
        if self._log is not None and is_as_it_was:
            # What is of other types now cannot be laid over the files of then.
            self._log.begun(checkpoint)

    def load(self, files: Sequence[KeyedState]) -> bool:
        """Whether all files have the columns of today."""
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
        return is_as_it_was

    def _new_table(self) -> AggregateTable:
        return AggregateTable(self._keys.names, *self._requested)

    def _entries(self, columns: Sequence[pa.Array]) -> list[bytes]:
        return _entries_of(columns, self._keys, self._codec)

    def _of_table(self, row_numbers: RowNumbers) -> RowNumbers:
        """The same rows of the table, after those that it did not have were read."""
        if self._table.size > len(self._is_read):
            longer = np.zeros(2 * self._table.size, np.bool_)
            longer[: len(self._is_read)] = self._is_read
            self._is_read = longer
            longer = np.zeros(len(longer), np.bool_)
            longer[: len(self._is_changed)] = self._is_changed
            self._is_changed = longer
        new = row_numbers[~self._is_read[row_numbers]]
        if len(new):
            new = distinct(new)
            self._read(new)
            self._is_read[new] = True
        return row_numbers

    def reads_as_stored(self, stored: pa.Schema) -> bool:
        """Whether entries of this schema are those of today; refuses what cannot be taken over."""
        self._table.places(stored)
        now = [(one.name, one.kind) for one in self._table.accumulators]
        return [(f.name, f.type) for f in stored][len(self._keys.fields) :] == now

    def _settle(self) -> None:
        if self._capture is not None:
            self._capture.settle()
            self._capture = None

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
            self._write_rows(table.keys_of(some), table.numbers_of(some))

    def _write_rows(self, keys: Sequence[pa.Array], numbers: Sequence[Array]) -> None:
        if len(keys[0]):
            entries = self._entries(keys)
            ordered = self._in_order(keys, entries)
            values = self._accumulators.encode(numbers) + [b""] * len(ordered)
            self._database.write_pairs(entries + ordered, values)


@dataclass(frozen=True, slots=True)
class AggregatesWriting:
    """Writes what was captured; called on an upload thread, while processing continues."""

    capture: RocksDBCapture
    keys: Keys
    table: AggregateTable
    path: Path
    held: HeldKeys
    past: KnownChanges[TableChanges]
    """What changed before the capture, as far as it is known."""

    def whole(self) -> pa.Buffer:
        rows = AggregateEntries(self.table.key_fields, self.table.accumulators)
        header = FileHeader(AGGREGATES_FILE, self._names(), self.keys.max_parallelism)
        return write_sorted(self.path, header, rows.schema, rows.batches(self._entries()))

    def since(self, base: CheckpointId) -> pa.Buffer | None:
        """The keys that changed, with their aggregates at the capture, or gone."""
        intervals = self.past.since(base)
        if intervals is None:
            return None
        snapshot = self.capture.snapshot()
        values = {entry: snapshot.get(entry) for entry in sorted(self._changed(intervals))}
        found = ((entry, value) for entry, value in values.items() if value is not None)
        missing = [entry for entry, value in values.items() if value is None]
        rows = AggregateEntries(self.table.key_fields, self.table.accumulators)
        changed = pa.Table.from_batches(rows.batches(found), rows.schema)
        gone = [rows.keys_behind(missing)] if missing else []
        table = layer_of(changed.drop_columns([KEY_GROUP.name]), gone)
        names, most = self._names(), self.keys.max_parallelism
        groups = self.keys.groups(_whole(table.select(self.keys.names)))
        return write_keyed(AGGREGATES_FILE, table, groups, names, most)

    def _names(self) -> list[str]:
        return [field.name for field in self.table.key_fields]

    def _entries(self) -> Iterator[Entry]:
        """Those of aggregates: behind them in each key group are the entries of batch states."""
        snapshot, groups = self.capture.snapshot(), self.keys.all_groups
        for group in range(groups.first, groups.last + 1):
            first = group.to_bytes(_GROUP_BYTES, "big")
            yield from snapshot.scan(first, first + _BEHIND_KEYS)

    def _changed(self, intervals: Sequence[TableChanges]) -> set[bytes]:
        row_numbers, keys = merged(intervals)
        codec = KeyCodec(self.table.key_fields)
        entries = set(_entries_of(self.held.keys_of(row_numbers), self.keys, codec))
        if keys is not None:
            entries.update(_entries_of(_whole(keys), self.keys, codec))
        return entries


class AggregateEntries:
    """Decodes entries to rows, in batches."""

    def __init__(self, keys: Sequence[pa.Field], accumulators: Sequence[Accumulator]) -> None:
        self._accumulators = accumulators
        self._codec = KeyCodec(keys)
        self._numbers = AccumulatorCodec(accumulators)
        self.schema = pa.schema([KEY_GROUP, *keys, *_columns(accumulators)])

    def batches(self, entries: Iterator[Entry]) -> Iterator[pa.RecordBatch]:
        """By key group, as the entries come."""
        while chunk := list(islice(entries, ROWS_PER_BATCH)):
            yield self._batch(chunk)

    def keys_behind(self, entries: Sequence[bytes]) -> pa.Table:
        columns, _ = self._codec.decode(entries, _GROUP_BYTES)
        return pa.Table.from_arrays(columns, names=self.schema.names[1 : 1 + len(columns)])

    def _batch(self, entries: Sequence[Entry]) -> pa.RecordBatch:
        keys, values = zip(*entries, strict=True)
        columns, _ = self._codec.decode(keys, _GROUP_BYTES)
        first_bytes = b"".join(key[:_GROUP_BYTES] for key in keys)
        groups = pa.array(np.frombuffer(first_bytes, ">u2").astype(np.int32))
        arrays = dict(zip(self._accumulators, self._numbers.decode(values), strict=True))
        kept = []
        for one, numbers in arrays.items():
            count = None if one.reduction.counts else arrays[count_of(one.column)]
            kept.append(arrow_of(numbers, None if count is None else count > 0, one.kind))
        return pa.RecordBatch.from_arrays([groups, *columns, *kept], schema=self.schema)


def _entries_of(columns: Sequence[pa.Array], keys: Keys, codec: KeyCodec) -> list[bytes]:
    """A namespace is part of what identifies an entry, and not of what its key group goes by."""
    groups = group_bytes(keys.groups(columns[: len(keys.fields)]))
    return [group + key for group, key in zip(groups, codec.encode(columns), strict=True)]


def _whole(table: pa.Table) -> list[pa.Array]:
    return [column.combine_chunks() for column in table.columns]


def _columns(accumulators: Sequence[Accumulator]) -> list[pa.Field]:
    return [pa.field(one.name, one.kind) for one in accumulators]
