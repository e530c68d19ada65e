"""Incompatible state is refused with the reasons, before the driver takes its epoch."""

from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from coordinated_job import a_manifest
from processor_harness import ProcessorHarness, written
from spark_processors import History, Remembering, RunningTotal
from weir.core.ids import CheckpointId, EdgeId, Millis, OperatorId, SubtaskId
from weir.core.restore_decision import RestoreRequest
from weir.core.snapshots import (
    KeyedHandle,
    KeyGroupRange,
    NativeHandle,
    NativeState,
    SubtaskSnapshot,
    Width,
)
from weir.core.topology import Operator, Topology
from weir.dataflow.physical import (
    Aggregate,
    AggregateHead,
    JobGraph,
    ProcessorHead,
    RowsAs,
    Stage,
)
from weir.dataflow.types import schema_of
from weir.driver.job_startup import JobStartup, is_new
from weir.driver.state_compatibility import check_state_compatibility
from weir.errors import JobRejected
from weir.ports.operators import TaskInfo
from weir.slot.aggregate import AggregateOperator
from weir.state.memory.memory_backend import MemoryBackend
from weir.storage import manifests, state_files
from weir.storage.job_log_store import JobLog
from weir.storage.memory_store import MemoryStore

COUNTS = OperatorId("counts")
PLACE = "memory://jobs/j/savepoint"


class Failing(StatefulProcessor):
    """Needs what only executors have."""

    def init(self, _):
        raise OSError("no route to host")

    def handleInputRows(self, *_):  # noqa: N802 - PySpark's name
        return iter(())


class Dropping(Failing):
    """Wants nothing of what was."""

    def init(self, handle):
        handle.deleteIfExists("total")


def a_graph(head):
    topology = Topology((Operator(COUNTS, 1, 128),), ())
    return JobGraph(topology, (Stage(COUNTS, head, (), head.output),))


def processing(processor, inputs="word string, amount bigint"):
    output = schema_of("word string, total bigint")
    return a_graph(ProcessorHead(("word",), processor, RowsAs.ROWS, schema_of(inputs), output))


def summing(kind):
    rows = schema_of(f"word string, amount {kind}")
    aggregates = (Aggregate("max", "amount", "most"),)
    output = schema_of(f"word string, most {kind}")
    return a_graph(AggregateHead(("word",), aggregates, rows, output))


def kept_by(processor):
    job = ProcessorHarness(processor).begin()
    job.words("a")
    return written(job.capture())


def kept_by_a_sum(kind="int"):
    head = summing(kind).stages[0].head
    place = TaskInfo(SubtaskId(COUNTS, 0), 1, 128, 1, 1, lambda: Millis(0))
    operator = AggregateOperator(head, place, MemoryBackend)
    batch = pa.record_batch({"word": ["a"], "amount": [1]}).cast(head.input)
    operator.process(EdgeId("in"), batch)
    list(operator.flush())
    return [(p.groups, p.write()) for p in operator.capture(CheckpointId(1)).keyed]


def a_savepoint(store, files, threshold=1 << 20):
    """Small files inside the manifest, or all of them beside it."""
    handles = tuple(
        KeyedHandle(
            groups,
            state_files.small(data, threshold) or state_files.put(store, f"{PLACE}/{number}", data),
        )
        for number, (groups, data) in enumerate(files)
    )
    snapshot = SubtaskSnapshot(SubtaskId(COUNTS, 0), keyed=handles)
    return replace(
        a_manifest(4),
        location=PLACE,
        widths=(Width(COUNTS, 1, 128),),
        fingerprint=((), ()),
        snapshots=(snapshot,),
    )


def judged(files, graph, *, allow=False, threshold=1 << 20):
    store = MemoryStore()
    manifest = a_savepoint(store, files, threshold)
    check_state_compatibility(store, manifest, graph, allow_non_restored=allow, backend="hashmap")


def a_native_checkpoint(files):
    """The same state in files of RocksDB, as far as a driver reads them."""
    manifest = a_savepoint(MemoryStore(), [])
    states = tuple(
        NativeState("s", number, state_files.inline(data.to_pybytes()))
        for number, (_, data) in enumerate(files)
    )
    handle = NativeHandle(KeyGroupRange(0, 127), "rocksdb", 1, (), states)
    return replace(manifest, snapshots=(SubtaskSnapshot(SubtaskId(COUNTS, 0), native=(handle,)),))


def test_files_of_one_backend_are_refused_by_another_before_the_job_starts():
    """S2 S10 U3: with the way that leads there."""
    manifest = a_native_checkpoint(kept_by(RunningTotal()))

    with pytest.raises(JobRejected) as refused:
        check_state_compatibility(
            MemoryStore(),
            manifest,
            processing(RunningTotal()),
            allow_non_restored=False,
            backend="hashmap",
        )

    assert "cannot be restored by the backend hashmap" in str(refused.value)
    assert "in the files of rocksdb" in str(refused.value)
    assert "take a savepoint with state.backend rocksdb, and restore that" in str(refused.value)


def test_native_state_is_checked_by_its_description():
    """S12: what would be lost is found before a file of RocksDB is opened."""
    manifest = a_native_checkpoint(kept_by(RunningTotal()))

    with pytest.raises(JobRejected, match="would be lost"):
        check_state_compatibility(
            MemoryStore(),
            manifest,
            processing(History()),
            allow_non_restored=False,
            backend="rocksdb",
        )


@pytest.mark.parametrize("threshold", [1 << 20, 0], ids=["inside the manifest", "beside it"])
def test_a_change_that_is_refused_names_operator_state_and_field(threshold):
    """S12, U3."""
    changed = processing(Remembering("value", "n int"))

    with pytest.raises(JobRejected) as refused:
        judged(kept_by(Remembering("value", "n long")), changed, threshold=threshold)

    assert str(refused.value) == (
        f"{PLACE}, operator 'counts': state 'first' does not fit: field 'n' was bigint and is int"
        " now, which cannot hold every number of it."
        " Remedy: declare it as it was, or give the new one another name."
    )


def test_a_change_that_old_rows_survive_is_none_of_its_business():
    """S12."""
    judged(
        kept_by(Remembering("value", "n int, gone string")),
        processing(Remembering("value", "n long, note string")),
    )


def test_another_key_is_refused():
    """S12, S11."""
    grouped = processing(RunningTotal(), "word bigint, amount bigint")
    with pytest.raises(JobRejected, match=r"its key was \(word string\) and is \(word bigint\)"):
        judged(kept_by(RunningTotal()), grouped)


def test_a_state_that_the_processor_does_not_declare_any_more_is_refused_by_name():
    """C15, S10: strict, because its loss would go unnoticed."""
    with pytest.raises(
        JobRejected, match=r"'total' would be lost: History.init does not declare it"
    ):
        judged(kept_by(RunningTotal()), processing(History()))


@pytest.mark.parametrize(
    ("processor", "allow"), [(History(), True), (Dropping(), False)], ids=["allowed", "dropped"]
)
def test_it_may_be_lost_by_consent(processor, allow):
    """C15: allowNonRestoredState, or deleteIfExists in the program."""
    judged(kept_by(RunningTotal()), processing(processor), allow=allow)


def test_a_processor_that_cannot_be_asked_says_why():
    """U3: as in PySpark the driver calls init."""
    with pytest.raises(JobRejected, match=r"Failing.init failed in the driver.*no route to host"):
        judged(kept_by(RunningTotal()), processing(Failing()))


def test_a_processor_without_kept_state_is_not_asked():
    """S12: a fresh operator has nothing to fit."""
    judged([], processing(Failing()))


def test_an_aggregate_may_be_widened_and_not_narrowed():
    """S12."""
    judged(kept_by_a_sum("int"), summing("bigint"))
    with pytest.raises(JobRejected, match=r"operator 'counts': .*max\(amount\)"):
        judged(kept_by_a_sum("int"), summing("smallint"))


@pytest.mark.parametrize(
    ("files", "graph", "said"),
    [
        (kept_by_a_sum, processing(RunningTotal()), "'aggregates' would be lost"),
        (lambda: kept_by(RunningTotal()), summing("int"), "a processor kept it"),
    ],
)
def test_a_processor_and_an_aggregation_do_not_inherit_from_each_other(files, graph, said):
    """S12."""
    with pytest.raises(JobRejected, match=said):
        judged(files(), graph)


def test_a_refused_job_has_taken_no_epoch():
    """S12, C17: the driver before it could still go on."""
    store = MemoryStore()
    manifests.write(store, a_savepoint(store, kept_by(RunningTotal())))
    graph = processing(History())
    journal = JobLog(store, "memory://jobs/j")
    restore_request = RestoreRequest("second submission", path=f"{PLACE}/_metadata")

    def judge(manifest):
        check_state_compatibility(
            store, manifest, graph, allow_non_restored=False, backend="hashmap"
        )

    starting = JobStartup(store, journal, "memory://jobs/j", "driver", restore_request, judge=judge)
    with pytest.raises(JobRejected, match="would be lost"):
        starting.take_over(graph.topology)

    assert journal.read() == ()
    assert is_new(store, "memory://jobs/j", RestoreRequest("third submission"))
