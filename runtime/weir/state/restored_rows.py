"""Reads the rows of a snapshot's file as a state declares them now (spec S12), for any backend.

A file must have been written by a state of the same name and kind, whose rows can be read as the
state is declared now (``weir.state.schema_evolution``); what cannot be read is refused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.core.ids import Millis
from weir.core.snapshots import KeyGroupRange
from weir.errors import JobRejected
from weir.ports.keyed_state import Row, State
from weir.state.layer_merge import REMOVED
from weir.state.schema_evolution import incompatibilities, is_unchanged
from weir.state.snapshot_files import KeyedState
from weir.state.state_columns import EXPIRES_AT
from weir.state.state_schema import AGGREGATES, KIND, StateSchema
from weir.wire.keys import key_groups


@dataclass(frozen=True, slots=True)
class Keys:
    """What the keys are made of, and how they are spread."""

    fields: tuple[pa.Field, ...]
    max_parallelism: int

    @property
    def names(self) -> list[str]:
        return [field.name for field in self.fields]

    @property
    def all_groups(self) -> KeyGroupRange:
        return KeyGroupRange(0, self.max_parallelism - 1)

    def groups(self, columns: Sequence[pa.Array]) -> npt.NDArray[np.int32]:
        batch = pa.RecordBatch.from_arrays(list(columns), self.names)
        return key_groups(batch, self.names, self.max_parallelism)


def check_readable(restored: KeyedState, state: State, keys: Keys) -> bool:
    """Refuse rows that cannot be read as declared; whether they were declared just so."""
    stored = _stored_shape(restored)
    declared = StateSchema(state.name, state.kind, keys.fields, state.fields)
    if found := incompatibilities(stored, declared):
        raise JobRejected(
            f"state {state.name!r} cannot be read as it is declared now",
            "; ".join(found),
            "declare it as it was, or give the new one another name",
        )
    return is_unchanged(stored, declared)


def rows_alive(
    table: pa.Table | pa.RecordBatch, fields: Sequence[pa.Field], now: Millis
) -> Iterator[Row | None]:
    """The rows of a file, None where one has expired; a field that the file lacks is null."""
    names = table.schema.names
    nothing: list[object] = [None] * table.num_rows
    columns = [
        table.column(field.name).to_pylist() if field.name in names else nothing for field in fields
    ]
    ages = EXPIRES_AT.name in names
    expiries = table.column(EXPIRES_AT.name).to_pylist() if ages else nothing
    for row, expiry in zip(zip(*columns, strict=True), expiries, strict=True):
        yield row if expiry is None or expiry > now else None


def _stored_shape(restored: KeyedState) -> StateSchema:
    schema = restored.table.schema
    kind = (schema.metadata or {}).get(KIND, AGGREGATES.encode()).decode()
    own = [field for field in schema if field.name not in restored.key_columns]
    return StateSchema(
        restored.name,
        kind,
        tuple(schema.field(name) for name in restored.key_columns),
        tuple(field for field in own if field.name != REMOVED.name),
        is_layer=REMOVED.name in schema.names,
    )
