"""The running aggregates of a subtask in memory, with the files that they are captured to."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from weir.core.ids import CheckpointId
from weir.core.snapshots import KeyGroupRange
from weir.ports.keyed_state import AGGREGATES_FILE, Aggregation, RowNumbers
from weir.ports.operators import Batch, Captured, KeyedSnapshot
from weir.state.layer_merge import REMOVED, split_removed
from weir.state.memory.aggregate_table import AggregateTable
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

    def remove(self, row_numbers: RowNumbers) -> None:
        keys = self._table.remove(row_numbers)
        if self._history is not None:
            table = pa.Table.from_arrays(keys, schema=pa.schema(self._keys.fields))
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
            return self._write(_layer(captured.read(row_numbers), past.removed_since(base)))

        def whole() -> pa.Buffer:
            return self._write(captured.read())

        piece = KeyedSnapshot(self._groups, whole, AGGREGATES_FILE, since)
        return Captured(keyed=(piece,), release=captured.release, keyed_in_memory=True)

    def restore(self, files: Sequence[KeyedState], checkpoint: CheckpointId) -> None:
        """The files come in the order they were laid."""
        is_as_it_was = True
        for state in files:
            removed, table = split_removed(state.table)
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

    def _write(self, table: pa.Table) -> pa.Buffer:
        names = self._keys.names
        keys = [column.combine_chunks() for column in table.columns[: len(names)]]
        groups = self._keys.groups(keys)
        first, last = self._groups
        assert ((groups >= first) & (groups <= last)).all(), "every key here is of our key groups"
        return write_keyed(AGGREGATES_FILE, table, groups, names, self._keys.max_parallelism)


def _layer(changed: pa.Table, removed: Sequence[pa.Table]) -> pa.Table:
    """What changed, and the keys that are gone; one that came again is in both, and is there."""
    if not removed:
        return changed
    rows = pa.concat_tables([changed, *removed], promote_options="default")
    is_removed = np.arange(rows.num_rows) >= changed.num_rows
    return rows.append_column(REMOVED, pa.array(is_removed)).combine_chunks()
