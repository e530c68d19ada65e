"""A processor gives the same rows on Spark and on Weir, batch by batch, from the same input."""

import os
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from compared_processors import (
    Alarm,
    AlarmOfFrames,
    EveryCall,
    EveryType,
    FramesOfStructs,
    OfStructs,
    Overdue,
)
from processor_harness import ProcessorHarness
from random_seed import SEED, dice
from spark_processors import FrameTotal
from weir.core.ids import Millis
from weir.dataflow.physical import RowsAs
from weir.dataflow.types import schema_of

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
MORNING = datetime(2026, 3, 1, 8, tzinfo=UTC)
WORDS, TOTALS = "word string, amount bigint", "word string, total bigint"
TIMED = "word string, amount bigint, at timestamp"
TYPES = "at timestamp, place struct<x:int,name:string>, tags array<string>, counts map<string,int>"
SHOWN_TYPES = f"word string, what string, {TYPES}"
STRUCTS = (
    "k struct<x:int,in:struct<s:string,at:timestamp>>, day timestamp, at timestamp, amount bigint"
)
BATCHES, ROWS = 2, 20
LONGEST_SECONDS = 60


def a_word(chance):
    return {"word": chance.choice(["a", "b", None, "ü"]), "amount": chance.randrange(-3, 6)}


def a_nested_row(chance):
    def or_null(value):
        return None if chance.random() < 0.25 else value

    return {
        "word": chance.choice("ab"),
        "at": or_null(MORNING + timedelta(microseconds=chance.randrange(10**9))),
        "place": or_null({"x": or_null(chance.randrange(3)), "name": or_null(chance.choice("xy"))}),
        "tags": or_null([chance.choice("tu") for _ in range(chance.randrange(3))]),
        "counts": or_null({name: chance.randrange(9) for name in "pq"[: chance.randrange(3)]}),
    }


def a_struct(chance):
    def or_null(value):
        return None if chance.random() < 0.2 else value

    inner = {"s": or_null(chance.choice("xy")), "at": or_null(MORNING)}
    return {
        "k": or_null({"x": or_null(chance.randrange(2)), "in": or_null(inner)}),
        "day": MORNING + timedelta(days=chance.randrange(2)),
        "at": MORNING,
        "amount": 1,
    }


@dataclass(frozen=True)
class Case:
    """A processor, and the rows that both engines give to it."""

    processor: type
    inputs: str = WORDS
    output: str = TOTALS
    keys: tuple[str, ...] = ("word",)
    rows_as: RowsAs = RowsAs.ROWS
    time_mode: str = "None"
    row: object = field(default=a_word)

    def batches(self):
        """Of an event-time job no row is late: each batch has the next minute."""
        chance = dice(f"compared {self.processor.__name__}")
        for number in range(1 if self.time_mode == "ProcessingTime" else BATCHES):
            rows = [self.row(chance) for _ in range(ROWS)]
            if self.time_mode == "EventTime":
                start = MORNING + timedelta(minutes=number)
                rows = [{**r, "at": start + timedelta(seconds=n / 3)} for n, r in enumerate(rows)]
            yield pa.RecordBatch.from_pylist(rows, schema=schema_of(self.inputs))


CASES = [
    Case(EveryCall, output="word string, what string, shown string"),
    Case(EveryType, f"word string, {TYPES}", SHOWN_TYPES, row=a_nested_row),
    Case(OfStructs, STRUCTS, keys=("k", "day"), time_mode="EventTime", row=a_struct),
    Case(FramesOfStructs, STRUCTS, TOTALS, ("k", "day"), RowsAs.PANDAS, "EventTime", a_struct),
    Case(Alarm, TIMED, time_mode="EventTime"),
    Case(AlarmOfFrames, TIMED, rows_as=RowsAs.PANDAS, time_mode="EventTime"),
    Case(Overdue, time_mode="ProcessingTime"),
    Case(FrameTotal, rows_as=RowsAs.PANDAS),
]


@pytest.fixture(scope="module")
def spark(session):
    own = session.spark.newSession()
    own.conf.set("spark.sql.session.timeZone", "UTC")
    own.conf.set("spark.sql.shuffle.partitions", "1")
    own.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    return own


def of_weir(case):
    """As Spark does it: timers fire behind the rows, by the watermark of the batch before."""
    event_time = "at" if case.time_mode == "EventTime" else ""
    job = ProcessorHarness(
        case.processor(),
        case.inputs,
        case.output,
        case.time_mode,
        case.rows_as,
        case.keys,
        event_time=event_time,
    ).begin()
    found = []
    for batch in case.batches():
        found += job.process(*batch.to_pylist())
        found += job.fire()
        if event_time:
            latest = max(batch.column("at").to_pylist())
            job.operator.advance(Millis(int(latest.timestamp() * 1000)))
    return found + job.fire()


def started_query(spark, case, directory):
    """One file is one micro-batch; a last one without rows fires what the watermark has reached."""
    for number, batch in enumerate(case.batches()):
        path = directory / f"{number}.parquet"
        pq.write_table(pa.Table.from_batches([batch]), path)
        os.utime(path, (number + 1, number + 1))
    schema = from_arrow_schema(schema_of(case.inputs))
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(directory))
    if case.time_mode == "EventTime":
        rows = rows.withWatermark("at", "0 seconds")
    grouped = rows.groupBy(*case.keys)
    is_rows = case.rows_as is RowsAs.ROWS
    transform = grouped.transformWithState if is_rows else grouped.transformWithStateInPandas
    output = from_arrow_schema(schema_of(case.output))
    # By processing time there is always another batch, for a timer might be due in it.
    trigger = {"once" if case.time_mode == "ProcessingTime" else "availableNow": True}
    return (
        transform(case.processor(), output, "Update", case.time_mode)
        .writeStream.format("memory")
        .queryName(case.processor.__name__)
        .outputMode("update")
        .option("checkpointLocation", f"{directory}-checkpoint")
        .trigger(**trigger)
        .start()
    )


def counted(table):
    return Counter(map(repr, table.to_pylist()))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.processor.__name__)
def test_a_processor_gives_what_it_gives_on_spark(spark, case, tmp_path):
    """D1: every kind of state, nested types, struct keys, and timers of both times."""
    directory = tmp_path / "rows"
    directory.mkdir()
    query = started_query(spark, case, directory)
    try:
        assert query.awaitTermination(LONGEST_SECONDS), query.status
    finally:
        query.stop()
    theirs = spark.table(query.name).toArrow()

    ours = pa.Table.from_pylist(of_weir(case), schema=theirs.schema)

    assert counted(ours) == counted(theirs), f"seed {SEED}"
    assert theirs.num_rows
