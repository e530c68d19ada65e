"""Writes the ``initialState`` of processors as the savepoint that a new job starts from.

The rows become state, a list for each key, which Spark's tasks write into files by key group. So
they are distributed like all other state, ``handleInitialState`` gets them exactly once after any
failure, and a job that restores a later checkpoint does not see them again, because used rows are
removed from the state. The savepoint belongs to the job and is deleted like an old checkpoint.

As in PySpark the rows have all columns of the DataFrame, and its grouping must have the types of
the stream's, in the same order; names may differ.
"""

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, GroupedData
from pyspark.sql import functions as F  # noqa: N812 - as users write it
from pyspark.sql.pandas.types import to_arrow_schema

from weir.api.storage_url import is_memory
from weir.connectors.pyspark.initial_rows import INITIAL_ROWS
from weir.core.checkpoint_paths import manifest_path
from weir.core.ids import OperatorId
from weir.dataflow.physical import JobGraph, ProcessorHead, Stage
from weir.dataflow.types import written
from weir.errors import JobRejected
from weir.spark.bootstrap import BootstrappedState, Savepoint
from weir.state.state_columns import LIST, ORDINAL
from weir.storage import inspection, manifests
from weir.storage.stores import ObjectStore
from weir.wire.struct_keys import nullable_inside

KEY, ORDER, VALUE = "__weir_key", "__weir_order", "__weir_value"


@dataclass(frozen=True, slots=True)
class InitialState:
    """What one processor begins with."""

    uid: OperatorId
    max_parallelism: int
    frame: DataFrame
    keys: tuple[str, ...]
    """Columns of the frame."""
    names: tuple[str, ...]
    """What the stream calls them."""


def without_initial_state(graph: JobGraph) -> tuple[JobGraph, tuple[InitialState, ...]]:
    """The graph as it travels, and the DataFrames, which stay here."""
    found: list[InitialState] = []
    stages: list[Stage] = []
    for stage in graph.stages:
        head = stage.head
        if isinstance(head, ProcessorHead) and head.initial_state is not None:
            most = graph.topology.by_id[stage.operator].max_parallelism
            initial = _initial_state(stage.operator, most, head)
            found.append(initial)
            head = replace(head, initial_state=None, initial=_rows_of(initial.frame))
        stages.append(replace(stage, head=head))
    return replace(graph, stages=tuple(stages)), tuple(found)


def savepoint_of(given: Sequence[InitialState], directory: str, store: ObjectStore) -> str:
    """Write it below the job's directory; the path of its manifest."""
    location = _place(directory)
    made = [_written(one, location) for one in given]
    parts = [inspection.find(store, path) for path in made]
    whole = replace(
        parts[0],
        location=location,
        widths=tuple(width for part in parts for width in part.widths),
        snapshots=tuple(snapshot for part in parts for snapshot in part.snapshots),
    )
    manifests.write(store, whole)
    store.delete([manifest_path(path) for path in made])
    return manifest_path(location)


def _initial_state(uid: OperatorId, max_parallelism: int, head: ProcessorHead) -> InitialState:
    grouped = head.initial_state
    if not isinstance(grouped, GroupedData):
        raise JobRejected(
            f"operator {uid!r}: initialState is a {type(grouped).__name__}",
            "it must be a DataFrame of Spark that is grouped as the stream is",
            'give one, as in spark.read.table("t").groupBy("key")',
        )
    frame: DataFrame = grouped._df  # noqa: SLF001 - PySpark has no other name for it
    *keys, _ = grouped.count().columns
    schema = to_arrow_schema(frame.schema)
    wanted = [head.input.field(name) for name in head.keys]
    if any(key not in schema.names for key in keys) or (
        _types(schema.field(key) for key in keys) != _types(wanted)
    ):
        raise JobRejected(
            f"operator {uid!r}: the stream and its initialState are grouped differently",
            f"the stream is grouped by ({_listed(wanted)}) and its initialState by "
            f"({', '.join(keys)}) of a DataFrame with ({_listed(schema)})",
            "group both by plain columns of the same types, in the same order",
        )
    return InitialState(uid, max_parallelism, frame, tuple(keys), head.keys)


def _rows_of(frame: DataFrame) -> pa.Schema:
    """As the files have them, in which any column may be null."""
    fields = to_arrow_schema(frame.schema)
    return pa.schema([field.with_nullable(nullable=True) for field in fields])


def _written(one: InitialState, location: str) -> str:
    columns = one.frame.columns
    frame = one.frame.select(
        *(one.frame[_quoted(key)].alias(f"{KEY}_{at}") for at, key in enumerate(one.keys)),
        F.monotonically_increasing_id().alias(ORDER),
        *(one.frame[_quoted(name)].alias(f"{VALUE}_{at}") for at, name in enumerate(columns)),
    )
    names = {
        **{f"{KEY}_{at}": name for at, name in enumerate(one.names)},
        ORDER: ORDINAL.name,
        **{f"{VALUE}_{at}": f"value.{name}" for at, name in enumerate(columns)},
    }
    keys = tuple(f"{KEY}_{at}" for at in range(len(one.keys)))
    state = BootstrappedState(one.uid, INITIAL_ROWS, frame, keys, names, LIST)
    savepoint = Savepoint.new(one.max_parallelism).withState(state)
    return savepoint.write(f"{location}/{quote(one.uid, safe='')}")


def _place(directory: str) -> str:
    if is_memory(directory):
        directory = f"file://{Path(tempfile.gettempdir())}"
    return f"{directory.rstrip('/')}/initial-state/{uuid4().hex}"


def _types(fields: Iterable[pa.Field]) -> list[str]:
    return [written(nullable_inside(field.type)) for field in fields]


def _listed(fields: Sequence[pa.Field] | pa.Schema) -> str:
    return ", ".join(f"{field.name} {written(field.type)}" for field in fields)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
