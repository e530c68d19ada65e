"""Writes per-key states to the files of a snapshot, and fills states from such files.

A file has the key columns under their own names, then the state's columns, whose names have a dot:
``value.total``, ``user_key.word``, ``state.ordinal``. One row is a value, an element of a list, an
entry of a map or a timer. No object of the user's is ever pickled into it (spec X2).

A file must have been written by a state of the same name, kind and types; what differs is said.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.core.ids import CheckpointId, Millis
from weir.core.snapshots import KeyGroupRange
from weir.dataflow.types import written
from weir.errors import JobRejected
from weir.ports.operators import KeyedPiece
from weir.state.columns import columns_of, keys_of
from weir.state.files import KeyedState, write_keyed
from weir.state.overlay import REMOVED
from weir.state.row_types import Row
from weir.state.slots import FrozenColumn, Key, KeySlots
from weir.state.ttl import EXPIRES_AT
from weir.state.values import KeyedColumn
from weir.state.versions import Version, changes
from weir.wire.keys import key_groups

KIND = b"weir.kind"


@dataclass(frozen=True, slots=True)
class Keys:
    """What the keys are made of, and how they are spread."""

    fields: tuple[pa.Field, ...]
    max_parallelism: int

    @property
    def names(self) -> list[str]:
        return [field.name for field in self.fields]

    def groups(self, columns: Sequence[pa.Array]) -> npt.NDArray[np.int32]:
        batch = pa.RecordBatch.from_arrays(list(columns), self.names)
        return key_groups(batch, self.names, self.max_parallelism)


Known = Mapping[CheckpointId, Mapping[str, Version]]
"""Earlier captures that changes can be told from, by checkpoint and by state."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """What a capture gives."""

    keyed: tuple[KeyedPiece, ...]
    release: Callable[[], None]
    """Frees the versions that the pieces hold on to."""
    versions: Mapping[str, Version]


def capture(
    slots: KeySlots,
    states: Sequence[KeyedColumn],
    keys: Keys,
    groups: KeyGroupRange,
    known: Known,
) -> Pieces:
    """One piece for each state, as of now."""
    frozen = slots.capture([state.column for state in states])
    now = slots.cursor.now
    versions = {s.name: column.version for s, column in zip(states, frozen, strict=True)}

    def release() -> None:
        for column in frozen:
            column.release()

    writings = [_Writing(s, f, keys, now, known) for s, f in zip(states, frozen, strict=True)]
    pieces = tuple(KeyedPiece(groups, w.whole, w.state.name, w.since) for w in writings)
    return Pieces(pieces, release, versions)


@dataclass(frozen=True, slots=True)
class _Writing:
    """Lays one state down; called beside the mailbox, while processing goes on."""

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
        nothing = (*(None for _ in self.state.fields), True)
        for key, stored in changes(old, self.frozen.version):
            flat = () if stored is None else self.state.flat(stored, self.now)
            its_rows = [(*row, False) for row in flat] or [nothing]
            keys.extend(key for _ in its_rows)
            rows.extend(its_rows)
        nullable = (pa.field(field.name, field.type) for field in self.state.fields)
        return self._written(keys, rows, (*nullable, REMOVED))

    def _written(
        self, keys: Sequence[Key], rows: Sequence[Row], own: tuple[pa.Field, ...]
    ) -> pa.Buffer:
        key_columns = columns_of(keys, self.keys.fields)
        table = pa.Table.from_arrays(
            [*key_columns, *columns_of(rows, own)],
            schema=pa.schema((*self.keys.fields, *own), metadata={KIND: self.state.kind.encode()}),
        )
        groups = self.keys.groups(key_columns)
        return write_keyed(
            self.state.name, table, groups, self.keys.names, self.keys.max_parallelism
        )


def load(restored: KeyedState, slots: KeySlots, state: KeyedColumn, keys: Keys) -> None:
    """Put the rows of a file into the slots of their keys."""
    now = slots.cursor.now
    table = restored.table
    _check(table, restored, state, keys)
    expiries = table.column(EXPIRES_AT.name).to_pylist() if _ages(table) else None
    columns = [
        table.column(field.name).to_pylist()
        if field.name in table.column_names
        else [None] * table.num_rows
        for field in state.fields
    ]
    by_key: dict[Key, list[Row]] = {}
    rows = zip(*columns, strict=True)
    found = keys_of([table.column(name) for name in keys.names])
    for at, (key, row) in enumerate(zip(found, rows, strict=True)):
        if expiries is None or expiries[at] is None or expiries[at] > now:
            by_key.setdefault(key, []).append(row)
    for key, its_rows in by_key.items():
        slots.seek(key)
        state.load(slots.cursor.slot, its_rows, now)


def _ages(table: pa.Table) -> bool:
    return EXPIRES_AT.name in table.column_names


def _check(table: pa.Table, restored: KeyedState, state: KeyedColumn, keys: Keys) -> None:
    kind = (table.schema.metadata or {}).get(KIND, b"").decode()
    if kind != state.kind:
        raise JobRejected(
            f"State '{state.name}' is a {state.kind} state in the processor and a"
            f" {kind or 'nameless kind of'} state in the checkpoint. Give the new one another name."
        )
    known = _types_by_name(field for field in table.schema if field.name != EXPIRES_AT.name)
    declared = _types_by_name(chain(keys.fields, state.fields))
    declared.pop(EXPIRES_AT.name, None)
    if known != declared or restored.key_columns != tuple(keys.names):
        raise JobRejected(
            f"State '{state.name}' was declared with other columns than the checkpoint has:"
            f" {_difference(known, declared)}. Declare it as it was, or give it another name."
        )


def _types_by_name(fields: Iterable[pa.Field]) -> dict[str, str]:
    return {field.name: written(field.type) for field in fields}


def _difference(known: dict[str, str], declared: dict[str, str]) -> str:
    names = [*known, *(name for name in declared if name not in known)]
    changes = [
        f"{name} was {known.get(name, 'not there')} and is {declared.get(name, 'not there')}"
        for name in names
        if known.get(name) != declared.get(name)
    ]
    return "; ".join(changes) or f"the key was ({', '.join(known)})"
