"""Captures a table of columns to files, whole or what changed since a checkpoint, and restores it.

The key columns of a file distinguish its rows: those of the user, which decide on the key group,
and one behind them where a key has several rows, such as the end of a window.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from weir.core.ids import CheckpointId
from weir.core.snapshots import KeyGroupRange
from weir.ports.keyed_state import RowNumbers
from weir.ports.operators import Captured, KeyedSnapshot
from weir.state.layer_merge import layer_of, split_removed
from weir.state.memory.change_history import CapturedChanges, ChangeHistory
from weir.state.restored_rows import Keys
from weir.state.snapshot_files import write_keyed


class CapturedRows(Protocol):
    """A table at one moment. Belongs to the thread that writes it."""

    def read(self, row_numbers: RowNumbers | None = None) -> pa.Table:
        """Of these rows, or of all: the key columns, then the others; called once."""

    def release(self) -> None: ...


class ColumnTable(Protocol):
    """A table of the mailbox thread."""

    @property
    def size(self) -> int: ...
    @property
    def schema(self) -> pa.Schema:
        """Of a captured table."""

    def capture(self) -> CapturedRows: ...
    def load(self, table: pa.Table) -> None: ...
    def remove_keys(self, table: pa.Table) -> None: ...


@dataclass(frozen=True, slots=True)
class TableFiles:
    """What files of a table say of it, beside its rows."""

    name: str
    keys: Keys
    """The user's key columns, which come first."""
    identity: tuple[pa.Field, ...]
    """The columns that distinguish rows; they begin with the user's."""
    groups: KeyGroupRange
    metadata: Mapping[bytes, bytes] = field(default_factory=dict)

    def write(self, table: pa.Table) -> pa.Buffer:
        columns = table.columns[: len(self.keys.fields)]
        groups = self.keys.groups([column.combine_chunks() for column in columns])
        first, last = self.groups
        assert ((groups >= first) & (groups <= last)).all(), "every key here is of our key groups"
        names = [one.name for one in self.identity]
        described = table.replace_schema_metadata(dict(self.metadata) or None)
        return write_keyed(self.name, described, groups, names, self.keys.max_parallelism)


class TableSnapshots:
    """The captures of one table."""

    def __init__(self, files: TableFiles, table: ColumnTable, *, is_incremental: bool) -> None:
        self._files = files
        self._table = table
        self._history = ChangeHistory() if is_incremental else None

    def changed(self, row_numbers: RowNumbers) -> None:
        if self._history is not None:
            self._history.changed(row_numbers, self._table.size)

    def removed(self, keys: Sequence[pa.Array]) -> None:
        """Rows with these key columns are gone."""
        if self._history is not None:
            table = pa.Table.from_arrays(list(keys), schema=pa.schema(self._files.identity))
            self._history.removed(table, self._table.size)

    def capture(self, checkpoint: CheckpointId) -> Captured:
        captured = self._table.capture()
        past = (
            self._history.captured(checkpoint) if self._history is not None else CapturedChanges(())
        )

        def since(base: CheckpointId) -> pa.Buffer | None:
            row_numbers = past.changed_since(base)
            if row_numbers is None:
                return None
            layer = layer_of(captured.read(row_numbers), past.removed_since(base))
            return self._files.write(layer)

        def whole() -> pa.Buffer:
            return self._files.write(captured.read())

        piece = KeyedSnapshot(self._files.groups, whole, self._files.name, since)
        return Captured(
            keyed=(piece,), release=captured.release, known=past.known, keyed_in_memory=True
        )

    def restore(
        self, tables: Iterable[pa.Table], checkpoint: CheckpointId, *, is_as_it_was: bool = True
    ) -> None:
        """The content of files, in the order they were laid, as they were written or not."""
        for stored in tables:
            removed, table = split_removed(stored)
            if removed is not None:
                self._table.remove_keys(removed)
            self._table.load(table)
            # What is of other types now cannot be laid over the files of then.
            is_as_it_was &= table.schema.equals(self._table.schema)
        if self._history is not None and is_as_it_was:
            self._history.restored(checkpoint)

    def completed(self, checkpoint: CheckpointId) -> None:
        if self._history is not None:
            self._history.completed(checkpoint)
