"""A job that counts rows by their number, in two ways, and what its state must be at any position.

An aggregation counts all rows. A processor counts up to six and then forgets the number, so that
its incremental snapshots hold removals too. The position of the splits determines both results.
"""

# ruff: noqa: ARG002, N802, N803 - the names are PySpark's, and so are the unused ones

from collections import Counter
from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from fake_connectors import NUMBERS, READ, FakeSource
from weir.core.ids import EdgeId, OperatorId, SplitId
from weir.core.topology import Edge, EdgeKind, Operator, Topology
from weir.dataflow.physical import (
    Aggregate,
    AggregateHead,
    JobGraph,
    ProcessorHead,
    RowsAs,
    SourceHead,
    Stage,
)

COUNT, FORGET = OperatorId("count"), OperatorId("forget")
SPLITS = tuple(SplitId(f"split-{number}") for number in range(4))
FORGOTTEN_AT = 7
GROUPS = 32

_COUNTS = pa.schema([("n", pa.int64()), ("rows", pa.int64())])
_BY_NUMBER = ("n",)


class Forgetful(StatefulProcessor):
    """Counts the rows of each number, and begins anew with the seventh."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._rows = handle.getValueState("rows", "rows long")

    def handleInputRows(
        self, key: object, rows: Iterator[Row], timerValues: TimerValues
    ) -> Iterator[Row]:
        (known,) = self._rows.get() or (0,)
        counted = (known + len(list(rows))) % FORGOTTEN_AT
        if counted:
            self._rows.update((counted,))
        else:
            self._rows.clear()
        return iter(())

    def close(self) -> None:
        """Nothing to close."""


def a_counting_graph(source: FakeSource, width: int, *, forgets: bool = True) -> JobGraph:
    """Everything is so wide; the processor may be left out."""
    counts = AggregateHead(_BY_NUMBER, (Aggregate("count", "", "rows"),), NUMBERS, _COUNTS)
    forgetting = ProcessorHead(_BY_NUMBER, Forgetful(), RowsAs.ROWS, NUMBERS, _COUNTS)
    heads: dict[OperatorId, AggregateHead | ProcessorHead] = {COUNT: counts}
    if forgets:
        heads[FORGET] = forgetting
    edges = tuple(Edge(EdgeId(f"to {o}"), READ, o, EdgeKind.HASH) for o in heads)
    topology = Topology(
        (
            Operator(READ, width, GROUPS, is_coordinated=True),
            *(Operator(o, width, GROUPS) for o in heads),
        ),
        edges,
    )
    stages = (
        Stage(READ, SourceHead(source), (), NUMBERS),
        *(Stage(o, head, (), _COUNTS) for o, head in heads.items()),
    )
    return JobGraph(topology, stages, {edge.id: _BY_NUMBER for edge in edges})


def expected_counts(
    source: FakeSource, positions: Mapping[SplitId, str]
) -> dict[str, Counter[int]]:
    """What the states hold once each split was read so far."""
    counted: Counter[int] = Counter()
    for split, position in positions.items():
        counted.update(source.splits[split][: int(position or 0)])
    left = Counter({n: rows % FORGOTTEN_AT for n, rows in counted.items() if rows % FORGOTTEN_AT})
    return {COUNT: counted, FORGET: left}
