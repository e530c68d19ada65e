"""The running aggregates of a subtask in memory, with the files that they are captured to."""

from collections.abc import Sequence

import pyarrow as pa

from weir.core.ids import CheckpointId
from weir.core.snapshots import KeyGroupRange
from weir.ports.keyed_state import AGGREGATES_FILE, Aggregation, RowNumbers
from weir.ports.operators import Batch, Captured, KeyedSnapshot
from weir.state.memory.aggregate_table import AggregateTable, CapturedTable
from weir.state.memory.change_history import CapturedChanges, ChangeHistory
from weir.state.restored_rows import Keys
from weir.state.snapshot_files import KeyedState, write_keyed


class MemoryAggregates:
    """Aggregates by key, and which of them changed since earlier captures."""

    def __init__(
        self,
        keys: Keys,
        aggregates: Sequence[Aggregation],
        schema: pa.Schema,
        groups: KeyGroupRange,
        *,
        is_incremental: bool,
    ) -> None:
        self._keys = keys
        self._groups = groups
        self._table = AggregateTable(keys.names, aggregates, schema)
        self._history = ChangeHistory() if is_incremental else None
        self.rows = self._table.rows

    @property
    def size(self) -> int:
        return self._table.size

    def update(self, batch: Batch) -> RowNumbers:
        row_numbers = self._table.update(batch)
        if self._history is not None:
            self._history.changed(row_numbers, self._table.size)
        return row_numbers

    def capture(self, checkpoint: CheckpointId) -> Captured:
        captured = self._table.capture()
        past = (
            self._history.captured(checkpoint) if self._history is not None else CapturedChanges(())
        )

        def since(base: CheckpointId) -> pa.Buffer | None:
            row_numbers = past.changed_since(base)
            return None if row_numbers is None else self._write(captured, row_numbers)

        piece = KeyedSnapshot(self._groups, lambda: self._write(captured), AGGREGATES_FILE, since)
        return Captured(keyed=(piece,), release=captured.release)

    def restore(self, files: Sequence[KeyedState], checkpoint: CheckpointId) -> None:
        """The files come in the order they were laid."""
        for state in files:
            self._table.load(state.table)
        # What is of other types now cannot be laid over the files of then.
        is_as_it_was = all(state.table.schema.equals(self._table.schema) for state in files)
        if self._history is not None and is_as_it_was:
            self._history.restored(checkpoint)

    def completed(self, checkpoint: CheckpointId) -> None:
        if self._history is not None:
            self._history.completed(checkpoint)

    def _write(self, captured: CapturedTable, row_numbers: RowNumbers | None = None) -> pa.Buffer:
        table = captured.read(row_numbers)
        names = self._keys.names
        groups = self._keys.groups([column.chunk(0) for column in table.columns[: len(names)]])
        first, last = self._groups
        assert ((groups >= first) & (groups <= last)).all(), "every key here is of our key groups"
        return write_keyed(AGGREGATES_FILE, table, groups, names, self._keys.max_parallelism)
