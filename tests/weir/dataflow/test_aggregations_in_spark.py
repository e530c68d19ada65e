"""Aggregates and their keys are those of Spark, value by value and in type."""

import math
from datetime import date

import pyarrow as pa
import pytest

from edge_case_rows import rows
from random_seed import SEED, dice
from weir.core.ids import EdgeId, Millis, OperatorId, SubtaskId
from weir.dataflow.aggregations import AGGREGATIONS
from weir.dataflow.keyed import aggregate_head, check_keys
from weir.dataflow.physical import Aggregate
from weir.errors import JobRejected
from weir.ports.operators import TaskInfo
from weir.slot.aggregate import AggregateOperator
from weir.state.memory.memory_backend import MemoryBackend

RANDOM_ROWS = 150
ROWS_OF_A_KEY = 4
KEY = "key"


@pytest.fixture(scope="module")
def batch():
    """Rows of every type; the values of one key come one after another."""
    made = rows(dice("aggregations"), RANDOM_ROWS)
    keys = pa.array([row // ROWS_OF_A_KEY for row in range(made.num_rows)], pa.int32())
    return pa.record_batch([keys, *made.columns], names=[KEY, *made.schema.names])


@pytest.fixture(scope="module")
def frame(session, batch):
    """The same rows in Spark, in one partition, so that doubles are added in the same order."""
    own = session.spark.newSession()
    own.conf.set("spark.sql.session.timeZone", "UTC")
    own.conf.set("spark.sql.ansi.enabled", "false")
    made = own.createDataFrame(pa.Table.from_batches([batch])).coalesce(1)
    # Of a time without zone createDataFrame makes a timestamp.
    return made.withColumn("n", made.n.cast("timestamp_ntz"))


def is_refused(attempt, *arguments):
    try:
        attempt(*arguments)
    except JobRejected:
        return True
    return False


def of_weir(batch, keys, aggregates):
    head = aggregate_head(keys, aggregates, batch.schema)
    place = TaskInfo(SubtaskId(OperatorId("totals"), 0), 1, 16, 1, 1, lambda: Millis(0))
    operator = AggregateOperator(head, place, MemoryBackend)
    half = batch.num_rows // 2
    for part in (batch.slice(0, half), batch.slice(half)):
        list(operator.process(EdgeId("in"), part))
    return pa.Table.from_batches(operator.flush(), schema=head.output)


def of_spark(frame, key, aggregates):
    asked = [f"{one.function}({one.column or 1}) AS {one.alias}" for one in aggregates]
    frame.createOrReplaceTempView("samples")
    query = f"SELECT {key}, {', '.join(asked)} FROM samples GROUP BY {key}"  # noqa: S608 - no input
    return frame.sparkSession.sql(query).toArrow()


def by_key(table):
    columns = [comparable(column.combine_chunks()) for column in table.columns]
    return {row[0]: row[1:] for row in zip(*columns, strict=True)}


def comparable(column):
    """Python cannot hold every timestamp and every date, and no NaN equals another."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    values = column.to_pylist()
    return ["NaN" if isinstance(one, float) and math.isnan(one) else one for one in values]


def test_aggregates_are_those_of_spark(batch, frame):
    """D7: of every type that an entry accepts; doubles are added in the order of their rows."""
    every = [
        Aggregate(function, field.name, f"{function}_{field.name}")
        for function in AGGREGATIONS
        for field in batch.schema
    ]
    accepted = [one for one in every if not is_refused(aggregate_head, (KEY,), [one], batch.schema)]
    assert {one.function for one in accepted} == set(AGGREGATIONS)

    ours, theirs = of_weir(batch, (KEY,), accepted), of_spark(frame, KEY, accepted)

    assert ours.schema.types == theirs.schema.types
    for one in accepted:
        columns = [KEY, one.alias]
        assert by_key(ours.select(columns)) == by_key(theirs.select(columns)), (one, SEED)


def test_keys_are_those_of_spark(batch, frame):
    """D7: null is a key, NaN is one, and both zeros are the same."""
    keys = [
        name
        for name in batch.schema.names
        if not is_refused(check_keys, "groupBy", (name,), batch.schema)
    ]
    assert {"t", "l", "d", "s", "b", "x", "da", "ts"} <= set(keys)
    counted = [Aggregate("count", "", "times")]

    for key in keys:
        ours, theirs = of_weir(batch, (key,), counted), of_spark(frame, key, counted)
        assert ours.schema.types == theirs.schema.types
        assert by_key(ours) == by_key(theirs), f"keys {key}, seed {SEED}"


STRUCT = pa.struct(
    [
        ("i", pa.int32()),
        ("in", pa.struct([("s", pa.string()), ("d", pa.float64()), ("at", pa.date32())])),
    ]
)


def random_structs(chance, count):
    """Few values and many nulls of every depth, so that keys repeat."""

    def or_null(value):
        return None if chance.random() < 0.2 else value

    doubles = (0.0, -0.0, math.nan, -math.nan, 1.5)
    return [
        or_null(
            (
                or_null(chance.randrange(2)),
                or_null(
                    (
                        or_null(chance.choice(("", "x"))),
                        or_null(chance.choice(doubles)),
                        or_null(date(2026, 1, chance.randint(1, 2))),
                    )
                ),
            )
        )
        for _ in range(count)
    ]


def by_struct(table):
    """By what Python prints of the key, in which all NaNs are alike and the two zeros are not."""
    found = {repr(tuple(row.values())[:-2]): tuple(row.values())[-2:] for row in table.to_pylist()}
    assert len(found) == table.num_rows, "each key is there once"
    return found


@pytest.mark.parametrize("keys", [("k",), ("b", "k")])
def test_struct_keys_are_those_of_spark(frame, keys):
    """D7: a null struct is a key and a struct of nulls another, NaN is one, both zeros are one."""
    chance = dice("struct keys in spark")
    count = 600
    columns = {
        "k": pa.array(random_structs(chance, count), STRUCT),
        "b": pa.array([chance.choice((None, True, False)) for _ in range(count)]),
        "n": pa.array([chance.choice((None, 1, 2, 3)) for _ in range(count)], pa.int64()),
    }
    batch = pa.record_batch(columns)
    check_keys("groupBy", keys, batch.schema)
    aggregates = [Aggregate("sum", "n", "total"), Aggregate("count", "", "rows")]

    ours = of_weir(batch, keys, aggregates)
    own = frame.sparkSession.createDataFrame(pa.Table.from_batches([batch]))
    theirs = of_spark(own, ", ".join(keys), aggregates)

    assert ours.schema.types == theirs.schema.types
    assert by_struct(ours) == by_struct(theirs), f"seed {SEED}"
    assert 50 < ours.num_rows < count, "keys repeat"
