"""Runs a built-in aggregation as an operator: rows in, the keys that changed out.

Rows only change the table. A key is emitted when the slot flushes, once for all its changes since,
with its aggregates as they then stand, as update mode does: a busy stream has few and large
outputs, an idle one has no delay, and none has a long one (spec R9). The slot flushes before each
barrier, so a snapshot never has to hold which keys were still to be emitted.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from weir.core.changelog import Position
from weir.core.ids import NO_CHECKPOINT, CheckpointId, EdgeId
from weir.dataflow.physical import AggregateHead
from weir.errors import JobRejected
from weir.ports.keyed_state import BackendFactory, RowNumbers
from weir.ports.operators import Batch, Captured, RestoredState, TaskInfo
from weir.slot.relay import Stateless
from weir.state.changed_rows import ChangedRows

_ROWS_PER_OUTPUT = 1 << 16


class AggregateOperator(Stateless):
    """Keeps running aggregates of each key and emits the keys that changed."""

    def __init__(self, head: AggregateHead, place: TaskInfo, backends: BackendFactory) -> None:
        self._head = head
        self._backend = backends(place, [head.input.field(key) for key in head.keys])
        self._aggregates = self._backend.aggregates(head.aggregates, head.input)
        self._changed = ChangedRows()

    def process(self, edge: EdgeId, batch: Batch) -> Iterable[Batch]:  # noqa: ARG002 - one input
        row_numbers = self._aggregates.update(batch)
        self._changed.add(row_numbers, self._aggregates.size)
        return self.flush() if self._backend.needs_flush() else ()

    def flush(self) -> Iterable[Batch]:
        return self._batches(self._changed.drain())

    def finish(self) -> Iterable[Batch]:
        return self.flush()

    def capture(self, checkpoint: CheckpointId) -> Captured:
        assert self._changed.is_empty, "a flush comes before each barrier"
        return self._backend.capture(checkpoint)

    def restore(self, restored_state: RestoredState) -> None:
        for name in self._backend.restore(restored_state):
            raise JobRejected(
                f"the snapshot's state {name!r} cannot be restored by an aggregation",
                "it was not kept by an aggregation",
                "give the aggregation a new uid, and allow that other state is not restored",
            )

    def cut(self) -> Captured:
        return self._backend.capture(NO_CHECKPOINT)

    def truncated(self, position: Position) -> None:
        self._backend.truncated(position)

    def completed(self, checkpoint: CheckpointId) -> None:
        self._backend.completed(checkpoint)

    def close(self) -> None:
        self._backend.close()

    def _batches(self, row_numbers: RowNumbers) -> Iterator[Batch]:
        for begin in range(0, len(row_numbers), _ROWS_PER_OUTPUT):
            columns = self._aggregates.rows(row_numbers[begin : begin + _ROWS_PER_OUTPUT])
            typed = [
                column.cast(field.type)
                for column, field in zip(columns, self._head.output, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(typed, schema=self._head.output)
        self._backend.flushed()
