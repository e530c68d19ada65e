"""Streams are described with PySpark's names, and wrong descriptions are refused at once."""

import pyarrow as pa
import pytest

from described_streams import EVENTS, events
from weir.core.topology import EdgeKind
from weir.dataflow import functions as F  # noqa: N812
from weir.dataflow.logical import Exchange, Keyed
from weir.dataflow.physical import Aggregate, ProcessorHead, RowsAs
from weir.dataflow.types import schema_of
from weir.errors import JobRejected


class Counting:
    """Shaped like a ``StatefulProcessor``."""

    def init(self, handle):
        self.handle = handle

    def handleInputRows(self, key, rows, timerValues):  # noqa: N802, N803
        yield key, rows, timerValues


def test_a_stream_knows_its_columns():
    assert events().schema.equals(schema_of(EVENTS))
    assert events().columns == ["user", "value", "price", "ts"]


def test_methods_return_new_streams_and_leave_the_old_ones_alone():
    stream = events()

    stream.filter("value > 3").drop("user").uid("x")

    assert stream.columns == ["user", "value", "price", "ts"]


@pytest.mark.parametrize(
    ("made", "schema"),
    [
        (lambda s: s.select("user", F.col("value") + 1), "user string, `(value + 1)` bigint"),
        (lambda s: s.select("*", F.lit(1).alias("one")), f"{EVENTS}, one int"),
        (lambda s: s.selectExpr("value / 2 AS half", "USER"), "half double, user string"),
        (
            lambda s: s.withColumn("value", F.col("value") > 1),
            EVENTS.replace("value long", "value boolean"),
        ),
        (lambda s: s.withColumn("n", F.expr("length(user)")), f"{EVENTS}, n int"),
        (lambda s: s.drop("ts", "price", "nothing"), "user string, value long"),
        (lambda s: s.where(F.col("value") > 1), EVENTS),
        (lambda s: s.union(s.selectExpr("user AS u", "value", "price", "ts")), EVENTS),
        (lambda s: s.mapInArrow(iter, "a long, b string"), "a long, b string"),
        (lambda s: s.mapInPandas(iter, pa.schema([("a", pa.int8())])), "a tinyint"),
        (lambda s: s.groupBy("user").count(), "user string, count long"),
        (
            lambda s: s.groupBy("user").sum("value", "price"),
            "user string, `sum(value)` long, `sum(price)` double",
        ),
        (lambda s: s.groupBy("USER").avg("value"), "user string, `avg(value)` double"),
        (lambda s: s.groupBy("user").min("ts"), "user string, `min(ts)` timestamp"),
        (lambda s: s.groupBy("user").max("price"), "user string, `max(price)` double"),
        (
            lambda s: s.groupBy("user").agg({"value": "SUM", "*": "count"}),
            "user string, `sum(value)` long, `count(1)` long",
        ),
        (
            lambda s: s.groupBy("user").agg(F.sum(F.expr("value * 0.5D")).alias("h")),
            "user string, h double",
        ),
        (lambda s: s.groupBy(F.col("value") % 10).count(), "`(value % 10)` long, count long"),
        (lambda s: s.groupBy((F.col("value") % 10).alias("k")).count(), "k long, count long"),
        (lambda s: s.groupBy("user").transformWithState(Counting(), "n long"), "n long"),
    ],
)
def test_every_method_has_the_columns_and_types_that_spark_would_give(made, schema):
    """D2."""
    assert made(events()).schema.equals(schema_of(schema))


def test_an_aggregation_is_described_by_its_keys_and_functions():
    node = events().groupBy("user").agg(F.sum("value").alias("total"), F.count("*").alias("n")).node

    assert isinstance(node, Keyed)
    assert node.head.keys == ("user",)
    assert node.head.aggregates == (
        Aggregate("sum", "value", "total"),
        Aggregate("count", "", "n"),
    )


def test_an_expression_is_computed_once_for_several_aggregations():
    twice = F.col("value") * 2

    node = events().groupBy("user").agg(F.min(twice), F.max(twice)).node

    assert node.head.input.names == ["user", "value", "price", "ts", "(value * 2)"]


@pytest.mark.parametrize(
    ("method", "rows_as"),
    [("transformWithState", RowsAs.ROWS), ("transformWithStateInPandas", RowsAs.PANDAS)],
)
def test_a_stateful_processor_is_taken_as_it_is(method, rows_as):
    """D1."""
    processor = Counting()
    grouped = events().withWatermark("ts", "1 minute").groupBy("user")

    node = getattr(grouped, method)(processor, "n long", "append", "eventtime").node

    assert node.head == ProcessorHead(
        ("user",), processor, rows_as, schema_of(EVENTS), schema_of("n long"), "EventTime", "ts"
    )


@pytest.mark.parametrize(
    ("made", "column"),
    [
        (lambda s: s, "ts"),
        (lambda s: s.select("user", F.col("ts").alias("at")), "at"),
        (lambda s: s.filter("value > 3").repartition(2), "ts"),
        (lambda s: s.select("user", "value"), ""),
        (lambda s: s.withColumn("ts", F.expr("coalesce(ts, ts)")), ""),
        (lambda s: s.union(s), "ts"),
        (lambda s: s.union(events()), ""),
        (lambda s: s.groupBy("user", "ts").count(), ""),
    ],
    ids=["as it is", "renamed", "passed on", "gone", "computed", "union", "mixed", "aggregated"],
)
def test_a_processor_knows_the_column_that_watermarks_are_made_of(made, column):
    """D4: a row is late by this column."""
    grouped = made(events().withWatermark("ts", "1 minute")).groupBy("user")

    processed = grouped.transformWithState(Counting(), "n long", timeMode="EventTime")

    assert processed.node.head.event_time == column


def test_repartition_takes_a_number_or_columns_or_both():
    def asked(*arguments):
        node = events().repartition(*arguments).node
        assert isinstance(node, Exchange)
        return node.kind, node.keys, node.parallelism

    assert asked(4) == (EdgeKind.REBALANCE, (), 4)
    assert asked("user") == (EdgeKind.HASH, ("user",), 0)
    assert asked(4, "user", "value") == (EdgeKind.HASH, ("user", "value"), 4)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (
            lambda s: s.filter("valu > 3"),
            "there is no column 'valu'. Remedy: did you mean 'value'?",
        ),
        (lambda s: s.filter("value"), "not a boolean: it is a bigint. Remedy: compare it"),
        (lambda s: s.select("vlaue"), "there is no column 'vlaue'. Remedy: did you mean 'value'?"),
        (lambda s: s.select("user", "user"), "two columns are called 'user'"),
        (lambda s: s.select(), "a stream has no columns: it would carry nothing"),
        (lambda s: s.drop("user", "value", "price", "ts"), "a stream has no columns"),
        (lambda s: s.withColumn("x", "value"), "a column is needed, not a str. Remedy: use F.expr"),
        (lambda s: s.union(s.drop("ts")), "union: 4 columns do not fit 3"),
        (
            lambda s: s.union(s.select("user", "price", "value", "ts")),
            "column 'value' differ: it is a bigint here and a double there. Remedy: cast",
        ),
        (lambda s: s.mapInArrow(iter, "a lnog"), "did you mean 'long'?"),
        (lambda s: s.groupBy(), "groupBy() has no columns"),
        (lambda s: s.groupBy(F.expr("value % 2").alias("user")), "cannot be called 'user'"),
        (lambda s: s.groupBy("usr"), "there is no column 'usr'"),
        (
            lambda s: s.selectExpr("value").mapInArrow(iter, "l array<int>").groupBy("l"),
            "cannot be a key",
        ),
        (lambda s: s.groupBy("user").agg(), "agg() computes nothing"),
        (lambda s: s.groupBy("user").agg({"value": "median"}), "there is no aggregation 'median'"),
        (
            lambda s: s.groupBy("user").sum("user"),
            (
                "sum(user) cannot be computed: column 'user' is a string, and sum takes tinyint,"
                " smallint, int,"
                " bigint, float, double. Remedy: cast it first"
            ),
        ),
        (
            lambda s: s.groupBy("user").agg(F.sum(F.expr("value * 0.5")).alias("h")),
            "is a decimal(22,1), and sum takes tinyint",
        ),
        (
            lambda s: s.groupBy("user").min("user"),
            (
                "min(user) cannot be computed: column 'user' is a string, and min takes tinyint,"
                " smallint, int,"
                " bigint, float, double, date, timestamp"
            ),
        ),
        (
            lambda s: s.groupBy(F.col("price").cast("float").alias("f")),
            (
                "groupBy: column 'f' cannot be a key: it is a float, and keys are tinyint,"
                " smallint, int, bigint, double, boolean, string, binary, date, timestamp,"
                " and structs of these. Remedy: cast it first"
            ),
        ),
        (
            lambda s: s.mapInArrow(iter, "k struct<a:int,in:struct<f:float>>").groupBy("k"),
            "column 'k' cannot be a key: its field 'k.in.f' is a float, and keys are tinyint",
        ),
        (
            lambda s: s.mapInArrow(iter, "k struct<a:int,l:array<int>>").repartition("k"),
            "column 'k' cannot be a key: its field 'k.l' is a list<element: int32>",
        ),
        (
            lambda s: s.mapInArrow(iter, "k struct<m:map<int,int>>").groupBy("k"),
            "column 'k' cannot be a key: its field 'k.m' is a map<int32, int32>",
        ),
        (
            lambda s: s.mapInArrow(iter, "k struct<>").groupBy("k"),
            "column 'k' cannot be a key: it is a struct<>",
        ),
        (
            lambda s: s.groupBy(F.col("price").cast("decimal(10,2)").alias("d")).count(),
            "column 'd' cannot be a key: it is a decimal(10,2)",
        ),
        (
            lambda s: s.withColumn("f", F.col("price").cast("float")).repartition("f"),
            "repartition: column 'f' cannot be a key: it is a float",
        ),
        (
            lambda s: s.groupBy("user").agg(F.sum("value").alias("user")),
            "two columns are called 'user'",
        ),
        (
            lambda s: s.mapInArrow(iter, "k int, l array<int>").groupBy("k").max("l"),
            "column 'l' is a list<element: int32>, and max takes",
        ),
        (
            lambda s: s.groupBy("user").transformWithState(Counting, "n long"),
            "a class. Remedy: make an object",
        ),
        (lambda s: s.groupBy("user").transformWithState(3, "n long"), "3 is no StatefulProcessor"),
        (
            lambda s: s.groupBy("user").transformWithState(Counting(), "n long", initialState=s),
            "initialState is a Stream: it must be a DataFrame of Spark, grouped as the stream is",
        ),
        (
            lambda s: s.groupBy("user").transformWithState(
                Counting(), "n long", eventTimeColumnName="n"
            ),
            "the output has no timestamp 'n': the event time",
        ),
        (
            lambda s: s.groupBy("user").transformWithState(Counting(), "n long", "Complete"),
            "output mode 'Complete' is not supported: Weir knows Append, Update",
        ),
        (
            lambda s: s.groupBy("user").transformWithState(Counting(), "n long", timeMode="Lunch"),
            "time mode 'Lunch' is not supported",
        ),
        (
            lambda s: s.groupBy("user").transformWithState(
                Counting(), "n long", timeMode="EventTime"
            ),
            "EventTime needs a watermark",
        ),
        (
            lambda s: s.withWatermark("at", "1 s"),
            "withWatermark names no column of the stream: there is no column 'at'",
        ),
        (lambda s: s.withWatermark("value", "1 s"), "this column is not a time: it is a bigint"),
        (lambda s: s.withWatermark("ts", "soon"), "this is not a duration"),
        (
            lambda s: s.withWatermark("ts", "1 s").withWatermark("ts", "2 s"),
            "call withWatermark once",
        ),
        (
            lambda s: s.withColumn("ts", F.expr("coalesce(ts, ts)")).withWatermark("ts", "1 s"),
            "project(ts) computes that column. Remedy: call withWatermark right after load()",
        ),
        (lambda s: s.union(s).withWatermark("ts", "1 s"), "each have their own time"),
        (lambda s: s.repartition(2).withWatermark("ts", "1 s"), "have been redistributed"),
        (lambda s: s.groupBy("user").max("ts").withWatermark("max(ts)", "1 s"), "stands between"),
        (
            lambda s: s.repartition(0),
            "repartition(0) is out of range: the number must be between 1 and 32768",
        ),
        (
            lambda s: s.repartition(2, "usr"),
            "there is no column 'usr' among user, value, price, ts. Remedy: did you mean 'user'?",
        ),
        (lambda s: s.setParallelism(0), "setParallelism(0)"),
        (lambda s: s.setMaxParallelism(40_000), "setMaxParallelism(40000)"),
        (lambda s: s.uid("a b"), "uid 'a b'"),
        (lambda s: s.union(s).uid("both"), "uid is called on a union or a redistribution"),
        (lambda s: s.rescale().setParallelism(2), "call it on the next operation"),
    ],
)
def test_what_cannot_be_is_refused_by_the_method_that_would_make_it(wrong, complaint):
    """U3: the thing, the reason, the remedy."""
    with pytest.raises(JobRejected) as rejected:
        wrong(events())
    assert complaint in str(rejected.value)
