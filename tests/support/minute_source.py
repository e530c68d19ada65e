"""A job that reads one row a minute by event time, in splits as small as the test wants them.

A row is its minute and the time of it. A processor sets a timer for each row, one minute later, and
emits nothing: how far time has come is what its subtasks have passed on.
"""

# ruff: noqa: ARG002, N802, N803 - the names are PySpark's, also of unused parameters

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from fake_connectors import READ, WORK, FakeReader, FakeSource, numbers_of
from weir.core.ids import EdgeId, SplitId
from weir.core.topology import Edge, EdgeKind, Operator, Topology
from weir.dataflow.physical import JobGraph, ProcessorHead, RowsAs, SourceHead, Stage
from weir.dataflow.types import schema_of
from weir.ports.operators import Batch

MINUTE_MS = 60_000
DELAY_MS = 1_000
MINUTES = schema_of("minute bigint, at timestamp")
GROUPS = 8


@dataclass
class MinuteReader:
    """Turns the numbers of a split into minutes."""

    reader: FakeReader

    def read(self, rows: int) -> Batch | None:
        batch = self.reader.read(rows)
        if batch is None:
            return None
        minutes = numbers_of([batch])
        micros = [minute * MINUTE_MS * 1000 for minute in minutes]
        at = pa.array(micros, MINUTES.field("at").type)
        return pa.record_batch([pa.array(minutes, pa.int64()), at], schema=MINUTES)

    @property
    def position(self) -> str:
        return self.reader.position

    @property
    def is_exhausted(self) -> bool:
        return self.reader.is_exhausted

    @property
    def rest_ms(self) -> int:
        return self.reader.rest_ms

    def close(self) -> None:
        self.reader.close()


class MinuteSource(FakeSource):
    """Splits that end where their minutes end."""

    @property
    def schema(self) -> pa.Schema:
        return MINUTES

    def open(self, split: SplitId, position: str) -> MinuteReader:  # type: ignore[override]
        return MinuteReader(super().open(split, position))


def minutes_of(*splits: list[int]) -> MinuteSource:
    """Splits with these minutes, named by their numbers from zero on."""
    named = {SplitId(str(number)): minutes for number, minutes in enumerate(splits)}
    return MinuteSource(named, is_bounded=True)


class MinuteLater(StatefulProcessor):
    """Sets a timer for each row."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle

    def handleInputRows(
        self, key: object, rows: Iterator[Row], timerValues: TimerValues
    ) -> Iterator[Row]:
        for row in rows:
            self._handle.registerTimer((row.minute + 1) * MINUTE_MS)
        return iter(())

    def handleExpiredTimer(
        self, key: tuple[int], timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        yield Row(minute=key[0])

    def close(self) -> None:
        """Nothing to close."""


def a_minute_graph(source: MinuteSource, width: int) -> JobGraph:
    """Everything is so wide."""
    edge = Edge(EdgeId("minutes"), READ, WORK, EdgeKind.HASH)
    operators = (Operator(READ, width, GROUPS, is_coordinated=True), Operator(WORK, width, GROUPS))
    output = schema_of("minute bigint")
    head = ProcessorHead(
        ("minute",), MinuteLater(), RowsAs.ROWS, MINUTES, output, "EventTime", event_time="at"
    )
    stages = (
        Stage(READ, SourceHead(source, "at", DELAY_MS), (), MINUTES),
        Stage(WORK, head, (), output),
    )
    return JobGraph(Topology(operators, (edge,)), stages, {edge.id: ("minute",)})
