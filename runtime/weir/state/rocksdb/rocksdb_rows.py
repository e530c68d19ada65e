"""A state in RocksDB that is used by whole batches: an entry for each row.

The bytes of an entry's key are those of the key group, of the state's number, of the key and of the
ordinal, if rows have one; its value is that of the columns. A batch is one read of many entries, or
one scan for each key that is matched, and one write. The block cache and the write buffers of
RocksDB are all the memory that it needs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.core.snapshots import KeyGroupRange
from weir.ports.keyed_state import Found, Matches
from weir.ports.operators import Batch, Captured, KeyedSnapshot
from weir.state.batch_rows import BatchRows, Ordinals
from weir.state.layer_merge import split_removed
from weir.state.rocksdb.column_codec import ColumnCodec
from weir.state.rocksdb.database import Database, Entry, HeldSnapshot, after
from weir.state.rocksdb.key_codec import KeyCodec, group_bytes
from weir.state.rocksdb.rocksdb_snapshot import GROUP_BYTES, HEAD_BYTES, entries_of
from weir.state.rocksdb.time_order import TimeOrder
from weir.state.snapshot_files import (
    KEY_GROUP,
    ROWS_PER_BATCH,
    FileHeader,
    KeyedState,
    write_sorted,
)
from weir.wire.numpy_columns import values_of


class RowEntries:
    """Encodes rows as entries and decodes them."""

    def __init__(self, rows: BatchRows, number: bytes) -> None:
        """Refuses what cannot be a key."""
        self.rows = rows
        self.number = number
        self._identity = KeyCodec(rows.identity)
        self._keys = KeyCodec(rows.keys.fields)
        self._values = ColumnCodec(rows.values)

    def identities(self, batch: Batch) -> list[bytes]:
        return self._encoded(batch, self._identity, self.rows.identity_names)

    def prefixes(self, batch: Batch) -> list[bytes]:
        """Before the ordinals of the rows with these keys."""
        return self._encoded(batch, self._keys, self.rows.keys.names)

    def values(self, batch: Batch) -> list[bytes]:
        columns = [batch.column(field.name) for field in self.rows.values]
        return self._values.encode(columns, batch.num_rows)

    def columns_of(self, entries: Sequence[Entry]) -> list[pa.Array]:
        """The identity, then the values."""
        identity, _ = self._identity.decode([entry for entry, _ in entries], HEAD_BYTES)
        return [*identity, *self._values.decode([value for _, value in entries])]

    def batch_of(self, entries: Sequence[Entry]) -> Batch:
        if not entries:
            return pa.RecordBatch.from_pylist([], schema=self.rows.schema)
        return pa.RecordBatch.from_arrays(self.columns_of(entries), schema=self.rows.schema)

    def _encoded(self, batch: Batch, codec: KeyCodec, names: Sequence[str]) -> list[bytes]:
        if not batch.num_rows:
            return []
        columns = [batch.column(name) for name in names]
        groups = group_bytes(self.rows.keys.groups(columns[: len(self.rows.keys.fields)]))
        pairs = zip(groups, codec.encode(columns), strict=True)
        return [group + self.number + key for group, key in pairs]


class RocksDBRows:
    """One row for each key, or many with ordinals. Belongs to the mailbox thread."""

    def __init__(
        self, rows: BatchRows, number: bytes, groups: KeyGroupRange, database: Database
    ) -> None:
        self._rows = rows
        self.name, self.kind, self.fields = rows.name, rows.kind, rows.fields
        self.number = number
        self._entries = RowEntries(rows, number)
        self._groups = groups
        self._database = database
        self._order = None if rows.time is None else TimeOrder(database, number)
        self._ordinals = Ordinals()

    def get(self, keys: Batch) -> Found:
        entries = self._entries.identities(keys)
        values = self._database.multi_get(entries)
        is_present = np.fromiter((value is not None for value in values), np.bool_, len(values))
        return Found(is_present, self._entries.batch_of(_present(entries, values)))

    def match(self, keys: Batch) -> Matches:
        assert self._rows.has_ordinals, "only rows with ordinals are matched"
        prefixes = self._entries.prefixes(keys)
        found = {
            prefix: list(self._database.scan(prefix, after(prefix)))
            for prefix in sorted(set(prefixes))
        }
        rows = self._entries.batch_of(list(chain.from_iterable(found.values())))
        counts = np.fromiter(map(len, found.values()), np.int64, len(found))
        begins = dict(zip(found, (np.cumsum(counts) - counts).tolist(), strict=True))
        firsts = np.fromiter(map(begins.__getitem__, prefixes), np.int64, len(prefixes))
        lengths = np.fromiter((len(found[one]) for one in prefixes), np.int64, len(prefixes))
        ends = np.cumsum(lengths)
        taken = np.repeat(firsts - ends + lengths, lengths) + np.arange(int(lengths.sum()))
        return Matches(np.repeat(np.arange(len(prefixes)), lengths), rows.take(pa.array(taken)))

    def append(self, rows: Batch) -> None:
        self.put(self._ordinals.added_to(rows))

    def put(self, rows: Batch) -> None:
        entries, values = self._entries.identities(rows), self._entries.values(rows)
        ordered = self._in_order(rows, entries)
        self._database.write_pairs(entries + ordered, values + [b""] * len(ordered))

    def remove(self, rows: Batch) -> None:
        """Where the time is not among the columns, an entry in order is left over."""
        entries = self._entries.identities(rows)
        ordered = self._in_order(rows, entries) if self._rows.time in rows.schema.names else []
        self._database.write((entry, None) for entry in entries + ordered)

    def expired(self, until: int, most: int) -> Batch:
        assert self._order is not None, "these rows were declared without a time"
        while found := self._order.until(until, most):
            entries = self._order.leads_to(found)
            values = self._database.multi_get(entries)
            present = np.fromiter((value is not None for value in values), np.bool_, len(values))
            rows = self._entries.batch_of(_present(entries, values))
            is_of_now = present.copy()
            is_of_now[present] = self._times(rows) == self._order.times_of(found)[present]
            left_over = [
                entry for entry, is_kept in zip(found, is_of_now, strict=True) if not is_kept
            ]
            self._database.write((entry, None) for entry in left_over)
            if is_of_now.any():
                return rows.filter(pa.array(is_of_now[present]))
        return self._entries.batch_of([])

    def capture(self) -> Captured:
        snapshot = self._database.snapshot()
        path = self._database.path.with_suffix(f".{id(snapshot)}.{self.number.hex()}")
        writing = RowsWriting(self._entries, snapshot, path)
        piece = KeyedSnapshot(self._groups, writing.whole, self.name)
        return Captured(keyed=(piece,), release=snapshot.release, known=frozenset())

    def restore(self, files: Sequence[KeyedState]) -> None:
        """The files come in the order they were laid; the rows of a later one are newer."""
        for state in files:
            removed, rows = split_removed(self._rows.readable(state))
            for batch in () if removed is None else removed.to_batches():
                self._database.write((entry, None) for entry in self._entries.identities(batch))
            named = rows.select(self._rows.file_schema.names).rename_columns(
                self._rows.schema.names
            )
            for batch in named.to_batches(max_chunksize=ROWS_PER_BATCH):
                self.put(batch)
            self._ordinals.restored(state)

    def _in_order(self, rows: Batch, entries: Sequence[bytes]) -> list[bytes]:
        return [] if self._order is None else self._order.entries(self._times(rows), entries)

    def _times(self, rows: Batch) -> npt.NDArray[np.int64]:
        times: npt.NDArray[np.int64] = values_of(rows.column(self._rows.time))
        return times


@dataclass(frozen=True, slots=True)
class RowsWriting:
    """Writes one state; called on an upload thread, while processing continues."""

    entries: RowEntries
    snapshot: HeldSnapshot
    path: Path

    def whole(self) -> pa.Buffer:
        rows = self.entries.rows
        schema = pa.schema([KEY_GROUP, *rows.file_schema], metadata=rows.metadata)
        header = FileHeader(rows.name, rows.identity_names, rows.keys.max_parallelism)
        return write_sorted(self.path, header, schema, self._batches(schema))

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        groups = self.entries.rows.keys.all_groups
        entries = entries_of(self.snapshot, self.entries.number, groups)
        while chunk := list(islice(entries, ROWS_PER_BATCH)):
            heads = b"".join(entry[:GROUP_BYTES] for entry, _ in chunk)
            first = pa.array(np.frombuffer(heads, ">u2").astype(np.int32))
            columns = [first, *self.entries.columns_of(chunk)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _present(entries: Sequence[bytes], values: Sequence[bytes | None]) -> list[Entry]:
    pairs = zip(entries, values, strict=True)
    return [(entry, value) for entry, value in pairs if value is not None]
