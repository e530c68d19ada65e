"""The graph that runs: stages with what each does to rows, around the topology that decisions see.

A stage is one operator of the topology: a head that may have state, then steps that have none and
are folded into it. Stages travel to the slots by pickle, with the user's functions in them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Protocol

import pyarrow as pa

from weir.core.ids import EdgeId, OperatorId
from weir.core.snapshots import Redistribution
from weir.core.topology import Topology
from weir.dataflow.process_functions import ProcessFunction
from weir.ports.operators import Batch
from weir.ports.sinks import Sink
from weir.ports.sources import Source


class Step(Protocol):
    """A stateless piece of a stage: rows in, rows out, nothing kept in between."""

    @property
    def label(self) -> str:
        """What a message calls it, such as ``filter(value > 3)``."""

    def __call__(self, batch: Batch) -> Iterable[Batch]: ...


@dataclass(frozen=True, slots=True)
class SourceHead:
    """Reads splits."""

    source: Source
    event_time: str = ""
    """The column that tells the time; empty: no watermarks."""
    delay_ms: int = 0
    """How late a row may come."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregated column. ``column`` is empty for a count of rows."""

    function: str
    """The name of an entry in ``aggregations``."""
    column: str
    alias: str


@dataclass(frozen=True, slots=True)
class AggregateHead:
    """Keeps running aggregates of each key and emits the keys that changed."""

    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    input: pa.Schema
    output: pa.Schema
    """The key columns, then one column for each aggregate."""


class RowsAs(StrEnum):
    """What a processor is given and gives back."""

    ROWS = "rows"
    PANDAS = "pandas"


@dataclass(frozen=True, slots=True)
class ProcessorHead:
    """Runs a PySpark ``StatefulProcessor``."""

    keys: tuple[str, ...]
    processor: object
    rows_as: RowsAs
    input: pa.Schema
    output: pa.Schema
    time_mode: str = "None"
    """PySpark's words: None, ProcessingTime, EventTime."""
    event_time: str = ""
    """The column that watermarks are made of; empty: the input has it no more, none is late."""
    initial_state: object = None
    """What the user gave to begin with: a grouped DataFrame, which stays in the driver."""
    initial: pa.Schema | None = None
    """Of the rows that it has; None if a new job begins with nothing."""


@dataclass(frozen=True, slots=True)
class StateDeclaration:
    """One operator state of a function."""

    name: str
    kind: Redistribution
    keys: pa.Schema
    """Of a broadcast state; without columns for lists."""
    values: pa.Schema

    @property
    def columns(self) -> pa.Schema:
        """Of a row that a snapshot holds."""
        return pa.schema([*self.keys, *self.values])


@dataclass(frozen=True, slots=True)
class FunctionHead:
    """Runs the user's function, with the operator states that it declared."""

    function: ProcessFunction
    states: tuple[StateDeclaration, ...]
    output: pa.Schema
    broadcast: tuple[EdgeId, ...] = ()
    """The edges of its broadcast input; none for a function with one input."""


@dataclass(frozen=True, slots=True)
class RelayHead:
    """Passes rows on: the steps behind it are what it is for."""


@dataclass(frozen=True, slots=True)
class SinkHead:
    """Writes rows into transactions."""

    sink: Sink


Head = SourceHead | AggregateHead | ProcessorHead | FunctionHead | RelayHead | SinkHead


@dataclass(frozen=True, slots=True)
class Stage:
    """One operator: its head, then its steps."""

    operator: OperatorId
    head: Head
    steps: tuple[Step, ...]
    output: pa.Schema
    """Of the rows that leave the last step; without columns for a sink."""
    name: str = ""
    """What people call it; empty: its id will do."""


@dataclass(frozen=True)
class JobGraph:
    """Everything a slot needs to know about a job."""

    topology: Topology
    stages: tuple[Stage, ...]
    keys: Mapping[EdgeId, tuple[str, ...]] = field(default_factory=dict)
    """The columns that each hashed edge is partitioned by."""

    @cached_property
    def by_id(self) -> dict[OperatorId, Stage]:
        return {stage.operator: stage for stage in self.stages}
