"""Keeps the keyed state of a subtask in RocksDB, on the disk of its executor."""

from collections.abc import Sequence
from itertools import islice
from typing import TypeVar

import pyarrow as pa

from weir.api.state_config import StateConfig
from weir.core.changelog import Position
from weir.core.ids import CheckpointId
from weir.core.key_groups import range_of
from weir.ports.keyed_state import AGGREGATES_FILE, Aggregation, Key, Rows, TimeMode
from weir.ports.operators import (
    Captured,
    KeyedSnapshot,
    NativeInstance,
    RestoredState,
    TaskInfo,
    together,
)
from weir.state.batch_rows import BatchRows
from weir.state.columns import columns_of, keys_of
from weir.state.layer_merge import merge_layers
from weir.state.restored_rows import Keys, check_readable
from weir.state.rocksdb.changed_keys import ChangedKeys, KnownChanges
from weir.state.rocksdb.database import Database
from weir.state.rocksdb.key_codec import KeyCodec, group_bytes
from weir.state.rocksdb.key_cursor import KeyCursor
from weir.state.rocksdb.native_instances import (
    NativeRestoring,
    delete_state,
    described_state,
    remove_keys,
)
from weir.state.rocksdb.native_snapshot import native_snapshot
from weir.state.rocksdb.rocksdb_aggregates import RocksDBAggregates
from weir.state.rocksdb.rocksdb_memory import RocksDBMemory
from weir.state.rocksdb.rocksdb_rows import RocksDBRows
from weir.state.rocksdb.rocksdb_snapshot import (
    GROUP_BYTES,
    HEAD_BYTES,
    StateWriting,
    entries_of,
    load,
)
from weir.state.rocksdb.rocksdb_states import (
    RocksDBListState,
    RocksDBMapState,
    RocksDBValueState,
    StoredState,
    expiry_of,
)
from weir.state.rocksdb.rocksdb_timers import BY_TIME, RocksDBTimers
from weir.state.rocksdb.write_buffer import WriteBuffer
from weir.state.snapshot_files import KeyedState, read_keyed
from weir.state.working_directory import WorkingDirectory

S = TypeVar("S", bound=StoredState)

FIRST_BATCH_STATE = 0xF000
"""The number of the first batch state, behind those of other states and the keys of aggregates."""
SWEPT_AT_ONCE = 512
"""How many entries a call of ``expire`` looks at."""


class RocksDBBackends:
    """Makes the backends of one slot, which share its memory and its directory."""

    def __init__(self, config: StateConfig) -> None:
        self._memory = RocksDBMemory(config.rocksdb_memory)
        self._directory = WorkingDirectory(config.rocksdb_local_dir or "")

    def __call__(self, place: TaskInfo, keys: Sequence[pa.Field]) -> "RocksDBBackend":
        return RocksDBBackend(place, keys, self._memory, self._directory)


class RocksDBBackend:
    """The state of one subtask's keys."""

    def __init__(
        self,
        place: TaskInfo,
        keys: Sequence[pa.Field],
        memory: RocksDBMemory,
        directory: WorkingDirectory,
    ) -> None:
        self._keys = Keys(tuple(keys), place.max_parallelism)
        self._codec = KeyCodec(self._keys.fields)
        self._groups = range_of(place.subtask.index, place.parallelism, place.max_parallelism)
        self._memory = memory
        self._database = Database(directory, memory)
        memory.opened()
        self._buffer = WriteBuffer(self._database, memory)
        self._is_logged = place.is_logged
        self._changes: ChangedKeys[set[bytes]] = ChangedKeys()
        self._evolved: set[str] = set()
        """States that were declared differently when they were restored."""
        self._states: dict[str, StoredState] = {}
        self._numbers = 0
        self._aggregates: RocksDBAggregates | None = None
        self._keeps_files = place.is_incremental and not place.is_logged
        """Whether checkpoints consist of RocksDB's files; a changelog lies over an open file."""
        self._rows: dict[str, RocksDBRows] = {}
        self._encoded: dict[Key, tuple[bytes, bytes]] = {}
        self._swept = b""
        self.cursor = KeyCursor()

    # -- declarations

    def aggregates(
        self, aggregates: Sequence[Aggregation], schema: pa.Schema, namespace: str | None = None
    ) -> RocksDBAggregates:
        requested = (aggregates, schema, namespace)
        self._aggregates = RocksDBAggregates(
            self._keys, requested, self._groups, self._database, self._memory
        )
        if self._is_logged:
            self._aggregates.remember_changes()
        return self._aggregates

    def batch_value_state(
        self, name: str, values: Sequence[pa.Field], time: str | None = None
    ) -> RocksDBRows:
        return self._batch_state(BatchRows(name, self._keys, tuple(values), time))

    def batch_list_state(
        self, name: str, values: Sequence[pa.Field], time: str | None = None
    ) -> RocksDBRows:
        return self._batch_state(
            BatchRows(name, self._keys, tuple(values), time, has_ordinals=True)
        )

    def _batch_state(self, rows: BatchRows) -> RocksDBRows:
        number = (FIRST_BATCH_STATE + len(self._rows)).to_bytes(HEAD_BYTES - GROUP_BYTES, "big")
        self._rows[rows.name] = state = RocksDBRows(rows, number, self._groups, self._database)
        return state

    def value_state(self, name: str, rows: Rows, ttl_ms: int | None = None) -> RocksDBValueState:
        at = (name, self._next_number())
        return self._declared(RocksDBValueState(at, self._buffer, self.cursor, rows, ttl_ms))

    def list_state(self, name: str, rows: Rows, ttl_ms: int | None = None) -> RocksDBListState:
        at = (name, self._next_number())
        return self._declared(RocksDBListState(at, self._buffer, self.cursor, rows, ttl_ms))

    def map_state(
        self, name: str, user_keys: Rows, rows: Rows, ttl_ms: int | None = None
    ) -> RocksDBMapState:
        at, both = (name, self._next_number()), (user_keys, rows)
        return self._declared(RocksDBMapState(at, self._buffer, self.cursor, both, ttl_ms))

    def timers(self, mode: TimeMode) -> RocksDBTimers:
        stored = self._database, self._buffer
        number = self._next_number()
        return self._declared(RocksDBTimers(number, stored, self.cursor, mode, self._keys_behind))

    def drop(self, name: str) -> None:
        state = self._states.pop(name, None) or self._rows.pop(name, None)
        if state is not None:
            self._buffer.flush()
            delete_state(self._database, state.number, self._keys.all_groups)

    # -- one key at a time

    def prefetch(self, keys: Sequence[Key]) -> None:
        if not keys:
            return
        encoded = self._encode(keys)
        self._encoded = dict(zip(keys, encoded, strict=True))
        values = [s.number for s in self._states.values() if isinstance(s, RocksDBValueState)]
        self._buffer.fetch(group + number + key for number in values for group, key in encoded)

    def seek(self, key: Key) -> None:
        self._buffer.bound()
        found = self._encoded.get(key)
        if found is None:
            (found,) = self._encode([key])
        cursor = self.cursor
        cursor.key = key
        cursor.group, cursor.encoded = found

    def settle(self) -> None:
        """A key is its entries, so one without any is forgotten already."""
        self.cursor.may_be_empty = False

    def keys_with(self, name: str) -> list[Key]:
        self._buffer.flush()
        entries = entries_of(self._database, self._states[name].number, self._keys.all_groups)
        found = [entry for entry, _ in entries]
        columns, _ = self._codec.decode(found, HEAD_BYTES)
        return list(dict.fromkeys(keys_of(columns)))

    def expire(self) -> None:
        expiring = {state.number for state in self._states.values() if state.expires}
        if not expiring or self._buffer.is_frozen:
            return  # after a barrier it need not wait for the upload: the next call frees as much
        self._buffer.flush()
        seen = list(islice(self._database.scan(self._swept, BY_TIME), SWEPT_AT_ONCE))
        self._swept = seen[-1][0] if len(seen) == SWEPT_AT_ONCE else b""
        self._database.write(
            (entry, None)
            for entry, value in seen
            if entry[GROUP_BYTES:HEAD_BYTES] in expiring and expiry_of(value) <= self.cursor.now
        )

    # -- snapshots

    def needs_flush(self) -> bool:
        return self._aggregates is not None and self._aggregates.is_full()

    def flushed(self) -> None:
        if self._aggregates is not None and self._aggregates.is_full():
            self._aggregates.write_back()

    def capture(self, checkpoint: CheckpointId) -> Captured:
        parts = [rows.capture() for rows in self._rows.values()]
        if self._aggregates is not None:
            keeps_files = self._keeps_files and not self._states and not self._rows
            parts.append(self._aggregates.capture(checkpoint, keeps_files=keeps_files))
        if self._states or (self._is_logged and not parts):
            parts.append(self._capture_states(checkpoint, keeps_files=not parts))
        return together(parts)

    def _capture_states(self, checkpoint: CheckpointId, *, keeps_files: bool) -> Captured:
        self._buffer.settle()
        is_empty = self._buffer.is_empty and next(self._database.scan(b"\0", BY_TIME), None) is None
        if is_empty and not self._is_logged:
            return Captured()
        past: KnownChanges[set[bytes]] = KnownChanges(())
        if self._is_logged:
            past = self._changes.captured(checkpoint, self._buffer.take_changed())
        capture = self._buffer.freeze(keeps_files=keeps_files and self._keeps_files)
        states = sorted(filter(_is_kept, self._states.values()), key=_is_ours)
        described = [described_state(state, self._keys) for state in states]
        path = self._database.path
        writings = [
            StateWriting(
                state,
                capture.snapshot,
                self._keys.all_groups,
                self._keys,
                self._codec,
                self.cursor.now,
                path.with_suffix(f".{checkpoint}.{state.number.hex()}"),
                past,
                is_evolved=state.name in self._evolved,
            )
            for state in states
        ]
        return Captured(
            keyed=tuple(
                KeyedSnapshot(self._groups, writing.whole, writing.state.name, writing.since)
                for writing in writings
            ),
            release=capture.release,
            native=native_snapshot(capture, self._database, self._groups, described),
            known=past.known,
        )

    def restore(self, restored_state: RestoredState) -> list[str]:
        undeclared = self._restore_native(restored_state.native)
        files: dict[str, list[KeyedState]] = {}
        for groups, data in restored_state.keyed:
            state = read_keyed(data, groups)
            files.setdefault(state.name, []).append(state)
        if self._aggregates is not None:
            self._aggregates.restore(files.pop(AGGREGATES_FILE, []), restored_state.checkpoint)
        for name, rows in self._rows.items():
            rows.restore(files.pop(name, []))
        for name, layers in files.items():
            if name in self._states:
                self._load(layers, is_over_native=bool(restored_state.native))
        if self._is_logged and (self._states or self._aggregates is None):
            self._changes.begun(restored_state.checkpoint)
            self._buffer.remember_changes()
        return undeclared + [
            name for name in files if name not in self._states and name not in undeclared
        ]

    def completed(self, checkpoint: CheckpointId) -> None:
        """No snapshot builds on an older one any more."""
        self._changes.truncated(checkpoint)
        if self._aggregates is not None:
            self._aggregates.completed(checkpoint)

    def truncated(self, position: Position) -> None:
        """Captures have positions where ``LoggedBackend`` stands before."""

    def close(self) -> None:
        self._memory.closed()
        self._database.close()

    def _declared(self, state: S) -> S:
        self._states[state.name] = state
        return state

    def _next_number(self) -> bytes:
        self._numbers += 1
        return self._numbers.to_bytes(HEAD_BYTES - GROUP_BYTES, "big")

    def _encode(self, keys: Sequence[Key]) -> list[tuple[bytes, bytes]]:
        columns = columns_of(keys, self._keys.fields)
        groups = group_bytes(self._keys.groups(columns))
        return list(zip(groups, self._codec.encode(columns), strict=True))

    def _keys_behind(self, whose: Sequence[bytes]) -> list[Key]:
        """Of a key group and the bytes of a key."""
        columns, _ = self._codec.decode(whose, GROUP_BYTES)
        return keys_of(columns)

    def _restore_native(self, instances: Sequence[NativeInstance]) -> list[str]:
        """The names of the states that nothing has declared."""
        restore = NativeRestoring(
            self._database, self._memory, self._keys, self._groups, self.cursor.now
        )
        try:
            if self._aggregates is not None:
                return restore.aggregates(self._aggregates, instances)
            undeclared = restore.states(self._states, instances)
        finally:
            for instance in instances:
                instance.remove()
        self._numbers = max(self._numbers, restore.highest_number)
        return undeclared

    def _load(self, files: Sequence[KeyedState], *, is_over_native: bool) -> None:
        state = self._states[files[0].name]
        if is_over_native:
            for layer in files:
                remove_keys(layer, self._database, state, self._keys)
        for part in merge_layers(files):
            if not check_readable(part, state, self._keys):
                self._evolved.add(state.name)
            for loaded in load(part, self._database, state, self._keys, self.cursor.now):
                if isinstance(state, RocksDBTimers):
                    state.loaded(loaded)


def _is_kept(state: StoredState) -> bool:
    return not (isinstance(state, RocksDBTimers) and state.mode is TimeMode.NONE)


def _is_ours(state: StoredState) -> bool:
    return state.name.startswith("$")
