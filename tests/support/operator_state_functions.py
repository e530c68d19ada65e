"""Functions with operator state over the numbers of fed jobs, and jobs around them.

What a subtask knows comes out as numbers when its input ends, so a test sees it in the sink.
"""

from collections.abc import Iterator

import pyarrow as pa

from fake_connectors import NUMBERS, FakeSink, FakeSource, numbers_of, rows
from weir import BroadcastProcessFunction, ProcessFunction, StateHandle, Stream
from weir.dataflow.formats import Formats
from weir.dataflow.graph import GraphDefaults, build
from weir.dataflow.logical import OperatorSettings, Read, WrittenStream
from weir.dataflow.physical import JobGraph
from weir.dataflow.process_functions import Made
from weir.dataflow.writer import Session

SESSION = Session(Formats({}, {}), submit=lambda written: written)


class Holds(ProcessFunction):
    """Holds every number back until the end, in a list or a union list."""

    def __init__(self, *, union: bool = False) -> None:
        self.union = union

    def init(self, handle: StateHandle) -> None:
        declare = handle.getUnionListState if self.union else handle.getListState
        self.held = declare("held", "n long")

    def processBatch(self, batch: pa.RecordBatch) -> Made:  # noqa: N802
        self.held.appendArrow(batch)
        return None

    def finish(self) -> Iterator[pa.RecordBatch]:
        yield from self.held.toArrow().to_batches()


class Follows(BroadcastProcessFunction):
    """Passes on the numbers that a rule names; at the end says how often it heard each rule."""

    def init(self, handle: StateHandle) -> None:
        self.heard = handle.getBroadcastState("heard", "n long", "times long")

    def processBatch(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:  # noqa: N802
        yield rows(*(n for n in numbers_of([batch]) if self.heard.containsKey((n,))))

    def processBroadcastBatch(self, batch: pa.RecordBatch) -> Made:  # noqa: N802
        for number in numbers_of([batch]):
            known = self.heard.getValue((number,)) or (0,)
            self.heard.updateValue((number,), (known[0] + 1,))
        return None

    def finish(self) -> Iterator[pa.RecordBatch]:
        """A thousand for each rule, and one for each time it was heard."""
        yield rows(sum(1000 + times for (times,) in self.heard.values()))


def a_function_job(
    source: FakeSource, sink: FakeSink, function: ProcessFunction, width: int
) -> JobGraph:
    stream = _read(source, "read").process(function, NUMBERS)
    return _built(stream.uid("work").setParallelism(width), sink)


def a_connected_job(source: FakeSource, rules: FakeSource, sink: FakeSink, width: int) -> JobGraph:
    connected = _read(source, "read").connect(_read(rules, "more").broadcast())
    return _built(connected.process(Follows(), NUMBERS).uid("work").setParallelism(width), sink)


def _read(source: FakeSource, uid: str) -> Stream:
    return Stream(Read(source, NUMBERS), SESSION).uid(uid).setParallelism(1)


def _built(stream: Stream, sink: FakeSink) -> JobGraph:
    settings = OperatorSettings(uid="write", parallelism=1)
    return build([WrittenStream(stream.node, sink, "append", settings=settings)], GraphDefaults())
