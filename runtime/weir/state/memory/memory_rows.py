"""A state in memory that is used by whole batches, with the files that it is captured to."""

from collections.abc import Sequence

from weir.core.ids import CheckpointId
from weir.core.snapshots import KeyGroupRange
from weir.ports.operators import Batch
from weir.state.batch_rows import BatchRows, Ordinals
from weir.state.memory.row_table import RowTable
from weir.state.memory.table_snapshot import TableFiles, TableSnapshots
from weir.state.snapshot_files import KeyedState


class MemoryRows:
    """One row for each key, or many with ordinals."""

    def __init__(self, rows: BatchRows, groups: KeyGroupRange, *, is_incremental: bool) -> None:
        self._rows = rows
        self.name, self.kind, self.fields = rows.name, rows.kind, rows.fields
        self._table = RowTable(rows)
        self._ordinals = Ordinals()
        files = TableFiles(rows.name, rows.keys, rows.identity, groups, rows.metadata)
        self._snapshots = TableSnapshots(files, self._table, is_incremental=is_incremental)
        self.get = self._table.get
        self.match = self._table.match
        self.expired = self._table.expired
        self.capture = self._snapshots.capture
        self.completed = self._snapshots.completed

    def put(self, rows: Batch) -> None:
        if rows.num_rows:
            self._snapshots.changed(self._table.put(rows))

    def append(self, rows: Batch) -> None:
        self.put(self._ordinals.added_to(rows))

    def remove(self, rows: Batch) -> None:
        row_numbers = self._table.find(rows)
        row_numbers = row_numbers[row_numbers >= 0]
        if len(row_numbers):
            self._snapshots.removed(self._table.remove(row_numbers))

    def restore(self, files: Sequence[KeyedState], checkpoint: CheckpointId) -> None:
        """The files come in the order they were laid."""
        self._snapshots.restore(
            (self._rows.readable(state) for state in files),
            checkpoint,
            is_as_it_was=all(map(self._rows.is_declared_in, files)),
        )
        for state in files:
            self._ordinals.restored(state)
