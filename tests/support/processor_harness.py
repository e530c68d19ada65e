"""Runs one PySpark processor in one subtask, with rows as dictionaries and a clock set by hand."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from weir.connectors.pyspark.processor import ProcessorOperator
from weir.core.ids import CheckpointId, EdgeId, Millis, OperatorId, SubtaskId
from weir.core.key_groups import range_of
from weir.core.snapshots import KeyGroupRange
from weir.dataflow.physical import ProcessorHead, RowsAs
from weir.dataflow.types import schema_of
from weir.ports.keyed_state import BackendFactory
from weir.ports.operators import Batch, Captured, RestoredState, TaskInfo
from weir.state.memory.memory_backend import MemoryBackend

MAX_PARALLELISM = 128

Rows = Sequence[Mapping[str, object]]
Files = Sequence[tuple[KeyGroupRange, pa.Buffer]]


@dataclass
class ManualClock:
    """A clock that a test sets."""

    now: int = 1_000

    def __call__(self) -> Millis:
        return Millis(self.now)


@dataclass
class ProcessorHarness:
    """A subtask of the operator ``counts``; ``begin`` comes first, as in a slot."""

    backends: ClassVar[BackendFactory] = MemoryBackend

    processor: object
    inputs: str = "word string, amount bigint"
    output: str = "word string, total bigint"
    time_mode: str = "None"
    rows_as: RowsAs = RowsAs.ROWS
    keys: tuple[str, ...] = ("word",)
    index: int = 0
    parallelism: int = 1
    clock: ManualClock = field(default_factory=ManualClock)
    is_incremental: bool = False
    initial: pa.Schema | None = None
    event_time: str = ""

    def begin(self, files: Files = (), watermark: int | None = None) -> "ProcessorHarness":
        head = ProcessorHead(
            self.keys,
            self.processor,
            self.rows_as,
            schema_of(self.inputs),
            schema_of(self.output),
            self.time_mode,
            initial=self.initial,
            event_time=self.event_time,
        )
        subtask = SubtaskId(OperatorId("counts"), self.index)
        place = TaskInfo(
            subtask,
            self.parallelism,
            MAX_PARALLELISM,
            epoch=1,
            attempt=1,
            clock=self.clock,
            is_incremental=self.is_incremental,
        )
        self.operator = ProcessorOperator(head, place, type(self).backends)
        mark = None if watermark is None else Millis(watermark)
        self.operator.restore(RestoredState(keyed=files, watermark=mark))
        return self

    @property
    def groups(self) -> KeyGroupRange:
        return range_of(self.index, self.parallelism, MAX_PARALLELISM)

    def process(self, *rows: Mapping[str, object]) -> list[dict[str, object]]:
        batch = pa.RecordBatch.from_pylist(list(rows), schema=schema_of(self.inputs))
        return flattened(self.operator.process(EdgeId("in"), batch))

    def words(self, *words: str) -> list[dict[str, object]]:
        return self.process(*({"word": word, "amount": 1} for word in words))

    def fire(self) -> list[dict[str, object]]:
        """Fire until nothing is due, as a slot does."""
        rows = []
        while self.operator.is_due():
            rows += flattened(self.operator.fire())
        return rows

    def capture(self) -> Captured:
        return self.operator.capture(CheckpointId(1))


def written(captured: Captured) -> list[tuple[KeyGroupRange, pa.Buffer]]:
    """What the upload of a capture would have put into storage."""
    return [(piece.groups, piece.write()) for piece in captured.keyed]


def flattened(batches: Iterable[Batch]) -> list[dict[str, object]]:
    return [row for batch in batches for row in batch.to_pylist()]
