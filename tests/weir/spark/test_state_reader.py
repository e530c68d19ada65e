"""State as a DataFrame."""

import pytest
from pyspark.errors import PySparkException

from counting_job import COUNT, FORGET, SPLITS, a_counting_graph, expected_counts
from fake_connectors import FakeSource
from golden_job import FAR_AHEAD_MS
from golden_savepoint import EXPECTED, GOLDEN
from in_process_job import InProcessJob, all_free
from weir.core.coordinator.actions import RequestSucceeded
from weir.core.file_pool import FileMergingPolicy
from weir.core.policy import Policy
from weir.core.restore_decision import RestoreRequest
from weir.core.snapshots import CheckpointKind
from weir.slot.snapshot_storage import SnapshotStorageSettings


@pytest.fixture(scope="module")
def reader(session):
    return session.spark.read.format("weir-state").option("path", str(GOLDEN))


def test_a_state_is_a_frame_with_its_keys_and_values(reader):
    """S9: a schema, every row, and one partition for each file."""
    totals = reader.option("operator", "each").option("state", "total").load()

    assert totals.schema.simpleString() == (
        "struct<key_group:int,key:bigint,value_total:bigint,value_rows:int>"
    )
    found = {str(row.key): [row.value_total, row.value_rows] for row in totals.collect()}
    assert found == EXPECTED["total"]
    assert totals.rdd.getNumPartitions() == 2


def test_a_map_state_has_a_row_for_each_entry(reader):
    """S9: user keys are columns too, and Spark can compute on them."""
    parities = reader.option("operator", "each").option("state", "parities").load()

    rows = parities.groupBy("user_key_parity").sum("value_rows").collect()
    assert sum(row[1] for row in rows) == sum(rows for _, rows in EXPECTED["total"].values())


def test_a_list_state_has_a_row_for_each_element(reader):
    """S9: with its place in the list."""
    seen = reader.option("operator", "each").option("state", "seen").load()

    assert seen.schema.simpleString() == (
        "struct<key_group:int,key:bigint,state_ordinal:bigint,value_value:bigint>"
    )
    sums = seen.groupBy("key").agg({"value_value": "sum", "state_ordinal": "max"}).collect()
    found = {str(r.key): [r["sum(value_value)"], r["max(state_ordinal)"] + 1] for r in sums}
    assert found == EXPECTED["total"]


def test_timers_are_a_state_like_any_other(reader):
    """S9: each says what it is for and what it goes by."""
    timers = reader.option("operator", "each").option("state", "$timers").load()

    found = {(str(r.key), r.timer_expires_at, r.timer_time) for r in timers.collect()}
    assert found == {(key, FAR_AHEAD_MS + int(key), "ProcessingTime") for key in EXPECTED["total"]}


@pytest.fixture(
    scope="module",
    params=[None, FileMergingPolicy(1 << 20, 100.0, None)],
    ids=["a file each", "merged files"],
)
def layered(tmp_path_factory, request):
    """An incremental checkpoint whose layers were laid by jobs of two and of three slots."""
    place = tmp_path_factory.mktemp("layered")
    source = FakeSource({split: [] for split in SPLITS}, is_endless=True)
    keeping = SnapshotStorageSettings(
        f"file://{place}", 0, 0, is_incremental=True, merging=request.param
    )
    job = InProcessJob(keeping, lambda width: a_counting_graph(source, width))
    for width in (2, 3):
        job.start(
            Policy(incremental=True), width, RestoreRequest(f"of width {width}"), all_free(*SPLITS)
        )
        for number in range(3):
            source.feed(*range(0, 500, 1 + 40 * number), split=SPLITS[number])
            job.settle(30)
            assert isinstance(job.answer(job.ask(CheckpointKind.CHECKPOINT)), RequestSucceeded)
    job.close_slots()
    read_to = {split: str(len(rows)) for split, rows in source.splits.items()}
    return job.driver.job.coordinator.checkpoints.completed[-1].manifest, expected_counts(
        source, read_to
    )


@pytest.mark.parametrize(
    ("operator", "column"), [(COUNT, "count(*)"), (FORGET, "value_rows")], ids=[COUNT, FORGET]
)
def test_layers_are_read_as_the_state_they_make(session, layered, operator, column):
    """S4, S6, S9, S11: whatever lies in older layers or merged files, however wide the job was."""
    manifest, expected = layered
    handles = [h for s in manifest.snapshots if s.subtask.operator == operator for h in s.keyed]
    assert len({handle.groups for handle in handles}) == 3 < len(handles)

    frame = session.spark.read.format("weir-state").option("operator", operator)
    rows = frame.option("path", manifest.location).load().collect()

    assert {row.n: row[column] for row in rows} == expected[operator]
    assert len(rows) == len(expected[operator])


def test_the_only_state_of_an_operator_needs_no_name(reader):
    """S9: aggregates are called as Spark calls them."""
    sums = reader.option("operator", "sums").option("state", "").load()

    found = {str(row.key): [row["sum(value)"], row["count(*)"]] for row in sums.collect()}
    assert found == EXPECTED["total"]


def test_what_is_not_there_is_refused_with_what_is(reader):
    """U3: the operators to choose of."""
    with pytest.raises(
        PySparkException, match=r"no operator 'summs': its operators are rows, each"
    ):
        reader.option("operator", "summs").option("state", "").load()
