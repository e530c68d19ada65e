"""The declaration of a state that is used by whole batches: its columns, in batches and in files.

In a batch of the operator the columns have their own names; in a file they are out of the way of
the key columns, as those of every other state.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.ports.operators import Batch
from weir.state.layer_merge import REMOVED
from weir.state.restored_rows import Keys, check_readable
from weir.state.snapshot_files import KeyedState
from weir.state.state_columns import ORDINAL, ROWS, VALUE
from weir.state.state_schema import KIND


@dataclass(frozen=True, slots=True)
class BatchRows:
    """One row for each key, or many with ordinals."""

    name: str
    keys: Keys
    values: tuple[pa.Field, ...]
    time: str | None = None
    """The value by which rows expire."""
    has_ordinals: bool = False

    @property
    def kind(self) -> str:
        return ROWS if self.has_ordinals else VALUE

    @property
    def identity(self) -> tuple[pa.Field, ...]:
        """The columns that distinguish rows."""
        return (*self.keys.fields, ORDINAL) if self.has_ordinals else self.keys.fields

    @property
    def identity_names(self) -> list[str]:
        return [field.name for field in self.identity]

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The columns of a file beside those of the identity; a removed row has none."""
        return tuple(pa.field(f"value.{field.name}", field.type) for field in self.values)

    @property
    def time_at(self) -> int | None:
        """The place of the time among the values."""
        names = [field.name for field in self.values]
        return None if self.time is None else names.index(self.time)

    @property
    def schema(self) -> pa.Schema:
        """Of a batch."""
        return pa.schema([*self.identity, *self.values])

    @property
    def file_schema(self) -> pa.Schema:
        return pa.schema([*self.identity, *self.fields])

    @property
    def metadata(self) -> dict[bytes, bytes]:
        return {KIND: self.kind.encode()}

    def is_declared_in(self, state: KeyedState) -> bool:
        """Whether a file has these columns, so that changes can be laid over it."""
        names = [name for name in state.table.column_names if name != REMOVED.name]
        return bool(state.table.select(names).schema.equals(self.file_schema))

    def readable(self, state: KeyedState) -> pa.Table:
        """The rows of a file as they are declared now (spec S12); refuses what cannot be read."""
        identity = Keys(self.identity, self.keys.max_parallelism)
        if check_readable(state, self, identity):
            return state.table
        table = state.table
        for field in self.fields:
            if field.name not in table.column_names:
                table = table.append_column(field, pa.nulls(table.num_rows, field.type))
            elif table.schema.field(field.name).type != field.type:
                values = pa.array(table.column(field.name).to_pylist(), field.type)
                at = table.column_names.index(field.name)
                table = table.set_column(at, pa.field(field.name, field.type), values)
        own = {field.name for field in self.fields}
        names = [n for n in table.column_names if n in own or not n.startswith("value.")]
        return table.select(names)


@dataclass(slots=True)
class Ordinals:
    """Numbers the rows that are appended; rows of one key never have the same number."""

    _next: int = 0

    def added_to(self, rows: Batch) -> Batch:
        ordinals = np.arange(self._next, self._next + rows.num_rows)
        self._next += rows.num_rows
        return rows.append_column(ORDINAL, pa.array(ordinals))

    def restored(self, state: KeyedState) -> None:
        if ORDINAL.name in state.table.column_names and state.table.num_rows:
            last = pc.max(state.table.column(ORDINAL.name)).as_py()
            self._next = max(self._next, last + 1)
