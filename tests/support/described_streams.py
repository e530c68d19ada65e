"""Sources and sinks that are only described, a session of them, and a picture of a built graph."""

from dataclasses import dataclass, field

import pyarrow as pa

from weir import Stream
from weir.core.ids import SplitId
from weir.dataflow.formats import Formats
from weir.dataflow.graph import GraphDefaults, build
from weir.dataflow.logical import WrittenStream
from weir.dataflow.options import Options
from weir.dataflow.physical import JobGraph, Stage
from weir.dataflow.reader import StreamReader
from weir.dataflow.types import schema_of
from weir.dataflow.writer import Session
from weir.ports.operators import TaskInfo
from weir.ports.sinks import Committer, Writer
from weir.ports.sources import Discovery, Reader

EVENTS = "user string, value long, price double, ts timestamp"


@dataclass(frozen=True)
class Described:
    """A source that is never opened."""

    schema: pa.Schema
    is_endless: bool = False
    is_bounded: bool = False

    def discover(self, seen: str) -> Discovery:
        return Discovery((), seen, is_final=True)

    def open(self, split: SplitId, position: str) -> Reader:
        raise AssertionError(f"{split} is opened at {position}")


@dataclass(frozen=True)
class Nowhere:
    """A sink that is never opened."""

    rows: pa.Schema = field(default_factory=lambda: pa.schema([]))

    def open(self, place: TaskInfo) -> Writer:
        raise AssertionError(f"the sink is opened at {place}")

    def committer(self) -> Committer:
        raise AssertionError("the sink commits")


def described(options: Options) -> Described:
    options.text("path", "")
    return Described(options.schema or schema_of(EVENTS))


def nowhere(options: Options, rows: pa.Schema) -> Nowhere:
    options.text("path", "")
    return Nowhere(rows)


def session() -> Session:
    """Submitting returns what was submitted."""
    formats = Formats(
        {"events": described, "parquet": described, "json": described}, {"nowhere": nowhere}
    )
    return Session(formats, submit=lambda written: written)


def events(schema: str = EVENTS) -> Stream:
    return StreamReader(session()).format("events").schema(schema).load()


def ended(stream: Stream) -> WrittenStream:
    return stream.writeStream.format("nowhere").finished()


def graph_of(*streams: Stream, parallelism: int = 2) -> JobGraph:
    return build([ended(stream) for stream in streams], GraphDefaults(parallelism))


def picture(graph: JobGraph) -> str:
    """One line a stage, and below it one line for each edge that enters it."""
    lines: list[str] = []
    for stage in graph.stages:
        lines.append(f"{stage.operator} x{graph.topology.by_id[stage.operator].parallelism}")
        lines[-1] += "".join(f" | {step.label}" for step in stage.steps)
        lines += _edges_into(stage, graph)
    return "\n".join(lines)


def _edges_into(stage: Stage, graph: JobGraph) -> list[str]:
    return [
        f"  {edge.kind} from {edge.source}"
        + "".join(f" {key}" for key in graph.keys.get(edge.id, ()))
        for edge in graph.topology.edges
        if edge.target == stage.operator
    ]
