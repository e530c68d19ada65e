"""Sources that a test feeds and sinks that it looks into, as the ports want them.

A row is one number in the column ``n``. A split's position is the number of rows that were read
from it, so a test can say and see exactly how far a source has come.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from weir.core.ids import EdgeId, OperatorId, SplitId, SubtaskId
from weir.core.topology import Edge, EdgeKind, Operator, Topology
from weir.dataflow.physical import Head, JobGraph, RelayHead, SinkHead, SourceHead, Stage, Step
from weir.ports.operators import Batch, TaskInfo
from weir.ports.sinks import Committer, SealedTransaction
from weir.ports.sources import Discovery

NUMBERS = pa.schema([("n", pa.int64())])
READ, MORE, WORK, WRITE = (OperatorId(name) for name in ("read", "more", "work", "write"))
READ_0, MORE_0, WORK_0, WRITE_0 = (SubtaskId(o, 0) for o in (READ, MORE, WORK, WRITE))
ONE, TWO = SplitId("one"), SplitId("two")


def rows(*numbers: int) -> Batch:
    return pa.record_batch([pa.array(numbers, pa.int64())], schema=NUMBERS)


def numbers_of(batches: Iterable[object]) -> list[int]:
    found: list[int] = []
    for batch in batches:
        if isinstance(batch, pa.RecordBatch):
            found += batch.column("n").to_pylist()
    return found


@dataclass
class FakeReader:
    """Reads what the test has fed into the split so far."""

    fed: list[int]
    at: int
    source: "FakeSource"
    closed: bool = False

    def read(self, rows_wanted: int) -> Batch | None:
        if self.source.breaks:
            raise OSError("the split is gone")
        taken = self.fed[self.at : self.at + min(rows_wanted, self.source.at_once)]
        self.at += len(taken)
        return rows(*taken) if taken else None

    @property
    def position(self) -> str:
        if self.source.forgets:
            raise self.source.forgets
        return str(self.at)

    @property
    def is_exhausted(self) -> bool:
        return self.source.is_bounded and self.at == len(self.fed)

    @property
    def rest_ms(self) -> int:
        return self.source.rest_ms

    def close(self) -> None:
        self.closed = True


@dataclass
class FakeSource:
    """Splits that grow while the test goes on; a bounded one ends where its rows end."""

    splits: dict[SplitId, list[int]] = field(default_factory=lambda: {ONE: []})
    is_bounded: bool = False
    is_endless: bool = False
    at_once: int = 1_000_000
    rest_ms: int = 1
    breaks: bool = False
    forgets: BaseException | None = None
    """Raised instead of saying how far a split has been read."""
    opened: list[tuple[SplitId, str]] = field(default_factory=list)
    readers: list[FakeReader] = field(default_factory=list)
    found: list[Discovery | BaseException] = field(default_factory=list)
    """What the next looks around find."""
    asked: list[str] = field(default_factory=list)

    @property
    def schema(self) -> pa.Schema:
        return NUMBERS

    def feed(self, *numbers: int, split: SplitId = ONE) -> None:
        self.splits[split] += numbers

    def discover(self, seen: str) -> Discovery:
        self.asked.append(seen)
        found = self.found.pop(0)
        if isinstance(found, BaseException):
            raise found
        return found

    def open(self, split: SplitId, position: str) -> FakeReader:
        self.opened.append((split, position))
        reader = FakeReader(self.splits[split], int(position or 0), self)
        self.readers.append(reader)
        return reader


@dataclass
class FakeSinkWriter:
    """One subtask's end of a sink that lives in the test."""

    sink: "FakeSink"
    name: str
    open_rows: list[int] = field(default_factory=list)
    sealed: int = 0
    closed: bool = False

    def write(self, batch: Batch) -> None:
        if self.sink.breaks:
            raise self.sink.breaks
        self.open_rows += numbers_of([batch])
        self.sink.written += numbers_of([batch])

    def seal(self) -> SealedTransaction | None:
        if not self.open_rows:
            return None
        self.sealed += 1
        name = f"{self.name}-{self.sealed}"
        self.sink.sealed[name], self.open_rows = self.open_rows, []
        return SealedTransaction(name, lambda: self._make_durable(name))

    def _make_durable(self, name: str) -> None:
        if self.sink.loses:
            raise OSError("the disk is full")
        self.sink.durable.append(name)

    def close(self) -> None:
        self.closed = True


@dataclass
class FakeSink:
    """Remembers what was written, what was sealed and what was made durable."""

    breaks: BaseException | None = None
    """Raised instead of opening or writing."""
    loses: bool = False
    written: list[int] = field(default_factory=list)
    sealed: dict[str, list[int]] = field(default_factory=dict)
    durable: list[str] = field(default_factory=list)
    writers: list[FakeSinkWriter] = field(default_factory=list)

    def open(self, place: TaskInfo) -> FakeSinkWriter:
        if self.breaks:
            raise self.breaks
        writer = FakeSinkWriter(self, f"{place.subtask}-a{place.attempt}")
        self.writers.append(writer)
        return writer

    def committer(self) -> Committer:
        raise AssertionError("no driver is here that could commit")


@dataclass(frozen=True)
class Tenfold:
    """A step that is a generator, as the user's functions are."""

    label: str = "tenfold"

    def __call__(self, batch: Batch) -> Iterator[Batch]:
        for number in numbers_of([batch]):
            yield rows(number * 10)


@dataclass(frozen=True)
class FailsAt:
    """A step that cannot take one number."""

    number: int
    problem: BaseException | None = None
    label: str = "fails"

    def __call__(self, batch: Batch) -> Iterator[Batch]:
        if self.number in numbers_of([batch]):
            raise self.problem or ValueError(f"{self.number} is not a number")
        yield batch


def a_stage(operator: OperatorId, head: Head, *steps: Step) -> Stage:
    return Stage(operator, head, steps, pa.schema([]) if isinstance(head, SinkHead) else NUMBERS)


def an_operator(name: OperatorId, width: int, *, is_sink: bool = False) -> Operator:
    return Operator(name, width, max_parallelism=16, is_sink=is_sink)


def a_chain(source: FakeSource, sink: FakeSink, *steps: Step, width: int = 1) -> JobGraph:
    """One reads, one works, one writes; the rows for the worker are hashed."""
    topology = Topology(
        (
            an_operator(READ, width),
            an_operator(WORK, width),
            an_operator(WRITE, width, is_sink=True),
        ),
        (
            Edge(EdgeId("rows"), READ, WORK, EdgeKind.HASH),
            Edge(EdgeId("done"), WORK, WRITE, EdgeKind.FORWARD),
        ),
    )
    stages = (
        a_stage(READ, SourceHead(source)),
        a_stage(WORK, RelayHead(), *steps),
        a_stage(WRITE, SinkHead(sink)),
    )
    return JobGraph(topology, stages, {EdgeId("rows"): ("n",)})


def a_confluence(source: FakeSource, more: FakeSource, head: Head, *steps: Step) -> JobGraph:
    """Two sources run into one operator, which is a sink in most tests."""
    topology = Topology(
        (an_operator(READ, 1), an_operator(MORE, 1), an_operator(WRITE, 1, is_sink=True)),
        (
            Edge(EdgeId("some"), READ, WRITE, EdgeKind.FORWARD),
            Edge(EdgeId("others"), MORE, WRITE, EdgeKind.FORWARD),
        ),
    )
    stages = (
        a_stage(READ, SourceHead(source)),
        a_stage(MORE, SourceHead(more)),
        a_stage(WRITE, head, *steps),
    )
    return JobGraph(topology, stages)
