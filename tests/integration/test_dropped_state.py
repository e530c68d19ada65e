"""A savepoint with state of an operator that the new version of the job has no more."""

import pytest

from counting_job import COUNT, FORGET, SPLITS, a_counting_graph, expected_counts
from fake_connectors import READ, FakeSource
from in_process_job import InProcessJob, all_free
from weir.api.config import load_config
from weir.core.coordinator.actions import RequestSucceeded
from weir.core.policy import Policy, Retention
from weir.core.restore_decision import RestoreRequest
from weir.core.snapshots import CheckpointKind
from weir.driver.driver_environment import DriverEnvironment
from weir.driver.policy_settings import restore_request_of
from weir.errors import JobRejected
from weir.slot.snapshot_storage import SnapshotStorageSettings
from weir.spark.session_settings import from_environment, nested
from weir.state.snapshot_files import read_list
from weir.state.state_file_reader import header_of, rows_of
from weir.storage import state_files
from weir.storage.garbage_collection import collect, scan, unreferenced
from weir.storage.inspection import StateFileReaders, describe, find

OPENING = StateFileReaders(header_of, read_list)
POLICY = Policy(retained=1, retention=Retention.NEVER_RETAIN_AFTER_TERMINATION, incremental=True)


class TwoVersions:
    """A job that has stopped with a savepoint, and its next version, which only counts."""

    def __init__(self, place):
        self.source = FakeSource({split: [] for split in SPLITS}, is_endless=True)
        keeping = SnapshotStorageSettings(f"file://{place}", 0, 0, is_incremental=True)
        self.job = InProcessJob(keeping, lambda width: a_counting_graph(self.source, width))
        self.savepoint = f"file://{place}/savepoint"
        self.feed()
        self.job.start(POLICY, 2, RestoreRequest("first"), all_free(*SPLITS))
        self.take(CheckpointKind.SAVEPOINT, self.savepoint)
        self.job.cancel()
        self.job.graph = lambda width: a_counting_graph(self.source, width, forgets=False)

    def feed(self):
        for split in SPLITS:
            self.source.feed(*range(50), split=split)

    def take(self, kind=CheckpointKind.CHECKPOINT, location=""):
        self.job.settle()
        assert isinstance(self.job.answer(self.job.ask(kind, location)), RequestSucceeded)
        self.job.settle()

    def start(self, variables):
        """As ``weir run`` hands its options on."""
        config = load_config(
            nested(
                {
                    "checkpointing.storage": "file:///anywhere",
                    **from_environment({"WEIR_FROM": self.savepoint, **variables}),
                }
            )
        )
        self.job.start(
            POLICY, 2, restore_request_of(config, DriverEnvironment("second")), all_free(*SPLITS)
        )

    def go_on_for_good(self):
        """Checkpoints that subsume what was restored, the job's end, and a collection."""
        for _ in range(3):
            self.feed()
            self.take()
        self.job.cancel()
        found = scan(self.job.store, self.job.directory)
        collect(self.job.store, found, unreferenced(found))

    def newest(self):
        done = self.job.driver.job.coordinator.checkpoints.completed[-1]
        return describe(self.job.store, done.manifest, OPENING)

    def counts(self, found):
        counted = {}
        for part in found.by_uid[COUNT].keyed[0].parts:
            files = [state_files.fetch(self.job.store, handle.file) for handle in part]
            for batch in rows_of(files, part[0].groups):
                pairs = (batch.column(name).to_pylist() for name in ("n", "count(*)"))
                counted.update(zip(*pairs, strict=True))
        return counted


@pytest.fixture
def versions(tmp_path):
    return TwoVersions(tmp_path)


ALLOWED = {"WEIR_ALLOW_NON_RESTORED_STATE": "true"}


def test_state_without_an_operator_is_refused_by_its_uid(versions):
    """C15: the uid, where its state is, and what to do."""
    remedy = "give the operator its old uid, or set recovery.allowNonRestoredState"
    with pytest.raises(JobRejected, match=rf"'forget'.*{versions.savepoint}.*{remedy}"):
        versions.start({})


def test_a_job_that_may_drop_it_goes_on_with_the_rest(versions):
    """C15: the others' state is restored, and the next checkpoint knows nothing of the dropped."""
    versions.start(ALLOWED)
    versions.feed()
    versions.take()
    found = versions.newest()

    assert FORGET not in found.by_uid
    expected = expected_counts(versions.source, found.by_uid[READ].positions)[COUNT]
    assert versions.counts(found) == expected
    assert sum(expected.values()) == 2 * 50 * len(SPLITS)


def test_a_savepoint_keeps_what_was_dropped(versions):
    """C16, S10: NO_CLAIM touches nothing, whatever becomes of the job."""
    versions.start(ALLOWED)
    versions.go_on_for_good()

    found = describe(versions.job.store, find(versions.job.store, versions.savepoint), OPENING)
    assert found.problems == ()
    assert found.by_uid[FORGET].keyed


def test_a_claimed_savepoint_goes_as_a_whole(versions):
    """C16: what was dropped is deleted with the rest, once a checkpoint subsumes it."""
    versions.start({**ALLOWED, "WEIR_CLAIM": "true"})
    assert versions.job.store.list(versions.savepoint)
    versions.go_on_for_good()

    assert versions.job.store.list(versions.savepoint) == ()
