"""Writes per-key states to the files of a snapshot, and fills states from such files.

A file has the key columns under their own names, then the state's columns, whose names have a dot:
``value.total``, ``user_key.word``, ``state.ordinal``. One row is a value, an element of a list, an
entry of a map or a timer. No object of the user's is ever pickled into it (spec X2).

A file must have been written by a state of the same name and kind, whose rows can be read as the
state is declared now (``weir.state.schema_evolution``); what cannot be read is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weir.core.ids import CheckpointId, Millis
from weir.core.snapshots import KeyGroupRange
from weir.ports.keyed_state import Key, Row
from weir.ports.operators import KeyedSnapshot
from weir.state.columns import columns_of, keys_of
from weir.state.layer_merge import REMOVED
from weir.state.memory.keyed_states import KeyedColumn
from weir.state.memory.row_index import FrozenColumn, RowIndex
from weir.state.memory.snapshot_diff import Version, changes
from weir.state.restored_rows import Keys, check_readable, rows_alive
from weir.state.snapshot_files import KeyedState, write_keyed
from weir.state.state_schema import KIND

Known = Mapping[CheckpointId, Mapping[str, Version]]
"""Earlier captures to compare with, by checkpoint and by state."""


@dataclass(frozen=True, slots=True)
class CapturedStates:
    """What a capture gives."""

    keyed: tuple[KeyedSnapshot, ...]
    release: Callable[[], None]
    """Frees the versions that the pieces hold on to."""
    versions: Mapping[str, Version]


def capture(
    row_index: RowIndex,
    states: Sequence[KeyedColumn],
    keys: Keys,
    groups: KeyGroupRange,
    known: Known,
) -> CapturedStates:
    """One piece for each state, as of now."""
    frozen = row_index.capture([state.column for state in states])
    now = row_index.cursor.now
    versions = {s.name: column.version for s, column in zip(states, frozen, strict=True)}

    def release() -> None:
        for column in frozen:
            column.release()

    writings = [_Writing(s, f, keys, now, known) for s, f in zip(states, frozen, strict=True)]
    pieces = tuple(KeyedSnapshot(groups, w.whole, w.state.name, w.since) for w in writings)
    return CapturedStates(pieces, release, versions)


@dataclass(frozen=True, slots=True)
class _Writing:
    """Writes one state; called on an upload thread, while processing continues."""

    state: KeyedColumn
    frozen: FrozenColumn[object]
    keys: Keys
    now: Millis
    known: Known

    def whole(self) -> pa.Buffer:
        keys: list[Key] = []
        rows: list[Row] = []
        for key, stored in self.frozen:
            for row in self.state.flat(stored, self.now):
                keys.append(key)
                rows.append(row)
        return self._written(keys, rows, self.state.fields)

    def since(self, base: CheckpointId) -> pa.Buffer | None:
        """What differs from an earlier capture; a key without rows is marked as removed."""
        old = self.known.get(base, {}).get(self.state.name)
        if old is None:
            return None
        keys: list[Key] = []
        rows: list[Row] = []
        removed: list[Key] = []
        for key, stored in changes(old, self.frozen.version):
            flat = () if stored is None else self.state.flat(stored, self.now)
            for row in flat:
                keys.append(key)
                rows.append(row)
            if not flat:
                removed.append(key)
        nullable = tuple(pa.field(field.name, field.type) for field in self.state.fields)
        nothing = (None,) * len(nullable)
        is_removed = pa.array(np.repeat([False, True], [len(rows), len(removed)]))
        rows += [nothing] * len(removed)
        return self._written(keys + removed, rows, nullable, {REMOVED: is_removed})

    def _written(
        self,
        keys: Sequence[Key],
        rows: Sequence[Row],
        own: tuple[pa.Field, ...],
        more: Mapping[pa.Field, pa.Array] | None = None,
    ) -> pa.Buffer:
        key_columns = columns_of(keys, self.keys.fields)
        others = more or {}
        table = pa.Table.from_arrays(
            [*key_columns, *columns_of(rows, own), *others.values()],
            schema=pa.schema(
                (*self.keys.fields, *own, *others), metadata={KIND: self.state.kind.encode()}
            ),
        )
        groups = self.keys.groups(key_columns)
        return write_keyed(
            self.state.name, table, groups, self.keys.names, self.keys.max_parallelism
        )


def load(restored: KeyedState, row_index: RowIndex, state: KeyedColumn, keys: Keys) -> bool:
    """Put the rows of a file into the rows of their keys; whether it was declared differently."""
    is_unchanged = check_readable(restored, state, keys)
    by_key: dict[Key, list[Row]] = {}
    found = keys_of([restored.table.column(name) for name in keys.names])
    alive = rows_alive(restored.table, state.fields, row_index.cursor.now)
    for key, row in zip(found, alive, strict=True):
        if row is not None:
            by_key.setdefault(key, []).append(row)
    for key, its_rows in by_key.items():
        row_index.seek(key)
        state.load(row_index.cursor.row_number, its_rows, row_index.cursor.now)
    return not is_unchanged
