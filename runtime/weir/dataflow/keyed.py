"""What is made of rows that share a key: aggregations and processors, with their result types.

An aggregation here is a description whose types are those that Spark would give; the running sums
themselves are kept by the state of a slot.
"""

from collections.abc import Sequence

import pyarrow as pa
from pyarrow import types as kinds

from weir.dataflow.coercion import is_number
from weir.dataflow.physical import Aggregate, AggregateHead, Function, ProcessorHead, RowsAs
from weir.dataflow.types import LONGEST_DECIMAL, written
from weir.errors import JobRejected

TIME_MODES = ("None", "ProcessingTime", "EventTime")
PROCESSOR_MODES = ("Append", "Update")
_SUM_ROOM, _AVERAGE_ROOM = 10, 4
"""The digits that Spark adds to a decimal when it sums or averages."""


def aggregate_head(
    keys: tuple[str, ...], aggregates: Sequence[Aggregate], rows: pa.Schema
) -> AggregateHead:
    """The keys, then one column for each aggregate; no name twice."""
    names = [*keys, *(aggregate.alias for aggregate in aggregates)]
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise JobRejected(f"agg: two columns are called {twice!r}; give one of them an alias")
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
        raise JobRejected(
            f"transformWithState: {processor!r} is no StatefulProcessor"
            f"{' but a class; make an object of it' if isinstance(processor, type) else ''}"
        )
    return ProcessorHead(keys, processor, rows_as, rows, output)


def check_initial_state(given: object) -> None:
    """A grouped DataFrame is known by its methods, so PySpark need not be here."""
    if given is not None and not (hasattr(given, "applyInPandas") and hasattr(given, "agg")):
        raise JobRejected(
            f"transformWithState: initialState is a {type(given).__name__}; give a DataFrame of"
            ' Spark, grouped as the stream is: spark.read.table("t").groupBy("key")'
        )


def check_event_time_column(name: str, output: pa.Schema) -> None:
    """Watermarks pass a processor as they are, so the column need only be there."""
    if not name:
        return
    if name not in output.names or not kinds.is_timestamp(output.field(name).type):
        raise JobRejected(
            f"transformWithState: the output has no timestamp {name!r} to tell the event time by;"
            f" choose one of its columns ({', '.join(output.names)})"
        )


def spelled(given: object, known: Sequence[str], what: str) -> str:
    """The canonical spelling of a mode, whatever the case it is written in."""
    for word in known:
        if str(given).lower() == word.lower():
            return word
    raise JobRejected(f"{what} {given!r} is not supported; use one of {', '.join(known)}")


def key_type_is_fit(kind: pa.DataType) -> bool:
    """A key must be comparable byte for byte."""
    return not kinds.is_nested(kind) and not kinds.is_null(kind)


def _result(aggregate: Aggregate, rows: pa.Schema) -> pa.DataType:
    if aggregate.function is Function.COUNT:
        return pa.int64()
    kind = rows.field(aggregate.column).type
    if aggregate.function in {Function.MIN, Function.MAX}:
        return _ordered(aggregate, kind)
    if not is_number(kind):
        raise JobRejected(
            f"{aggregate.function}({aggregate.column}): a {written(kind)} is no number; cast it"
        )
    if kinds.is_decimal(kind):
        return _decimal_result(aggregate.function, kind)
    is_whole_sum = aggregate.function is Function.SUM and kinds.is_integer(kind)
    return pa.int64() if is_whole_sum else pa.float64()


def _ordered(aggregate: Aggregate, kind: pa.DataType) -> pa.DataType:
    if kinds.is_nested(kind):
        raise JobRejected(
            f"{aggregate.function}({aggregate.column}): a {written(kind)} has no order; "
            "take a field of it"
        )
    return kind


def _decimal_result(function: Function, kind: pa.DataType) -> pa.DataType:
    if function is Function.SUM:
        return pa.decimal128(min(kind.precision + _SUM_ROOM, LONGEST_DECIMAL), kind.scale)
    scale = min(kind.scale + _AVERAGE_ROOM, LONGEST_DECIMAL)
    return pa.decimal128(min(kind.precision + _AVERAGE_ROOM, LONGEST_DECIMAL), scale)
