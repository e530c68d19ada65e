"""The changelog of a subtask: its files, what fails alone, and how it is switched on and off."""

import pyarrow as pa

from captured_state import a_place, written
from logged_state import POLICY, LoggedState, logged
from weir.core.ids import CheckpointId, Millis
from weir.core.snapshots import StateFile
from weir.dataflow.physical import Aggregate
from weir.ports.operators import RestoredState
from weir.slot.snapshot_uploads import SnapshotUploads, UploadMemory
from weir.state.snapshot_files import read_keyed

ROWS = pa.schema([("word", pa.string()), ("n", pa.int64())])
SUMS = (Aggregate("sum", "n", "total"),)


class Sums:
    """Running sums of one subtask."""

    def __init__(self, make):
        self.backend = make(a_place(), (ROWS.field("word"),))
        self.table = self.backend.aggregates(SUMS, ROWS)

    def take(self, words):
        self.table.update(pa.record_batch({"word": words, "n": [1] * len(words)}, ROWS))

    def totals(self):
        (file,) = written(self.backend)
        rows = read_keyed(file[1], file[0]).table.to_pylist()
        return {row["word"]: row["sum(n)"] for row in rows}


def a_logged_job(make, policy=POLICY):
    sums, state = Sums(logged(make)), LoggedState(policy)
    state.begin(sums.backend)
    return sums, state


def test_a_job_without_a_log_restores_one(make_backend, make_other_backend):
    """S5 S10 S14: the files of a log are those of any checkpoint, for either backend."""
    sums, state = a_logged_job(make_backend)
    sums.take(["a", "b"])
    state.checkpoint()
    sums.take(["b", "c"])
    state.cut()
    sums.take(["c"])
    state.checkpoint()
    plain = Sums(make_other_backend)
    files = [(handle.groups, state.content(handle.file)) for handle in state.handles]
    plain.backend.restore(RestoredState(keyed=files))

    assert plain.totals() == {"a": 1, "b": 2, "c": 2}
    sums.backend.close()
    plain.backend.close()


def test_a_log_begins_with_a_whole_state_after_files_that_it_may_not_share(make_backend):
    """S5 C16: as when a job with a log restores a savepoint, or a checkpoint without one."""
    plain = Sums(make_backend)
    plain.take(["a", "b"])
    files = written(plain.backend)
    sums, state = Sums(logged(make_backend)), LoggedState()
    state.begin_from(sums.backend, files)
    sums.take(["b"])
    (handle,) = state.checkpoint()
    rows = read_keyed(state.content(handle.file), handle.groups).table.to_pylist()

    assert {row["word"]: row["sum(n)"] for row in rows} == {"a": 1, "b": 2}
    sums.backend.close()
    plain.backend.close()


def test_a_full_checkpoint_is_one_file(make_backend):
    """S5 C11: it materializes, and later checkpoints build on it."""
    sums, state = a_logged_job(make_backend)
    sums.take(["a", "b"])
    state.checkpoint()
    sums.take(["b"])
    (whole,) = state.checkpoint(full=True)
    sums.take(["c"])

    assert next(h.file.path for h in state.checkpoint()) == whole.file.path
    sums.backend.close()


def test_a_checkpoint_without_changes_uploads_nothing(make_backend):
    """S5: it refers to what is there."""
    sums, state = a_logged_job(make_backend)
    sums.take(["a", "b"])
    before = state.checkpoint()
    files = dict(state.files)

    assert state.checkpoint() == before
    assert state.files == files
    sums.backend.close()


def test_an_upload_between_checkpoints_fails_alone(make_backend, caplog):
    """S5: with a warning and a count; the next checkpoint has its changes."""
    sums, state = a_logged_job(make_backend)
    sums.take(["a"])
    state.checkpoint()
    sums.take(["b"])
    state.cut(fails=True)
    state.cut(whole=True, fails=True)
    handles = state.checkpoint()
    rows = [
        row
        for handle in handles
        for row in read_keyed(state.content(handle.file), handle.groups).table.to_pylist()
    ]

    assert {row["word"] for row in rows} == {"a", "b"}
    assert state.log.failures == 2
    assert "a materialized state of the changelog could not be written" in caplog.text
    sums.backend.close()


def test_changes_go_up_when_they_are_as_large_as_the_threshold(make_backend):
    """S5: what a segment will be is learnt from the last, so keys that repeat cost little."""
    sums, state = a_logged_job(make_backend, POLICY._replace(preemptive_bytes=100_000))
    assert not state.log.wants_segment(99_999)
    assert state.log.wants_segment(100_000)
    sums.take(["a"])
    state.log.captured(2, 1_000_000)
    state.checkpoint()

    assert state.log.size().log_bytes > 0
    assert not state.log.wants_segment(1_000_000 + 100_000), "the first segment was small"
    assert state.log.wants_segment(1_000_000 + 16 * 100_000)
    sums.backend.close()


def test_local_copies_of_the_log_are_kept_until_it_is_truncated(make_backend):
    """S13 S5: also those of files that no checkpoint has named yet."""
    sums, state = a_logged_job(make_backend)
    uploads = SnapshotUploads(a_place().subtask, UploadMemory(), state.log)
    sums.take(["a"])
    (first,) = state.checkpoint()
    uploads.restored(state.completed, [StateFile("older", 1, shared=True)])
    sums.take(["b"])
    state.cut(whole=True)
    (whole,) = set(state.files) - {first.file.path}

    assert uploads.completed(state.completed) == {"older", first.file.path, whole}
    state.checkpoint()
    assert first.file.path not in state.log.segments()
    sums.backend.close()


def test_a_materialization_waits_for_the_first_barrier(make_backend):
    """S5: which says where the files of the log are."""
    sums, state = a_logged_job(make_backend)
    sums.take(["a"])
    state.checkpoint()
    now = Millis(POLICY.materialization_interval_ms)
    state.log.wants_materialization(Millis(0))
    state.log.directory = ""
    assert not state.log.wants_materialization(now)
    state.log.directory = "shared"

    assert state.log.wants_materialization(now)
    assert CheckpointId(1) == state.completed
    sums.backend.close()
