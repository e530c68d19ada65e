"""A savepoint made from DataFrames, and jobs that begin with it."""

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as users write it

from golden_job import FAR_AHEAD_MS, PROCESSED, OneOfEach
from running_total import RunningTotal
from weir.connectors.file_sink import read_committed
from weir.connectors.generator_options import expected_rows
from weir.connectors.pyspark.processor import ProcessorOperator
from weir.core.ids import CheckpointId, EdgeId, Millis, OperatorId, SubtaskId
from weir.core.key_groups import range_of
from weir.dataflow.keyed import aggregate_head
from weir.dataflow.options import Options
from weir.dataflow.physical import Aggregate, AggregateHead, ProcessorHead, RowsAs
from weir.dataflow.types import schema_of
from weir.errors import JobRejected
from weir.ports.operators import RestoredState, TaskInfo
from weir.slot.aggregate import AggregateOperator
from weir.spark import WeirSession
from weir.spark.bootstrap import PART, Layout, Savepoint, writing
from weir.state.memory.memory_backend import MemoryBackend
from weir.state.snapshot_files import read_list
from weir.state.state_file_reader import header_of, rows_of
from weir.storage import state_files
from weir.storage.inspection import StateFileReaders, describe, find
from weir.storage.stores import store_for

INPUT, OUTPUT = "key long, value long", "key long, total long"
STORE = store_for("file://")


@pytest.fixture(scope="module")
def totals(session):
    """A thousand keys, of which each has ten times itself."""
    return session.spark.range(1_000).selectExpr("id AS key", "id * 10 AS total")


@pytest.fixture(scope="module")
def bootstrapped(totals, tmp_path_factory):
    path = tmp_path_factory.mktemp("bootstrapped") / "savepoint"
    savepoint = Savepoint.new(max_parallelism=16)
    return savepoint.withKeyedState("sums", "total", totals, key=["key"], value=["total"]).write(
        str(path)
    )


def inherited(location, index, parallelism):
    """What a subtask of some width would be given of the savepoint."""
    manifest = find(STORE, location)
    groups = range_of(index, parallelism, 16)
    handles = [handle for snapshot in manifest.snapshots for handle in snapshot.keyed]
    return RestoredState([(groups, state_files.fetch(STORE, handle.file)) for handle in handles])


def place(index, parallelism):
    subtask = SubtaskId(OperatorId("sums"), index)
    return TaskInfo(subtask, parallelism, 16, 1, 1, lambda: Millis(0))


def test_the_savepoint_is_whole_and_its_files_say_what_they_hold(bootstrapped):
    """S9, S10: like one that a job took."""
    found = describe(STORE, find(STORE, bootstrapped), StateFileReaders(header_of, read_list))

    (sums,) = found.operators
    (total,) = sums.keyed
    assert found.problems == ()
    assert (total.name, total.kind, total.rows) == ("total", "value", 1_000)
    assert total.schema.names == ["key_group", "key", "value.total"]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_processor_of_any_width_begins_with_the_values(bootstrapped, parallelism):
    """S9, S11: each key is found by one subtask, with its value."""
    head = ProcessorHead(("key",), RunningTotal(), RowsAs.ROWS, schema_of(INPUT), schema_of(OUTPUT))
    batch = pa.table({"key": [7, 8], "value": [1, 2]}, schema=schema_of(INPUT)).to_batches()[0]
    rows = []
    for index in range(parallelism):
        operator = ProcessorOperator(head, place(index, parallelism), MemoryBackend)
        operator.restore(inherited(bootstrapped, index, parallelism))
        rows += [r for out in operator.process(EdgeId("in"), batch) for r in out.to_pylist()]

    begun = [row for row in rows if row["total"] > 2]
    assert sorted(begun, key=lambda row: row["key"]) == [
        {"key": 7, "total": 71},
        {"key": 8, "total": 82},
    ]


def test_an_aggregation_begins_with_what_spark_has_aggregated(totals, tmp_path):
    """S9: Spark's names for sums and counts are those of the state."""
    history = totals.groupBy("key").agg(F.sum("total"), F.count("total"))
    savepoint = Savepoint.new(16).withAggregates("sums", history, key=["key"])
    where = savepoint.write(str(tmp_path / "s"))

    head = AggregateHead(
        ("key",),
        (Aggregate("sum", "total", "sum"),),
        schema_of("key long, total long"),
        schema_of("key long, sum long"),
    )
    operator = AggregateOperator(head, place(0, 1), MemoryBackend)
    operator.restore(inherited(where, 0, 1))
    rows = pa.table({"key": [7], "total": [5]}, schema=head.input).to_batches()[0]
    operator.process(EdgeId("in"), rows)
    (out,) = operator.flush()
    assert out.to_pylist() == [{"key": 7, "sum": 75}]
    assert operator.capture(CheckpointId(1)).keyed


@pytest.fixture(scope="module")
def rows(session):
    """Three rows of each of fifty keys, the newest first."""
    return session.spark.range(150).selectExpr(
        "id % 50 AS key",
        "10 - id DIV 50 AS at",
        "id AS value",
        "IF(id % 2 = 0, 'even', 'odd') AS parity",
    )


@pytest.fixture(scope="module")
def one_of_each(rows, tmp_path_factory):
    """Every kind of state that a processor can have."""
    path = tmp_path_factory.mktemp("one-of-each") / "savepoint"
    totals = rows.groupBy("key").agg(
        F.sum("value").alias("total"), F.count("*").cast("int").alias("rows")
    )
    parities = rows.groupBy("key", "parity").agg(F.count("*").alias("rows"))
    timers = rows.selectExpr("key", f"{FAR_AHEAD_MS} + key AS at").distinct()
    return (
        Savepoint.new(16)
        .withKeyedState("each", "total", totals, key=["key"], value=["total", "rows"])
        .withListState("each", "seen", rows, key=["key"], value=["value"], order=["at"])
        .withMapState("each", "parities", parities, key=["key"], userKey=["parity"], value=["rows"])
        .withTimers("each", timers, key=["key"], expires="at", timeMode="ProcessingTime")
        .write(str(path))
    )


def restored_states(location, parallelism):
    """What processors of that width keep once they have restored, state by state."""
    head = ProcessorHead(
        ("key",),
        OneOfEach(),
        RowsAs.ROWS,
        schema_of(INPUT),
        schema_of(PROCESSED),
        "ProcessingTime",
    )
    states = {}
    for index in range(parallelism):
        operator = ProcessorOperator(head, place(index, parallelism), MemoryBackend)
        operator.restore(inherited(location, index, parallelism))
        for piece in operator.capture(CheckpointId(1)).keyed:
            for batch in rows_of([piece.write()], piece.groups):
                states.setdefault(piece.name, []).extend(batch.to_pylist())
    return states


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_processor_begins_with_lists_maps_and_timers(one_of_each, parallelism):
    """S9, S11: each key has all of its own, and lists have the order that was asked for."""
    states = restored_states(one_of_each, parallelism)

    seen, parities, timers = (
        [{**row, "key_group": 0} for row in states[name] if row["key"] == 7]
        for name in ("seen", "parities", "$timers")
    )
    seven = {"key_group": 0, "key": 7}
    assert [row["value.value"] for row in sorted(seen, key=lambda row: row["state.ordinal"])] == [
        107,
        57,
        7,
    ]
    assert parities == [{**seven, "user_key.parity": "odd", "value.rows": 3}]
    assert timers == [
        {**seven, "timer.expires_at": FAR_AHEAD_MS + 7, "timer.time": "ProcessingTime"}
    ]
    assert {name: len(rows) for name, rows in states.items()} == {
        "total": 50,
        "seen": 150,
        "parities": 50,
        "$timers": 50,
    }


def test_a_timer_may_be_for_a_timestamp(session, tmp_path):
    """S9: it is kept in milliseconds, as the processor registers it."""
    frame = session.spark.sql("SELECT 7L AS key, TIMESTAMP_MILLIS(1234567L) AS at")
    timers = Savepoint.new(16).withTimers(
        "each", frame, key=["key"], expires="at", timeMode="EventTime"
    )
    manifest = find(STORE, timers.write(str(tmp_path / "s")))
    (handle,) = (handle for snapshot in manifest.snapshots for handle in snapshot.keyed)
    (batch,) = rows_of([state_files.fetch(STORE, handle.file)], handle.groups)

    assert batch.column("timer.expires_at").to_pylist() == [1234567]


REFUSED = {
    "a list without an order": (
        lambda s, f: s.withListState("u", "seen", f, key=["key"], value=["value"], order=[]),
        "'seen' of u cannot be made: no column defines the order of the list",
    ),
    "a map without user keys": (
        lambda s, f: s.withMapState("u", "m", f, key=["key"], userKey=[], value=["value"]),
        "'m' of u cannot be made: a map has user keys",
    ),
    "a user key that is a collection": (
        lambda s, f: s.withMapState(
            "u",
            "m",
            f.selectExpr("key", "array(at) AS at", "value"),
            key=["key"],
            userKey=["at"],
            value=["value"],
        ),
        r"user_key.at is list<.*make it a string, or several columns",
    ),
    "a timer for a text": (
        lambda s, f: s.withTimers("u", f, key=["key"], expires="parity", timeMode="EventTime"),
        "'parity' is string. Remedy: give a timestamp",
    ),
    "a time that does not exist": (
        lambda s, f: s.withTimers("u", f, key=["key"], expires="at", timeMode="None"),
        "timers do not go by 'None'. Remedy: choose ProcessingTime or EventTime",
    ),
    "an aggregation that is a processor": (
        lambda s, f: s.withAggregates("u", f, key=["key"]).withKeyedState(
            "u", "total", f, key=["key"], value=["value"]
        ),
        "'aggregates' and 'total' of u cannot belong to one operator",
    ),
    "two keys of one operator": (
        lambda s, f: s.withKeyedState("u", "a", f, key=["key"], value=["value"]).withKeyedState(
            "u", "b", f, key=["parity"], value=["value"]
        ),
        "'a' and 'b' of u cannot belong to one operator: all states of an operator have",
    ),
    "a state that is given twice": (
        lambda s, f: s.withKeyedState("u", "a", f, key=["key"], value=["value"]).withKeyedState(
            "u", "a", f, key=["key"], value=["at"]
        ),
        "'a' of u is given twice",
    ),
    "a key that cannot be one": (
        lambda s, f: s.withKeyedState(
            "u", "a", f.selectExpr("array(key) AS key", "value"), key=["key"], value=["value"]
        ),
        "'key' of type list<.* cannot be a key",
    ),
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_what_makes_no_sense_is_refused_before_anything_is_written(rows, wrong):
    """U3: the state, the column and the way out are named."""
    make, words = REFUSED[wrong]
    with pytest.raises(JobRejected, match=words):
        make(Savepoint.new(16), rows)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ("SELECT 7L AS key, CAST(NULL AS LONG) AS at", "timer.expires_at is null in 1 rows"),
        ("SELECT 7L AS key, 5L AS at UNION ALL SELECT 7L, 5L", "has 2 rows"),
    ],
    ids=["a timer without a time", "the same timer twice"],
)
def test_rows_that_cannot_be_timers_are_refused(session, tmp_path, frame, words):
    """U3: what is wrong with them is said."""
    timers = Savepoint.new(16).withTimers(
        "each", session.spark.sql(frame), key=["key"], expires="at", timeMode="EventTime"
    )
    with pytest.raises(JobRejected, match=words):
        timers.write(str(tmp_path / "s"))
    assert not (tmp_path / "s/_metadata").exists()


def test_a_key_with_two_rows_is_refused(totals, tmp_path):
    """U3: a value state has one value for each key; the key is named."""
    doubled = totals.union(totals.filter("key = 7"))
    savepoint = Savepoint.new(16).withKeyedState(
        "sums", "total", doubled, key=["key"], value=["total"]
    )

    with pytest.raises(
        JobRejected, match=r"'total' of sums cannot be written: key \{'key': 7\} has 2 rows"
    ):
        savepoint.write(str(tmp_path / "s"))
    assert not (tmp_path / "s/_metadata").exists()


@pytest.fixture(scope="module")
def by_place(session):
    """Twenty structs and a null one; of every fourth a field is null."""
    return session.spark.range(21).selectExpr(
        "CASE WHEN id < 20 THEN struct(CAST(nullif(id % 4, 3) AS INT) AS x,"
        " struct(CAST(id AS STRING) AS s) AS in) END AS place",
        "id AS total",
    )


def test_a_struct_is_a_key_of_aggregates(session, by_place, tmp_path):
    """S9, S11: bootstrapped, restored at another width, and read as a DataFrame."""
    frame = by_place.selectExpr("place", "total AS `sum(n)`", "1L AS `count(n)`")
    savepoint = Savepoint.new(max_parallelism=16)
    location = savepoint.withAggregates("sums", frame, key=["place"]).write(str(tmp_path / "s"))
    rows = schema_of("place struct<x:int,in:struct<s:string>>, n long")
    head = aggregate_head(("place",), [Aggregate("sum", "n", "total")], rows)
    fields = [{"x": (0, 1, 2, None)[n % 4], "in": {"s": str(n)}} for n in range(20)]
    wanted = {repr(place): total for total, place in enumerate([*fields, None])}

    found = {}
    for index in range(3):
        operator = AggregateOperator(head, place(index, 3), MemoryBackend)
        operator.restore(inherited(location, index, 3))
        (piece,) = operator.capture(CheckpointId(1)).keyed
        for batch in rows_of([piece.write()], piece.groups):
            found |= {repr(row["place"]): row["sum(n)"] for row in batch.to_pylist()}

    assert found == wanted
    read = session.spark.read.format("weir-state").option("path", location).load()
    assert read.schema["place"].dataType.simpleString() == "struct<x:int,in:struct<s:string>>"
    shown = read.selectExpr("place", "`sum(n)` AS total").toArrow().to_pylist()
    assert {repr(row["place"]): row["total"] for row in shown} == wanted


def test_a_struct_key_with_two_rows_is_refused():
    """S9: and one that is null in another place is another key."""
    schema = schema_of("place struct<x:int,in:struct<s:string>>, total long")
    layout = Layout("memory://nowhere", "total", ("place",), ("place",), schema, 1, 16)
    keys = [None, (None, None), (None, (None,)), (1, ("a",)), (1, ("b",)), (1, ("a",))]
    rows = [pa.array(keys, schema.field(0).type), pa.array(range(6)), pa.array([0] * 6, pa.int32())]

    refused = writing(layout)(pa.table(rows, [*schema.names, PART])).to_pylist()[0]

    assert refused["cause"] == "key {'place': {'x': 1, 'in': {'s': 'a'}}} has 2 rows"
    assert refused["remedy"] == "give each key one row"


def test_a_column_that_is_not_there_is_refused(totals):
    """U3: with those that are."""
    with pytest.raises(JobRejected, match=r"'sum' is not in the frame\. Remedy: choose one of key"):
        Savepoint.new(16).withKeyedState("sums", "total", totals, key=["key"], value=["sum"])


def test_a_job_begins_with_the_savepoint(bootstrapped, tmp_path):
    """S9, C15: a real job goes on from values that no job has kept."""
    session = (
        WeirSession.builder.appName("bootstrapped")
        .config("weir.parallelism", 1)
        .config("weir.checkpointing.storage", f"file://{tmp_path}/checkpoints")
        .config("weir.recovery.path", bootstrapped)
        .getOrCreate()
    )
    generated = {"rows": "50", "splits": "1", "keys": "5"}
    rows = session.readStream.format("generator").options(**generated).load().uid("rows")
    sums = rows.groupBy("key").transformWithState(RunningTotal(), OUTPUT).uid("sums")
    job = sums.writeStream.format("parquet").uid("files").start(f"{tmp_path}/out")
    job.awaitTermination()

    expected = expected_rows(Options("generator", generated), 0, 0, 50).to_pylist()
    sums_by_key = {row["key"]: row["key"] * 10 for row in expected}
    for row in expected:
        sums_by_key[row["key"]] += row["value"]
    found = read_committed(f"file://{tmp_path}/out").to_pylist()
    assert len(found) == 50
    assert {row["key"]: row["total"] for row in found} == sums_by_key
