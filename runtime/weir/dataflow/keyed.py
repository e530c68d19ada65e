"""What is made of rows that share a key: aggregations and processors, with their result types.

An aggregation here is a description whose types are those that Spark would give; the running sums
themselves are kept by the state of a slot.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyarrow import types as kinds

from weir.dataflow.aggregations import AGGREGATIONS, NO_COLUMN
from weir.dataflow.physical import Aggregate, AggregateHead, ProcessorHead, RowsAs
from weir.dataflow.types import TIMESTAMP, written
from weir.errors import JobRejected

TIME_MODES = ("None", "ProcessingTime", "EventTime")
PROCESSOR_MODES = ("Append", "Update")

_KEY_TYPES = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float64(), pa.bool_()),
    *(pa.string(), pa.binary(), pa.date32()),
)
"""What a slot can hash and keep as a key, with timestamps of every unit and structs of these."""
_LARGE_KEY_TYPES = (pa.large_string(), pa.large_binary())
"""The same for Spark; Arrow's strings that have no limit."""


def aggregate_head(
    keys: tuple[str, ...], aggregates: Sequence[Aggregate], rows: pa.Schema
) -> AggregateHead:
    """The keys, then one column for each aggregate; no name twice."""
    names = [*keys, *(aggregate.alias for aggregate in aggregates)]
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise JobRejected(
            f"agg: two columns are called {twice!r}",
            "the result would have two columns of one name",
            "give one of them an alias",
        )
    output = pa.schema(
        [
            *(rows.field(key) for key in keys),
            *(pa.field(one.alias, _result(one, rows)) for one in aggregates),
        ]
    )
    return AggregateHead(keys, tuple(aggregates), rows, output)


def processor_head(
    keys: tuple[str, ...], processor: object, rows_as: RowsAs, rows: pa.Schema, output: pa.Schema
) -> ProcessorHead:
    """A processor is known by its methods, so PySpark need not be here."""
    missing = [name for name in ("init", "handleInputRows") if not hasattr(processor, name)]
    if missing or isinstance(processor, type):
        is_class = isinstance(processor, type)
        raise JobRejected(
            f"transformWithState: {processor!r} is no StatefulProcessor",
            "it is a class" if is_class else f"it is a {type(processor).__name__}",
            "make an object of it" if is_class else "give an object of a StatefulProcessor class",
        )
    return ProcessorHead(keys, processor, rows_as, rows, output)


def check_initial_state(given: object) -> None:
    """A grouped DataFrame is known by its methods, so PySpark need not be here."""
    if given is not None and not (hasattr(given, "applyInPandas") and hasattr(given, "agg")):
        raise JobRejected(
            f"transformWithState: initialState is a {type(given).__name__}",
            "it must be a DataFrame of Spark, grouped as the stream is",
            'give one, as in spark.read.table("t").groupBy("key")',
        )


def check_event_time_column(name: str, output: pa.Schema) -> None:
    """Watermarks pass a processor as they are, so the column need only be there."""
    if not name:
        return
    if name not in output.names or not kinds.is_timestamp(output.field(name).type):
        raise JobRejected(
            f"transformWithState: the output has no timestamp {name!r}",
            "the event time of the output is read from this column",
            f"choose one of its columns: {', '.join(output.names)}",
        )


def spelled(given: object, known: Sequence[str], what: str) -> str:
    """The canonical spelling of a mode, whatever the case it is written in."""
    for word in known:
        if str(given).lower() == word.lower():
            return word
    raise JobRejected(
        f"{what} {given!r} is not supported",
        f"Weir knows {', '.join(known)}",
        "use one of these",
    )


def check_keys(method: str, keys: Sequence[str], rows: pa.Schema) -> None:
    """Refuse a key that a slot could not hash, before any row of it is read."""
    for key in keys:
        for name, kind in _flat(key, rows.field(key).type):
            if kinds.is_timestamp(kind) or kind in {*_KEY_TYPES, *_LARGE_KEY_TYPES}:
                continue
            what = "it" if name == key else f"its field {name!r}"
            raise JobRejected(
                f"{method}: column {key!r} cannot be a key",
                f"{what} is a {written(kind)}, and keys are {_listed(*_KEY_TYPES, TIMESTAMP)}, "
                "and structs of these",
                "cast it first, or take a field of it",
            )


def _flat(name: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """The column, or the fields of a struct with their paths, however deep."""
    if not kinds.is_struct(kind) or not kind.num_fields:
        yield name, kind
        return
    for field in kind:
        yield from _flat(f"{name}.{field.name}", field.type)


def _result(aggregate: Aggregate, rows: pa.Schema) -> pa.DataType:
    entry = AGGREGATIONS[aggregate.function]
    kind = rows.field(aggregate.column).type if aggregate.column else NO_COLUMN
    entry.check(aggregate.column, kind)
    return entry.result_type(kind)


def _listed(*several: pa.DataType) -> str:
    return ", ".join(map(written, several))
