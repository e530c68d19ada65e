"""What a user has described, before anyone has decided how it runs: a tree of plain values.

Nodes are compared by identity, because two reads of one topic are two sources. A stream that is
used twice is one node with two consumers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from weir.core.topology import EdgeKind
from weir.dataflow.physical import AggregateHead, FunctionHead, ProcessorHead
from weir.dataflow.stateless_steps import Transform
from weir.errors import JobRejected
from weir.ports.sinks import Sink
from weir.ports.sources import Source


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """What the user asked of one operator; zero and empty mean that nothing was asked."""

    uid: str = ""
    name: str = ""
    parallelism: int = 0
    max_parallelism: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """The beginning: rows from a source."""

    source: Source
    schema: pa.Schema
    event_time: str = ""
    delay_ms: int = 0
    settings: OperatorSettings = OperatorSettings()


@dataclass(frozen=True, slots=True, eq=False)
class Apply:
    """A stateless step."""

    input: "Node"
    step: Transform
    settings: OperatorSettings = OperatorSettings()

    @property
    def schema(self) -> pa.Schema:
        return self.step.output


@dataclass(frozen=True, slots=True, eq=False)
class Keyed:
    """A step with state for each key."""

    input: "Node"
    head: AggregateHead | ProcessorHead
    settings: OperatorSettings = OperatorSettings()

    @property
    def schema(self) -> pa.Schema:
        return self.head.output


@dataclass(frozen=True, slots=True, eq=False)
class Process:
    """A function with operator state, and the broadcast streams that it is connected to."""

    input: "Node"
    head: FunctionHead
    broadcasts: tuple["Node", ...] = ()
    settings: OperatorSettings = OperatorSettings()

    @property
    def schema(self) -> pa.Schema:
        return self.head.output


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """How rows reach whatever comes next; not an operator."""

    input: "Node"
    kind: EdgeKind
    keys: tuple[str, ...] = ()
    parallelism: int = 0
    """Of what comes next, unless it says otherwise itself; zero: nothing was asked."""

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """Several streams with one schema; not an operator."""

    inputs: tuple["Node", ...]

    @property
    def schema(self) -> pa.Schema:
        return self.inputs[0].schema


Node = Read | Apply | Keyed | Process | Exchange | Union


@dataclass(frozen=True, slots=True, eq=False)
class WrittenStream:
    """A stream with the sink that it ends in: what ``writeStream.start()`` submits."""

    input: Node
    sink: Sink
    output_mode: str
    """append or update."""
    query_name: str = ""
    checkpoint_location: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    settings: OperatorSettings = OperatorSettings()


def inputs_of(node: Node | WrittenStream) -> tuple[Node, ...]:
    match node:
        case Read():
            return ()
        case Union(inputs):
            return inputs
        case Process():
            return (node.input, *node.broadcasts)
        case _:
            return (node.input,)


def has_event_time(node: Node) -> bool:
    """Whether a watermark reaches this node; where streams are connected, each must have one."""
    if isinstance(node, Read):
        return bool(node.event_time)
    if isinstance(node, Process):
        return all(has_event_time(below) for below in inputs_of(node))
    return any(has_event_time(below) for below in inputs_of(node))


def event_time_column(node: Node) -> str:
    """The column that the watermarks which reach this node were made of; empty if it has gone.

    Behind an operator with state it has: what that makes of older rows is not late.
    """
    match node:
        case Read():
            return node.event_time
        case Apply():
            origin = event_time_column(node.input)
            names = node.schema.names if origin else ()
            return next((name for name in names if node.step.origin_of(name) == origin), "")
        case Exchange():
            return event_time_column(node.input)
        case Union():
            found = {event_time_column(below) for below in node.inputs}
            return found.pop() if len(found) == 1 else ""
        case Keyed() | Process():
            return ""


def is_aggregated(node: Node) -> bool:
    """Whether its rows replace older rows of the same key."""
    if isinstance(node, Keyed) and isinstance(node.head, AggregateHead):
        return True
    return any(is_aggregated(below) for below in inputs_of(node))


def with_event_time(node: Node, column: str, delay_ms: int) -> Node:
    """The same tree, whose source tells the time by the column that arrives here as ``column``."""
    match node:
        case Read() if node.event_time:
            raise JobRejected(
                f"withWatermark({column!r}): the stream already has a watermark",
                f"it reads the event time from {node.event_time!r}",
                "call withWatermark once",
            )
        case Read():
            return replace(node, event_time=column, delay_ms=delay_ms)
        case Apply() if origin := node.step.origin_of(column):
            return replace(node, input=with_event_time(node.input, origin, delay_ms))
        case Apply():
            reason = f"{node.step.label} computes that column"
        case Keyed() | Process():
            reason = "an aggregation, a processor or a function stands between it and the source"
        case Exchange():
            reason = "the rows have been redistributed since they left the source"
        case Union():
            reason = "the streams of a union each have their own time"
    raise JobRejected(
        f"withWatermark({column!r}): watermarks are made where rows are read",
        reason,
        "call withWatermark right after load()",
    )
