"""Writes states of one key at a time from a snapshot of RocksDB, and fills RocksDB from files.

The entries of a state are read in the order of their key groups and become the batches of a file
one after the other, so a state that is larger than memory is written as well.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from weir.core.changelog import START
from weir.core.ids import CheckpointId, Millis
from weir.ports.keyed_state import Row
from weir.state.columns import columns_of
from weir.state.layer_merge import REMOVED
from weir.state.restored_rows import Keys, check_readable, rows_alive
from weir.state.rocksdb.changed_keys import KnownChanges
from weir.state.rocksdb.database import Database, Entry, HeldSnapshot, after
from weir.state.rocksdb.key_codec import KeyCodec, group_bytes
from weir.state.rocksdb.rocksdb_states import StoredState, expiry_of
from weir.state.snapshot_files import (
    KEY_GROUP,
    ROWS_PER_BATCH,
    FileHeader,
    KeyedState,
    write_keyed,
    write_sorted,
)
from weir.state.state_schema import KIND

GROUP_BYTES = 2
HEAD_BYTES = 4
"""Before the key's bytes: the key group and the state's number, two bytes each."""


def entries_of(
    readable: Database | HeldSnapshot, number: bytes, max_parallelism: int
) -> Iterator[Entry]:
    """The entries of a state, by key group."""
    for group in range(max_parallelism):
        prefix = group.to_bytes(GROUP_BYTES, "big") + number
        yield from readable.scan(prefix, after(prefix))


@dataclass(frozen=True, slots=True)
class StateWriting:
    """Writes one state; called on an upload thread, while processing continues."""

    state: StoredState
    snapshot: HeldSnapshot
    keys: Keys
    codec: KeyCodec
    now: Millis
    path: Path
    past: KnownChanges[set[bytes]]
    is_evolved: bool = False
    """Files from before the restore have other columns."""

    def whole(self) -> pa.Buffer:
        schema = pa.schema(
            (KEY_GROUP, *self.keys.fields, *self.state.fields),
            metadata={KIND: self.state.kind.encode()},
        )
        header = FileHeader(self.state.name, self.keys.names, self.keys.max_parallelism)
        return write_sorted(self.path, header, schema, self._batches(schema))

    def since(self, base: CheckpointId) -> pa.Buffer | None:
        """The keys that changed, each with all its rows; one without rows is marked as removed."""
        intervals = self.past.since(base)
        if intervals is None or (self.is_evolved and base <= START):
            return None
        number = self.state.number
        changed = sorted(
            prefix
            for prefix in set[bytes]().union(*intervals)
            if prefix[GROUP_BYTES:HEAD_BYTES] == number
        )
        whose: list[bytes] = []
        rows: list[Row] = []
        removed: list[bytes] = []
        for prefix in changed:
            found = self._rows_of(prefix)
            rows += found
            whose += [prefix] * len(found)
            if not found:
                removed.append(prefix)
        return self._layer(whose, rows, removed)

    def _rows_of(self, prefix: bytes) -> list[Row]:
        entries = self.snapshot.scan(prefix, after(prefix))
        state, now, skipped = self.state, self.now, len(prefix)
        alive = (e for e in entries if not state.expires or expiry_of(e[1]) > now)
        return [state.flat(e[skipped:], value, at) for at, (e, value) in enumerate(alive)]

    def _layer(
        self, whose: Sequence[bytes], rows: Sequence[Row], removed: Sequence[bytes]
    ) -> pa.Buffer:
        columns, _ = self.codec.decode([*whose, *removed], HEAD_BYTES)
        own = [pa.field(field.name, field.type) for field in self.state.fields]
        nothing = (None,) * len(own)
        is_removed = pa.array(np.repeat([False, True], [len(whose), len(removed)]))
        table = pa.Table.from_arrays(
            [*columns, *columns_of([*rows, *[nothing] * len(removed)], own), is_removed],
            schema=pa.schema(
                (*self.keys.fields, *own, REMOVED), metadata={KIND: self.state.kind.encode()}
            ),
        )
        groups = self.keys.groups(columns)
        names, most = self.keys.names, self.keys.max_parallelism
        return write_keyed(self.state.name, table, groups, names, most)

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        state, now = self.state, self.now
        entries = entries_of(self.snapshot, state.number, self.keys.max_parallelism)
        if state.expires:
            entries = (entry for entry in entries if expiry_of(entry[1]) > now)
        previous, ordinal = b"", 0
        while chunk := list(islice(entries, ROWS_PER_BATCH)):
            whose = [entry for entry, _ in chunk]
            columns, ends = self.codec.decode(whose, HEAD_BYTES)
            rows: list[Row] = []
            for (entry, value), end in zip(chunk, ends, strict=True):
                key = entry[:end]
                ordinal = ordinal + 1 if key == previous else 0
                previous = key
                rows.append(state.flat(entry[end:], value, ordinal))
            first_bytes = b"".join(entry[:GROUP_BYTES] for entry in whose)
            groups = pa.array(np.frombuffer(first_bytes, ">u2").astype(np.int32))
            own = columns_of(rows, state.fields)
            yield pa.RecordBatch.from_arrays([groups, *columns, *own], schema=schema)


Loaded = list[tuple[bytes, bytes, bytes]]
"""The group, the key's bytes and what is behind them, of each entry that was written."""


def load(
    restored: KeyedState, database: Database, state: StoredState, keys: Keys, now: Millis
) -> Iterator[Loaded]:
    """Write the rows of a file that are alive, batch by batch; refuses what cannot be read."""
    check_readable(restored, state, keys)
    codec = KeyCodec(keys.fields)
    for batch in restored.table.to_batches(max_chunksize=ROWS_PER_BATCH):
        columns = [batch.column(name) for name in keys.names]
        groups = group_bytes(keys.groups(columns))
        loaded: Loaded = []
        values: list[bytes] = []
        alive = rows_alive(batch, state.fields, now)
        for group, key, row in zip(groups, codec.encode(columns), alive, strict=True):
            if row is not None:
                suffix, value = state.entry(row, now)
                loaded.append((group, key, suffix))
                values.append(value)
        entries = [group + state.number + key + suffix for group, key, suffix in loaded]
        database.write_pairs(entries, values)
        yield loaded
