"""A savepoint made from DataFrames, and jobs that begin with it."""

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as users write it

from running_total import RunningTotal
from weir.connectors.file_sink import read_committed
from weir.connectors.generator_options import expected_rows
from weir.connectors.pyspark.processor import ProcessorOperator
from weir.core.ids import CheckpointId, EdgeId, Millis, OperatorId, SubtaskId
from weir.core.key_groups import range_of
from weir.dataflow.options import Options
from weir.dataflow.physical import Aggregate, AggregateHead, Function, ProcessorHead, RowsAs
from weir.dataflow.types import schema_of
from weir.errors import JobRejected
from weir.ports.operators import Heritage, Place
from weir.slot.aggregate import AggregateOperator
from weir.spark import WeirSession
from weir.spark.bootstrap import Savepoint
from weir.state.files import read_list
from weir.state.looking import header_of
from weir.storage import state_files
from weir.storage.inspecting import Opening, describe, find
from weir.storage.objects import store_for

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
    return Heritage([(groups, state_files.fetch(STORE, handle.file)) for handle in handles])


def place(index, parallelism):
    subtask = SubtaskId(OperatorId("sums"), index)
    return Place(subtask, parallelism, 16, 1, 1, lambda: Millis(0))


def test_the_savepoint_is_whole_and_its_files_say_what_they_hold(bootstrapped):
    """S9, S10: like one that a job took."""
    found = describe(STORE, find(STORE, bootstrapped), Opening(header_of, read_list))

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
        operator = ProcessorOperator(head, place(index, parallelism))
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
        (Aggregate(Function.SUM, "total", "sum"),),
        schema_of("key long, total long"),
        schema_of("key long, sum long"),
    )
    operator = AggregateOperator(head, place(0, 1))
    operator.restore(inherited(where, 0, 1))
    rows = pa.table({"key": [7], "total": [5]}, schema=head.input).to_batches()[0]
    operator.process(EdgeId("in"), rows)
    (out,) = operator.flush()
    assert out.to_pylist() == [{"key": 7, "sum": 75}]
    assert operator.capture(CheckpointId(1)).keyed


def test_a_key_with_two_rows_is_refused(totals, tmp_path):
    """U3: a value state has one value for each key; the key is named."""
    doubled = totals.union(totals.filter("key = 7"))
    savepoint = Savepoint.new(16).withKeyedState(
        "sums", "total", doubled, key=["key"], value=["total"]
    )

    with pytest.raises(JobRejected, match=r"'total' of sums: key \{'key': 7\} has 2 rows"):
        savepoint.write(str(tmp_path / "s"))
    assert not (tmp_path / "s/_metadata").exists()


def test_a_column_that_is_not_there_is_refused(totals):
    """U3: with those that are."""
    with pytest.raises(JobRejected, match="'sum' is not in the frame; choose of key, total"):
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
