"""A new job begins with the rows of a DataFrame, handed to its processor key by key."""

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as users write it

from spark_processors import Seeded
from weir.connectors.file_sink import read_committed
from weir.connectors.generator_options import expected_rows
from weir.connectors.pyspark.initial_rows import INITIAL_ROWS
from weir.core.restore_decision import RestoreRequest
from weir.core.topology import Operator, Topology
from weir.dataflow.options import Options
from weir.dataflow.physical import JobGraph, ProcessorHead, RowsAs, Stage
from weir.dataflow.types import schema_of
from weir.driver.job_startup import is_new
from weir.driver.state_compatibility import check_state_compatibility
from weir.errors import JobRejected
from weir.spark import WeirSession
from weir.spark.initial_state import savepoint_of, without_initial_state
from weir.state.snapshot_files import read_list
from weir.state.state_file_reader import header_of
from weir.storage.inspection import StateFileReaders, describe, find
from weir.storage.stores import store_for

INPUT, OUTPUT = schema_of("word string, amount long"), schema_of("word string, total long")
GENERATED = {"rows": "50", "splits": "1", "keys": "5"}
STORE = store_for("file://")


@pytest.fixture(scope="module")
def beginnings(session):
    """Two rows for each of ten words; only five of them will ever have input."""
    return session.spark.range(20).selectExpr(
        "CAST(id % 10 AS STRING) AS name", "id * 100 AS begin"
    )


def a_graph(*given, most=16):
    """A processor for each of these, with nothing before or behind it."""
    operators = tuple(Operator(f"p{number}", 1, most + number) for number in range(len(given)))
    stages = tuple(
        Stage(
            operator.id,
            ProcessorHead(
                ("word",), Seeded(), RowsAs.ROWS, INPUT, OUTPUT, initial_state=initial_state
            ),
            (),
            OUTPUT,
        )
        for operator, initial_state in zip(operators, given, strict=True)
    )
    return JobGraph(Topology(operators, ()), stages)


def test_the_rows_become_state_of_their_operators(beginnings, tmp_path):
    """D1, S9: one savepoint for all, with each operator's own max parallelism."""
    grouped = beginnings.groupBy("name")
    graph, given = without_initial_state(a_graph(grouped, grouped))

    manifest = savepoint_of(given, f"file://{tmp_path}/job", STORE)

    found = describe(STORE, find(STORE, manifest), StateFileReaders(header_of, read_list))
    assert found.problems == ()
    assert [(o.uid, o.max_parallelism) for o in found.operators] == [("p0", 16), ("p1", 17)]
    for operator in found.operators:
        (state,) = operator.keyed
        assert (state.name, state.kind, state.rows) == (INITIAL_ROWS, "list", 20)
        names = ["key_group", "word", "state.ordinal", "value.name", "value.begin"]
        assert state.schema.names == names
    check_state_compatibility(
        STORE, found.manifest, graph, allow_non_restored=False, backend="rocksdb"
    )
    assert is_new(STORE, f"file://{tmp_path}/job", RestoreRequest("d")), (
        "the job that wrote it has not started yet"
    )


def test_the_dataframe_stays_behind_and_its_columns_travel(beginnings):
    """D1: slots have no use for a DataFrame, and it cannot be pickled."""
    graph, (given,) = without_initial_state(a_graph(beginnings.groupBy("name")))

    head = graph.stages[0].head
    assert head.initial_state is None
    assert head.initial.names == ["name", "begin"]
    assert given.frame is beginnings


@pytest.mark.parametrize(
    ("grouped", "said"),
    [
        (
            lambda frame: frame,
            "initialState is a DataFrame: it must be a DataFrame of Spark that is",
        ),
        (lambda frame: frame.groupBy("begin"), r"by \(word string\) and its initialState by"),
        (lambda frame: frame.groupBy(F.upper("name")), "group both by plain columns"),
        (lambda frame: frame.groupBy("name", "begin"), "in the same order"),
    ],
)
def test_another_grouping_is_refused(beginnings, grouped, said):
    """U3."""
    with pytest.raises(JobRejected, match=said):
        without_initial_state(a_graph(grouped(beginnings)))


def test_a_job_begins_with_it(beginnings, tmp_path):
    """D1: a real job hands each key its rows before the first of its input."""
    session = (
        WeirSession.builder.appName("begins")
        .config("weir.parallelism", 1)
        .config("weir.checkpointing.storage", f"file://{tmp_path}/checkpoints")
        .getOrCreate()
    )
    rows = session.readStream.format("generator").options(**GENERATED).load()
    words = rows.selectExpr("CAST(key AS STRING) AS word", "value AS amount")
    processed = words.groupBy("word").transformWithState(
        Seeded(), OUTPUT, initialState=beginnings.groupBy("name")
    )
    processed.writeStream.format("parquet").start(f"{tmp_path}/out").awaitTermination()

    found = read_committed(f"file://{tmp_path}/out").to_pylist()
    totals = {row["word"]: row["total"] for row in sorted(found, key=lambda row: row["total"])}
    wanted = {str(word): 200 * word + 1_000 for word in range(5)}
    for row in expected_rows(Options("generator", GENERATED), 0, 0, 50).to_pylist():
        wanted[str(row["key"])] += row["value"]
    assert totals == wanted


def with_struct(batches):
    for batch in batches:
        words = pa.StructArray.from_arrays([batch.column("key").cast(pa.string())], ["w"])
        yield pa.record_batch([words, batch.column("value")], names=["k", "amount"])


def test_a_job_that_is_grouped_by_a_struct_begins_with_it(beginnings, tmp_path):
    """D1, S11: at two subtasks, each of which is handed the structs that it will have rows of."""
    session = (
        WeirSession.builder.appName("begins by struct")
        .config("weir.parallelism", 2)
        .config("weir.checkpointing.storage", f"file://{tmp_path}/checkpoints")
        .getOrCreate()
    )
    rows = session.readStream.format("generator").options(**GENERATED).load()
    structs = rows.mapInArrow(with_struct, "k struct<w:string>, amount long")
    given = beginnings.selectExpr("struct(name AS w) AS k", "begin")
    processed = structs.groupBy("k").transformWithState(
        Seeded(), "word struct<w:string>, total long", initialState=given.groupBy("k")
    )
    processed.writeStream.format("parquet").start(f"{tmp_path}/out").awaitTermination()

    found = read_committed(f"file://{tmp_path}/out").to_pylist()
    totals = {row["word"]["w"]: row["total"] for row in sorted(found, key=lambda r: r["total"])}
    wanted = {str(word): 200 * word + 1_000 for word in range(5)}
    for row in expected_rows(Options("generator", GENERATED), 0, 0, 50).to_pylist():
        wanted[str(row["key"])] += row["value"]
    assert totals == wanted
