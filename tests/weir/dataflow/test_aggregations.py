"""The table of aggregations holds for every entry and type: accepted and run, or refused."""

import numpy as np
import pyarrow as pa
import pytest

from arrow_types import ARROW_TYPES
from described_streams import events
from weir.core.ids import EdgeId, Millis, OperatorId, SubtaskId
from weir.dataflow import functions
from weir.dataflow.aggregations import AGGREGATIONS, COUNT_OF_VALUES, aggregation
from weir.dataflow.logical import Keyed
from weir.dataflow.stream import Grouped
from weir.dataflow.types import written
from weir.errors import JobRejected
from weir.ports.operators import TaskInfo
from weir.slot.aggregate import AggregateOperator
from weir.state.memory.memory_backend import MemoryBackend

COLUMN = "amount"

of_every_type = pytest.mark.parametrize("kind", ARROW_TYPES, ids=str)
of_every_entry = pytest.mark.parametrize("entry", AGGREGATIONS.values(), ids=lambda one: one.name)

VALUES = {
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32(), pa.int64()), (7, -2, None, 5)),
    **dict.fromkeys((pa.float32(), pa.float64()), (7.5, -2.25, None, 5.0)),
    **{kind: (70, -20, None, 50) for kind in ARROW_TYPES if pa.types.is_timestamp(kind)},
    pa.date32(): (7, -2, None, 5),
}
"""Four of each type that can be added or compared; those of times are counted from the epoch."""

EXPECTED = {
    pa.types.is_integer: {"sum": 10, "avg": 10 / 3, "min": -2, "max": 7},
    pa.types.is_floating: {"sum": 10.25, "avg": 10.25 / 3, "min": -2.25, "max": 7.5},
    pa.types.is_date32: {"min": -2, "max": 7},
    pa.types.is_timestamp: {"min": -20, "max": 70},
}

SPARK_TYPES = {
    "sum": lambda kind: pa.int64() if pa.types.is_integer(kind) else pa.float64(),
    "avg": lambda _: pa.float64(),
    "count": lambda _: pa.int64(),
    "min": lambda kind: kind,
    "max": lambda kind: kind,
}


def described(rows, name, keys=("k",)):
    return events(rows).groupBy(*keys).agg({COLUMN: name})


def in_a_slot(stream, batch):
    """The columns that a slot makes of one batch."""
    assert isinstance(stream.node, Keyed)
    place = TaskInfo(SubtaskId(OperatorId("totals"), 0), 1, 16, 1, 1, lambda: Millis(0))
    operator = AggregateOperator(stream.node.head, place, MemoryBackend)
    list(operator.process(EdgeId("in"), batch))
    return pa.Table.from_batches(operator.flush(), schema=stream.schema)


def refusal(attempt, *arguments):
    try:
        attempt(*arguments)
    except JobRejected as refused:
        return str(refused)
    return ""


def values_of(kind):
    """Three values and a null; of a type that can only be counted, four nulls."""
    values = VALUES.get(kind, (None,) * 4)
    number = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    is_time = pa.types.is_date32(kind) or pa.types.is_timestamp(kind)
    return pa.array(values, number).cast(kind) if is_time else pa.array(values, kind)


def expected(kind, name):
    if name == "count":
        return 3 if kind in VALUES else 0
    (found,) = (results for is_kind, results in EXPECTED.items() if is_kind(kind))
    return found[name]


@of_every_entry
@of_every_type
def test_what_is_accepted_when_described_runs_in_a_slot(kind, entry):
    """U3, D7: with Spark's value and type; everything else is refused, with both names."""
    rows = pa.schema([("k", pa.int64()), (COLUMN, kind)])
    if refused := refusal(described, rows, entry.name):
        assert refused.startswith(
            f"{entry.name}({COLUMN}) cannot be computed: column {COLUMN!r} is a {written(kind)}"
        )
        assert kind not in VALUES or entry.name not in expected_names(kind)
        return
    stream = described(rows, entry.name)
    batch = pa.record_batch([pa.array([1] * 4), values_of(kind)], schema=rows)

    result = in_a_slot(stream, batch).column(1).combine_chunks()

    assert result.type == stream.schema.types[1] == SPARK_TYPES[entry.name](kind)
    wanted = pa.scalar(expected(kind, entry.name))
    assert numbers(result) == [wanted.as_py()]


def expected_names(kind):
    return {name for is_kind, results in EXPECTED.items() if is_kind(kind) for name in results}


def numbers(column):
    if pa.types.is_date32(column.type):
        return column.cast(pa.int32()).to_pylist()
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64()).to_pylist()
    return column.to_pylist()


@of_every_entry
@of_every_type
def test_the_aggregate_of_no_value_is_null_and_a_count_is_zero(kind, entry):
    """D7: as in SQL, for every entry and type."""
    rows = pa.schema([("k", pa.int64()), (COLUMN, kind)])
    if refusal(described, rows, entry.name):
        return
    nulls = pa.nulls(1, kind)

    result = in_a_slot(described(rows, entry.name), pa.record_batch([[1], nulls], schema=rows))

    assert result.column(1).to_pylist() == [0 if entry.name == "count" else None]


@of_every_type
def test_a_key_is_refused_when_described_if_a_slot_would_refuse_it(kind):
    """U3: what cannot run is refused at once, with the column, and what can is run."""
    rows = pa.schema([("k", kind), (COLUMN, pa.int64())])
    if refused := refusal(described, rows, "count"):
        assert refused.startswith("groupBy: column 'k' cannot be a key: it is a ")
        assert pa.types.is_nested(kind) or kind not in {pa.int64(), pa.string(), pa.date32()}
        return

    batch = pa.record_batch([pa.nulls(2, kind), pa.array([1, 2])], schema=rows)
    result = in_a_slot(described(rows, "count"), batch)

    assert result.column(0).type == kind
    assert [column.to_pylist() for column in result.columns] == [[None], [2]]


@of_every_entry
@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_two_accumulators_merge_into_that_of_all_values(kind, entry):
    """D7: so rows may be aggregated in any two parts."""
    values = np.array([value for value in VALUES[kind] if value is not None])
    for reduction, number in (*entry.keeps(kind), (COUNT_OF_VALUES, pa.int64())):
        dtype = np.dtype("f8" if pa.types.is_floating(number) else "i8")
        parts = [folded(reduction, dtype, part) for part in (values, values[:1], values[1:], [])]
        whole, first, second, none = parts

        assert reduction.merge(first, second) == whole
        assert reduction.merge(whole, none) == whole


def folded(reduction, dtype, values):
    accumulators = np.full(1, reduction.initial(dtype), dtype)
    rows = np.zeros(len(values), np.int64)
    reduction.fold(accumulators, rows, np.asarray(values))
    return accumulators


@of_every_entry
def test_an_entry_has_its_functions(entry):
    """D3: under PySpark's names."""
    assert getattr(functions, entry.name)(COLUMN).function == entry.name
    assert callable(getattr(Grouped, entry.name))
    assert aggregation(entry.name.upper()) is entry


def test_mean_is_another_name_of_avg():
    """D3: as in PySpark."""
    assert aggregation("mean") is AGGREGATIONS["avg"]


def test_an_unknown_name_is_refused_with_those_that_there_are():
    """U3."""
    known = r"'summ': there are sum, count, min, max, avg. Remedy: did you mean 'sum'\?"
    with pytest.raises(JobRejected, match=known):
        aggregation("summ")
