"""A table of aggregates has the results of SQL, and a capture of it is one moment."""

import math
import re
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.dataflow.aggregations import AGGREGATIONS
from weir.dataflow.physical import Aggregate
from weir.dataflow.types import written
from weir.errors import JobRejected
from weir.state.memory.aggregate_table import AggregateTable

SCHEMA = pa.schema([("k", pa.int64()), ("n", pa.int32()), ("x", pa.float64())])
NUMBERS = ("n", "x")


def aggregate(function, column=""):
    return Aggregate(function, column, f"{function}_{column}")


EVERYTHING = [
    aggregate("count"),
    *(aggregate(function, column) for column in NUMBERS for function in AGGREGATIONS),
]


def a_table(*aggregates, schema=SCHEMA, keys=("k",)):
    return AggregateTable(keys, aggregates, schema)


def a_batch(rows, schema=SCHEMA):
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(schema.types)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def content(table):
    keys, *values = (column.to_pylist() for column in table.rows(np.arange(table.size)))
    return dict(zip(keys, zip(*values, strict=True), strict=True))


def captured_sums(captured):
    columns = captured.read().to_pydict()
    return dict(zip(columns["k"], columns["sum(n)"], strict=True))


reals = st.floats(-1e6, 1e6, width=32)
rows = st.lists(
    st.tuples(st.integers(-2, 2), st.none() | st.integers(-(2**31), 2**31 - 1), st.none() | reals),
    max_size=30,
)


@given(st.lists(rows, max_size=4))
def test_aggregates_are_those_of_a_group_by(batches):
    """D3: null-aware as SQL is."""
    table = a_table(*EVERYTHING)
    for batch in batches:
        table.update(a_batch(batch))

    frame = pd.DataFrame([row for batch in batches for row in batch], columns=["k", "n", "x"])
    groups = frame.astype({"n": "Int64", "x": "Float64"}).groupby("k")
    found = content(table)
    assert set(found) == set(groups.groups)
    for key, (count, *values) in found.items():
        group = groups.get_group(key)
        assert count == len(group)
        for column, found_there in (("n", values[:5]), ("x", values[5:])):
            check_column(group[column].dropna(), found_there)


def check_column(present, found):
    total, count, least, greatest, mean = found
    assert count == len(present)
    if count == 0:
        assert (total, least, greatest, mean) == (None,) * 4
        return
    assert total == pytest.approx(present.sum(), rel=1e-9, abs=1e-6)
    assert (least, greatest) == (present.min(), present.max())
    assert mean == pytest.approx(present.mean(), rel=1e-9, abs=1e-6)


def test_sums_of_integers_are_exact():
    """D3: 2**53 + 1 is no double."""
    schema = pa.schema([("k", pa.int64()), ("n", pa.int64())])
    table = a_table(aggregate("sum", "n"), schema=schema)

    table.update(a_batch([(1, 2**53), (1, 1)], schema))
    table.update(a_batch([(1, 2**60)], schema))

    assert content(table) == {1: (2**60 + 2**53 + 1,)}


def test_a_mean_of_large_integers_does_not_overflow():
    schema = pa.schema([("k", pa.int64()), ("n", pa.int64())])
    table = a_table(aggregate("avg", "n"), schema=schema)

    table.update(a_batch([(1, 2**62)] * 4, schema))

    assert content(table) == {1: (2.0**62,)}


def test_nan_is_a_value_greater_than_all_others():
    """As in Spark, where it is no null."""
    table = a_table(aggregate("min", "x"), aggregate("max", "x"), aggregate("count", "x"))

    table.update(a_batch([(1, 0, math.nan), (1, 0, 2.0), (2, 0, math.nan)]))

    found = content(table)
    assert found[1][0] == 2.0
    assert math.isnan(found[1][1])
    assert found[1][2] == 2
    assert all(math.isnan(value) for value in found[2][:2])


def test_least_and_greatest_keep_their_type():
    schema = pa.schema([("k", pa.string()), ("d", pa.date32()), ("t", pa.timestamp("us", "UTC"))])
    columns = ("d", "t")
    table = a_table(*(aggregate(f, c) for c in columns for f in ("min", "max")), schema=schema)
    days = [date(2024, 2, 29), date(1950, 1, 1), None]
    times = [datetime(2024, 1, 1, tzinfo=UTC), None, datetime(1960, 1, 1, tzinfo=UTC)]

    table.update(a_batch([("a", d, t) for d, t in zip(days, times, strict=True)], schema))

    assert content(table) == {"a": (days[1], days[0], times[2], times[0])}
    kinds = [column.type for column in table.rows(np.arange(1))]
    assert kinds == [pa.string(), pa.date32(), pa.date32(), schema.types[2], schema.types[2]]


@pytest.mark.parametrize(
    ("function", "kind"),
    [("sum", pa.string()), ("avg", pa.date32()), ("min", pa.string()), ("max", pa.bool_())],
)
def test_what_cannot_be_aggregated_is_refused(function, kind):
    """U3: with function, column and type."""
    with pytest.raises(JobRejected, match=re.escape(f"'v' is a {written(kind)}, and {function} ")):
        a_table(aggregate(function, "v"), schema=pa.schema([("k", pa.int64()), ("v", kind)]))


def test_an_aggregate_of_a_column_that_is_not_there_is_refused():
    with pytest.raises(JobRejected, match=r"needs column 'y'.*k, n, x"):
        a_table(aggregate("sum", "y"))


def test_anything_can_be_counted():
    schema = pa.schema([("k", pa.int64()), ("tags", pa.list_(pa.string()))])
    table = a_table(aggregate("count", "tags"), schema=schema)

    table.update(a_batch([(1, ["a"]), (1, None), (2, None)], schema))

    assert content(table) == {1: (1,), 2: (0,)}


def test_captures_are_the_table_at_their_moment_while_it_goes_on():
    """S3: two alive at once, each with its own keys and values."""
    table = a_table(aggregate("sum", "n"))
    table.update(a_batch([(1, 10, None), (2, 20, None)]))
    first = table.capture()
    table.update(a_batch([(1, 1, None), (3, 30, None)]))
    second = table.capture()
    table.update(a_batch([(key, 1000, None) for key in range(20_000)]))

    assert captured_sums(second) == {1: 11, 2: 20, 3: 30}
    assert captured_sums(first) == {1: 10, 2: 20}


def test_a_capture_names_what_it_holds():
    """S9: a reader of the file can tell; what has no value is null there too."""
    table = a_table(aggregate("avg", "n"), aggregate("min", "x"), aggregate("count"))
    table.update(a_batch([(1, 5, None)]))

    assert table.capture().read().to_pydict() == {
        "k": [1],
        "float_sum(n)": [5.0],
        "count(n)": [1],
        "min(x)": [None],
        "count(x)": [0],
        "count(*)": [1],
    }


@given(rows, rows)
def test_a_loaded_capture_goes_on_as_if_nothing_had_happened(before, after):
    """S10: values, nulls and counts alike."""
    original, restored = a_table(*EVERYTHING), a_table(*EVERYTHING)
    original.update(a_batch(before))

    restored.load(original.capture().read())
    for table in (original, restored):
        table.update(a_batch(after))

    assert content(restored) == content(original)


def captured(schema, *aggregates):
    table = a_table(*aggregates, schema=schema)
    table.update(a_batch([(1, 2, 3)], schema))
    return table.capture().read()


def test_a_number_may_be_widened():
    """S12: widen a number."""
    wide = pa.schema([("k", pa.int64()), ("n", pa.int64()), ("x", pa.float64())])
    table = a_table(aggregate("max", "n"), schema=wide)

    table.load(captured(SCHEMA, aggregate("max", "n"), aggregate("sum", "x")))

    assert content(table) == {1: (2,)}


@pytest.mark.parametrize(
    ("now", "message"),
    [
        (pa.schema([("k", pa.int64()), ("n", pa.int8())]), r"max\(n\) is of type int32.*int8"),
        (pa.schema([("k", pa.string()), ("n", pa.int32())]), r"k int64.*k string"),
    ],
)
def test_other_changes_of_types_are_refused_with_the_difference(now, message):
    """S12: anything else is refused."""
    with pytest.raises(JobRejected, match=message):
        a_table(aggregate("max", "n"), schema=now).load(captured(SCHEMA, aggregate("max", "n")))


def test_an_aggregate_that_the_state_does_not_have_is_refused():
    """S12: it would be wrong for all rows that went by."""
    with pytest.raises(JobRejected, match=r"needs min\(n\).*only max\(n\), count\(n\)"):
        a_table(aggregate("min", "n")).load(captured(SCHEMA, aggregate("max", "n")))
