"""The running aggregates of a subtask in memory, with the files that they are captured to."""

from collections.abc import Sequence

import pyarrow as pa

from weir.core.ids import CheckpointId
from weir.core.snapshots import KeyGroupRange
from weir.ports.keyed_state import AGGREGATES_FILE, RowNumbers
from weir.ports.operators import Batch
from weir.state.memory.aggregate_table import AggregateTable
from weir.state.memory.table_snapshot import TableFiles, TableSnapshots
from weir.state.restored_rows import Keys
from weir.state.snapshot_files import KeyedState


class MemoryAggregates:
    """Aggregates by key, and which of them changed since earlier captures."""

    def __init__(
        self,
        table: AggregateTable,
        keys: Keys,
        groups: KeyGroupRange,
        *,
        is_incremental: bool,
    ) -> None:
        self._table = table
        files = TableFiles(AGGREGATES_FILE, keys, self._table.key_fields, groups)
        self._snapshots = TableSnapshots(files, self._table, is_incremental=is_incremental)
        self.rows = self._table.rows
        self.expired = self._table.expired
        self.capture = self._snapshots.capture
        self.completed = self._snapshots.completed

    @property
    def size(self) -> int:
        return self._table.size

    def update(self, batch: Batch) -> RowNumbers:
        row_numbers = self._table.update(batch)
        self._snapshots.changed(row_numbers)
        return row_numbers

    def remove(self, row_numbers: RowNumbers) -> None:
        self._snapshots.removed(self._table.remove(row_numbers))

    def merge(self, sources: Sequence[pa.Array], targets: Sequence[pa.Array]) -> RowNumbers:
        merged, row_numbers = self._table.rows_of(sources), self._table.rows_of(targets)
        self._table.merge(merged, row_numbers)
        self._snapshots.changed(row_numbers)
        self.remove(merged)
        return row_numbers

    def restore(self, files: Sequence[KeyedState], checkpoint: CheckpointId) -> None:
        """The files come in the order they were laid."""
        for state in files:
            self._table.check_keys(state.key_fields)
        self._snapshots.restore((state.table for state in files), checkpoint)
