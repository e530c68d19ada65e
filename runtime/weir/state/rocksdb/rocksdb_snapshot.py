"""Writes states of one key at a time from a snapshot of RocksDB, and fills RocksDB from files.

The entries of a state are read in the order of their key groups and become the batches of a file
one after the other, so a state that is larger than memory is written as well.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa

from weir.core.ids import Millis
from weir.core.snapshots import KeyGroupRange
from weir.ports.keyed_state import Row
from weir.state.columns import columns_of
from weir.state.restored_rows import Keys, check_readable, rows_alive
from weir.state.rocksdb.database import Database, Entry, after
from weir.state.rocksdb.key_codec import KeyCodec, group_bytes
from weir.state.rocksdb.rocksdb_states import StoredState, expiry_of
from weir.state.snapshot_files import (
    KEY_GROUP,
    ROWS_PER_BATCH,
    FileHeader,
    KeyedState,
    write_sorted,
)
from weir.state.state_schema import KIND

GROUP_BYTES = 2
HEAD_BYTES = 4
"""Before the key's bytes: the key group and the state's number, two bytes each."""


class Readable(Protocol):
    """Entries in the order of their bytes."""

    def scan(self, first: bytes, stop: bytes) -> Iterator[Entry]: ...


def entries_of(readable: Readable, number: bytes, groups: KeyGroupRange) -> Iterator[Entry]:
    """The entries of a state, by key group."""
    for group in range(groups.first, groups.last + 1):
        prefix = group.to_bytes(GROUP_BYTES, "big") + number
        yield from readable.scan(prefix, after(prefix))


@dataclass(frozen=True, slots=True)
class StateWriting:
    """Writes one state; called on an upload thread, while processing continues."""

    state: StoredState
    open: Callable[[], Readable]
    groups: KeyGroupRange
    keys: Keys
    codec: KeyCodec
    now: Millis
    path: Path

    def whole(self) -> pa.Buffer:
        header = FileHeader(self.state.name, self.keys.names, self.keys.max_parallelism)
        return write_sorted(self.path, header, self.schema, self.batches())

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(
            (KEY_GROUP, *self.keys.fields, *self.state.fields),
            metadata={KIND: self.state.kind.encode()},
        )

    def batches(self) -> Iterator[pa.RecordBatch]:
        state, now, schema = self.state, self.now, self.schema
        entries = entries_of(self.open(), state.number, self.groups)
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
