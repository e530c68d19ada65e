"""Restores native instances: opens one, clips it, and copies into it what the others have of ours.

Which is opened is decided by ``weir.core.native_restore``. An entry is copied as it is, but for the
number of its state, which may be another in each instance. A state that was declared differently is
read by its old declaration and written by the new one, as from a file (spec S12).
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import pyarrow as pa

from weir.core.ids import Millis
from weir.core.native_restore import plan_native_restore
from weir.core.snapshots import KeyGroupRange, NativeHandle, NativeState
from weir.errors import JobRejected
from weir.ports.keyed_state import AGGREGATES_FILE
from weir.ports.operators import LocalState, NativeInstance
from weir.state.restored_rows import Keys, check_readable
from weir.state.rocksdb.database import Database, Entry, ReadOnlyDatabase, after
from weir.state.rocksdb.key_codec import KeyCodec, group_bytes
from weir.state.rocksdb.native_snapshot import BACKEND, LAYOUT, TIME_MODE, file_without_rows
from weir.state.rocksdb.rocksdb_aggregates import RocksDBAggregates
from weir.state.rocksdb.rocksdb_memory import RocksDBMemory
from weir.state.rocksdb.rocksdb_snapshot import (
    GROUP_BYTES,
    HEAD_BYTES,
    Readable,
    entries_of,
    load,
)
from weir.state.rocksdb.rocksdb_states import RocksDBListState, StoredState
from weir.state.rocksdb.rocksdb_timers import BY_TIME, RocksDBTimers
from weir.state.rocksdb.stored_rows import aggregates_in, rows_in
from weir.state.snapshot_files import ROWS_PER_BATCH, KeyedState, read_keyed
from weir.state.state_schema import KIND

_NO_GROUPS = KeyGroupRange(0, -1)
_NUMBER_BYTES = HEAD_BYTES - GROUP_BYTES


class NativeRestoring:
    """One restore of one subtask, on the mailbox's thread."""

    def __init__(
        self,
        database: Database,
        memory: RocksDBMemory,
        keys: Keys,
        groups: KeyGroupRange,
        now: Millis,
    ) -> None:
        self._database = database
        self._memory = memory
        self._keys = keys
        self._groups = groups
        self._now = now
        self.highest_number = 0
        """Of all states of the instance, those included that are dropped."""

    def states(
        self, declared: Mapping[str, StoredState], instances: Sequence[NativeInstance]
    ) -> list[str]:
        """The names of stored states that are not declared, whose entries are dropped."""
        opened, others = self._opened(instances)
        if opened is None:
            return []
        kept = self._renumbered(declared, opened.share.handle)
        for state in opened.share.handle.states:
            if state.name not in kept:
                self._rewrite_or_drop(state, declared)
        for instance in others:
            self._copy(instance, declared)
        for timers in declared.values():
            if isinstance(timers, RocksDBTimers):
                timers.keep_only(self._groups)
                timers.restored()
        named = [state.name for each in instances for state in each.share.handle.states]
        return [name for name in dict.fromkeys(named) if name not in declared]

    def aggregates(
        self, aggregates: RocksDBAggregates, instances: Sequence[NativeInstance]
    ) -> list[str]:
        opened, others = self._opened(instances)
        if opened is None:
            return []
        for instance in (opened, *others):
            handle, groups = instance.share.handle, instance.share.groups
            for state in handle.states:
                if state.name != AGGREGATES_FILE:
                    return [state.name]
                schema = _description(state).table.schema
                is_opened = instance is opened
                if aggregates.reads_as_stored(schema):
                    if not is_opened:
                        self._copy_as_they_are(instance)
                    continue
                source: Readable = self._database if is_opened else self._read_only(instance)
                for batch in aggregates_in(source, schema, groups, self._keys):
                    rows = pa.Table.from_batches([batch]).drop_columns([batch.schema.names[0]])
                    aggregates.load([KeyedState(state.name, rows, tuple(self._keys.names))])
        return []

    def _opened(
        self, instances: Sequence[NativeInstance]
    ) -> tuple[NativeInstance | None, list[NativeInstance]]:
        for instance in instances:
            _check_layout(instance.share.handle)
        plan = plan_native_restore([instance.share for instance in instances])
        if plan is None:
            return None, []
        opened = next(each for each in instances if each.share is plan.opened)
        self._database.replace(Path(opened.directory))
        for first, last in plan.clipped:
            self._database.delete_range(_group(first), _group(last + 1))
        return opened, [each for each in instances if each is not opened]

    def _renumbered(self, declared: Mapping[str, StoredState], handle: NativeHandle) -> set[str]:
        """Give states the numbers that they have in the instance; those that stay as they are."""
        self.highest_number = max((state.number for state in handle.states), default=0)
        numbers = {
            state.name: state.number
            for state in handle.states
            if state.name in declared and self._is_unchanged(state, declared[state.name])
        }
        for name, state in declared.items():
            if name in numbers:
                state.number = _number(numbers[name])
            else:
                self.highest_number += 1
                state.number = _number(self.highest_number)
        for stored in handle.states:
            _continue_ordinals(declared.get(stored.name), stored)
        return set(numbers)

    def _is_unchanged(self, stored: NativeState, state: StoredState) -> bool:
        """Whether its entries read as they are; refuses those that cannot be read at all."""
        description = _description(stored)
        metadata = description.table.schema.metadata or {}
        if isinstance(state, RocksDBTimers):
            state.check_mode(metadata.get(TIME_MODE, b"").decode())
        check_readable(description, state, self._keys)
        own = [f for f in description.table.schema if f.name not in description.key_columns]
        return [(f.name, f.type) for f in own] == [(f.name, f.type) for f in state.fields]

    def _rewrite_or_drop(self, stored: NativeState, declared: Mapping[str, StoredState]) -> None:
        if stored.name in declared:
            self._rewrite(self._database, stored, declared[stored.name], self._groups)
        delete_state(self._database, _number(stored.number), self._groups)

    def _rewrite(
        self, source: Readable, stored: NativeState, state: StoredState, groups: KeyGroupRange
    ) -> None:
        description = _description(stored)
        for batch in rows_in(source, stored, groups, self._keys, self._now):
            rows = pa.Table.from_batches([batch]).drop_columns([batch.schema.names[0]])
            rows = rows.replace_schema_metadata(description.table.schema.metadata)
            part = KeyedState(stored.name, rows, description.key_columns)
            for _ in load(part, self._database, state, self._keys, self._now):
                pass  # the timers' second form is never rewritten: their type does not change

    def _copy(self, instance: NativeInstance, declared: Mapping[str, StoredState]) -> None:
        handle, groups = instance.share.handle, instance.share.groups
        source = self._read_only(instance)
        for stored in handle.states:
            state = declared.get(stored.name)
            if state is None:
                continue
            _continue_ordinals(state, stored)
            if not self._is_unchanged(stored, state):
                self._rewrite(source, stored, state, groups)
                continue
            entries = entries_of(source, _number(stored.number), groups)
            number = state.number
            while some := list(islice(entries, ROWS_PER_BATCH)):
                keys = [key[:GROUP_BYTES] + number + key[HEAD_BYTES:] for key, _ in some]
                self._database.write_pairs(keys, [value for _, value in some])
        if any(isinstance(state, RocksDBTimers) for state in declared.values()):
            self._copy_all(source.scan(BY_TIME, after(BY_TIME)))
        source.close()

    def _copy_as_they_are(self, instance: NativeInstance) -> None:
        first, last = instance.share.groups
        source = self._read_only(instance)
        self._copy_all(source.scan(_group(first), _group(last + 1)))
        source.close()

    def _copy_all(self, entries: Iterator[Entry]) -> None:
        while some := list(islice(entries, ROWS_PER_BATCH)):
            keys, values = zip(*some, strict=True)
            self._database.write_pairs(list(keys), list(values))

    def _read_only(self, instance: NativeInstance) -> ReadOnlyDatabase:
        return ReadOnlyDatabase(Path(instance.directory), self._memory)


def described_state(state: StoredState, keys: Keys) -> LocalState:
    metadata = {KIND: state.kind.encode()}
    if isinstance(state, RocksDBTimers):
        metadata[TIME_MODE] = state.mode.value.encode()
    schema = file_without_rows(state.name, (*keys.fields, *state.fields), keys, metadata)
    ordinal = state.next_ordinal if isinstance(state, RocksDBListState) else 0
    return LocalState(state.name, int.from_bytes(state.number, "big"), schema, ordinal)


def delete_state(database: Database, number: bytes, groups: KeyGroupRange) -> None:
    """Only where there is something: each deleted range costs every later read."""
    for group in range(groups.first, groups.last + 1):
        first = _group(group) + number
        stop = after(first)
        if next(database.scan(first, stop), None) is not None:
            database.delete_range(first, stop)


def remove_keys(layer: KeyedState, database: Database, state: StoredState, keys: Keys) -> None:
    """Delete what is there of the keys of a layer: it has all that they have now, or nothing."""
    codec = KeyCodec(keys.fields)
    for batch in layer.table.to_batches(max_chunksize=ROWS_PER_BATCH):
        columns = [batch.column(name) for name in keys.names]
        groups = group_bytes(keys.groups(columns))
        for group, key in dict.fromkeys(zip(groups, codec.encode(columns), strict=True)):
            prefix = group + state.number + key
            found = [entry for entry, _ in database.scan(prefix, after(prefix))]
            if isinstance(state, RocksDBTimers):
                found += [BY_TIME + entry[len(prefix) :] + group + key for entry in found]
            if found:
                database.write((entry, None) for entry in found)


def _check_layout(handle: NativeHandle) -> None:
    if (handle.backend, handle.version) != (BACKEND, LAYOUT):
        raise JobRejected(
            "the files of the checkpoint's state cannot be opened",
            f"they are those of {handle.backend} in version {handle.version}, and this release has "
            f"{BACKEND} in version {LAYOUT}",
            "take a savepoint with the release that wrote them, and restore that",
        )


def _description(state: NativeState) -> KeyedState:
    return read_keyed(pa.py_buffer(state.schema.content), _NO_GROUPS)


def _continue_ordinals(state: StoredState | None, stored: NativeState) -> None:
    if isinstance(state, RocksDBListState):
        state.next_ordinal = max(state.next_ordinal, stored.next_ordinal)


def _number(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "big")


def _group(group: int) -> bytes:
    return group.to_bytes(GROUP_BYTES, "big")
