"""Runs a built-in aggregation as an operator: rows in, the keys that changed out.

Rows only change the table. A key is emitted when the slot flushes, once for all its changes since,
with its aggregates as they then stand, as update mode does: a busy stream has few and large
outputs, an idle one has no delay. The slot flushes before each barrier, so a snapshot never has to
hold which keys were still to be emitted.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from weir.core.ids import CheckpointId, EdgeId
from weir.core.key_groups import range_of
from weir.dataflow.physical import AggregateHead
from weir.errors import JobRejected
from weir.ports.operators import Batch, Captured, KeyedSnapshot, RestoredState, TaskInfo
from weir.slot.relay import Stateless
from weir.state.aggregate_table import AggregateTable, CapturedTable
from weir.state.change_history import CapturedChanges, ChangeHistory
from weir.state.changed_rows import ChangedRows
from weir.state.key_index import RowNumbers
from weir.state.snapshot_files import read_keyed, write_keyed
from weir.wire.keys import key_groups

STATE_NAME = "aggregates"
_ROWS_PER_OUTPUT = 1 << 16


class AggregateOperator(Stateless):
    """Keeps running aggregates of each key and emits the keys that changed."""

    def __init__(self, head: AggregateHead, place: TaskInfo) -> None:
        self._head = head
        self._max_parallelism = place.max_parallelism
        self._groups = range_of(place.subtask.index, place.parallelism, place.max_parallelism)
        self._table = AggregateTable(head.keys, head.aggregates, head.input)
        self._changed = ChangedRows()
        self._history = ChangeHistory() if place.is_incremental else None

    def process(self, edge: EdgeId, batch: Batch) -> Iterable[Batch]:  # noqa: ARG002 - one input
        slots = self._table.update(batch)
        self._changed.add(slots, self._table.size)
        if self._history is not None:
            self._history.changed(slots, self._table.size)
        return ()

    def flush(self) -> Iterable[Batch]:
        return self._batches(self._changed.drain())

    def finish(self) -> Iterable[Batch]:
        return self.flush()

    def capture(self, checkpoint: CheckpointId) -> Captured:
        assert self._changed.is_empty, "a flush comes before each barrier"
        captured = self._table.capture()
        past = (
            self._history.captured(checkpoint) if self._history is not None else CapturedChanges(())
        )

        def since(base: CheckpointId) -> pa.Buffer | None:
            slots = past.changed_since(base)
            return None if slots is None else self._write(captured, slots)

        piece = KeyedSnapshot(self._groups, lambda: self._write(captured), STATE_NAME, since)
        return Captured(keyed=(piece,), release=captured.release)

    def restore(self, restored_state: RestoredState) -> None:
        is_as_it_was = True
        for groups, data in restored_state.keyed:
            state = read_keyed(data, groups)
            if state.name != STATE_NAME:
                raise JobRejected(
                    f"the snapshot's state {state.name!r} cannot be restored by an aggregation",
                    "it was not kept by an aggregation",
                    "give the aggregation a new uid, and allow that other state is not restored",
                )
            self._table.load(state.table)
            is_as_it_was = is_as_it_was and state.table.schema.equals(self._table.schema)
        # What is of other types now cannot be laid over the files of then.
        if self._history is not None and is_as_it_was:
            self._history.restored(restored_state.checkpoint)

    def completed(self, checkpoint: CheckpointId) -> None:
        if self._history is not None:
            self._history.completed(checkpoint)

    def _batches(self, slots: RowNumbers) -> Iterator[Batch]:
        for begin in range(0, len(slots), _ROWS_PER_OUTPUT):
            columns = self._table.rows(slots[begin : begin + _ROWS_PER_OUTPUT])
            typed = [
                column.cast(field.type)
                for column, field in zip(columns, self._head.output, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(typed, schema=self._head.output)

    def _write(self, captured: CapturedTable, slots: RowNumbers | None = None) -> pa.Buffer:
        table = captured.read(slots)
        keys = pa.RecordBatch.from_arrays(
            [column.chunk(0) for column in table.columns[: len(self._head.keys)]],
            names=self._head.keys,
        )
        groups = key_groups(keys, self._head.keys, self._max_parallelism)
        first, last = self._groups
        assert ((groups >= first) & (groups <= last)).all(), "every key here is of our key groups"
        return write_keyed(STATE_NAME, table, groups, self._head.keys, self._max_parallelism)
