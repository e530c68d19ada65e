"""The asynchronous part of a snapshot: durable before it is acked, deleted when unused."""

import logging
from dataclasses import replace

import pyarrow as pa
import pytest
from polars.exceptions import PanicException

from stepped_slots import SteppedExecutor, a_barrier
from weir.core.alignment import Aligner
from weir.core.ids import ChannelId, CheckpointId, EdgeId, Millis, OperatorId, SubtaskId
from weir.core.reasons import Reason
from weir.core.snapshots import (
    CheckpointKind,
    KeyGroupRange,
    Redistribution,
    Side,
    StateFile,
    SubtaskSnapshot,
    Transaction,
)
from weir.core.task import Ack, Decline, Discard, PersistInFlight, Task
from weir.exchange.batch_sizes import size_of
from weir.ports.operators import Captured, KeyedSnapshot, ListSnapshot
from weir.slot.effects import StartInFlightUpload, StartUpload
from weir.slot.in_flight import read_in_flight
from weir.slot.row_format import ArrowFormat
from weir.slot.snapshot_storage import SnapshotStorage, SnapshotStorageSettings
from weir.slot.snapshot_uploads import (
    MOST_UPLOADS,
    InFlightUploaded,
    SnapshotUploaded,
    SnapshotUploads,
    UploadFailed,
    UploadMemory,
)
from weir.slot.snapshot_writer import SnapshotWriter
from weir.state.snapshot_files import read_list
from weir.storage.local_copies import MARK, Owner

SUBTASK = SubtaskId(OperatorId("sum"), 0)
RUN = (3, 2)
GROUPS = KeyGroupRange(0, 7)
CONTENT = b"a table"
EDGE = ChannelId(EdgeId("e"), 0, 1)
PIECE = KeyedSnapshot(GROUPS, lambda: pa.py_buffer(CONTENT))


def fails():
    raise OSError("the disk is full")


def panics():
    """A panic of Rust code, which PyO3 raises as a BaseException that is no Exception."""
    raise PanicException("not yet implemented")


class Bench:
    """One subtask's uploads, its task, and the orders of the task."""

    def __init__(self, directory):
        self.executor = SteppedExecutor()
        self.task = Task(SUBTASK, Aligner(()), {}, {})
        self.orders = []
        self.results = []
        self.released = []
        self.directory = directory
        self.place = "chk"
        self.use(
            SnapshotStorage(
                SnapshotStorageSettings(f"file://{directory}", inline_threshold=0, memory_limit=0)
            )
        )

    def use(self, files):
        self.files = files
        self.uploads = SnapshotUploads(SUBTASK, UploadMemory())
        self.writer = SnapshotWriter(SUBTASK, RUN, files, ArrowFormat(), self.uploads)

    def start(self, checkpoint=1, kind=CheckpointKind.CHECKPOINT, **captured):
        place = f"file://{self.directory}/{self.place}"
        barrier = a_barrier(checkpoint, kind, location=place)
        self.task.trigger(barrier, Millis(0))
        bare = SubtaskSnapshot(SUBTASK, watermarks=((EdgeId("e"), Millis(5)),), reached_end=True)
        whole = Captured(**captured, release=lambda: self.released.append(checkpoint))
        self._upload(StartUpload(self.uploads.start(barrier, 4, whole), whole, bare))

    def persist(self, rows, checkpoint=1):
        held = sum(ArrowFormat().size_of(batch) for _, _, batches in rows for batch in batches)
        upload = self.uploads.start_in_flight(CheckpointId(checkpoint), held)
        self._upload(StartInFlightUpload(upload, rows))

    def _upload(self, start):
        self.executor.submit(lambda: self._ended(self.writer.write(start)))

    def _ended(self, result):
        self.results.append(result)
        match result:
            case SnapshotUploaded(checkpoint, snapshot):
                self._obey(self.task.captured(checkpoint, snapshot))
            case InFlightUploaded(checkpoint, handles):
                self._obey(self.task.persisted(checkpoint, handles))
            case UploadFailed(checkpoint, reason):
                self._obey(self.task.fail(checkpoint, reason))

    def _obey(self, orders):
        for order in orders:
            self.orders.append(order)
            match order:
                case Discard(checkpoint):
                    self.discard(checkpoint)
                case PersistInFlight(checkpoint, rows):
                    self.persist(rows, checkpoint)

    def discard(self, checkpoint):
        upload = self.uploads.discard(CheckpointId(checkpoint))
        if upload is not None:
            self.executor.submit(self.writer.delete, upload)

    def complete(self, checkpoint):
        referenced = self.uploads.completed(CheckpointId(checkpoint))
        if referenced is not None:
            self.files.completed(Owner(SUBTASK, CheckpointId(checkpoint)), referenced)

    def abort(self, checkpoint=1):
        self._obey(self.task.abort(CheckpointId(checkpoint), Millis(0)))

    def ack(self):
        (ack,) = [order for order in self.orders if isinstance(order, Ack)]
        return ack

    def names(self):
        return sorted(path.name for path in self.directory.rglob("*") if path.is_file())


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def test_a_snapshot_is_acked_with_handles_of_all_its_pieces(bench):
    """C8, S1: keyed state, list state, transactions, watermarks, the end of the data."""
    transaction = Transaction(OperatorId("sum"), CheckpointId(1), "t")
    items = ListSnapshot("splits", Redistribution.SPLIT, (b"a", b"b"))
    bench.start(keyed=(PIECE,), lists=(items,), transactions=(transaction,))
    snapshot = bench.ack().snapshot
    (keyed,), (listed,) = snapshot.keyed, snapshot.lists
    assert bench.files.fetch(keyed.file).to_pybytes() == CONTENT
    assert keyed.groups == GROUPS
    assert read_list(bench.files.fetch(listed.file), 0, 2) == [b"a", b"b"]
    assert (listed.name, listed.items) == ("splits", 2)
    assert snapshot.transactions == (transaction,)
    assert snapshot.watermarks == ((EdgeId("e"), 5),)
    assert snapshot.reached_end


def test_a_list_without_items_is_no_file(bench):
    """S7: an empty list costs no object in storage."""
    bench.start(lists=(ListSnapshot("splits", Redistribution.SPLIT, ()),))
    assert bench.ack().snapshot.lists == ()
    assert bench.names() == []


def test_files_are_named_for_the_attempt_that_wrote_them(bench):
    """C19: two attempts at one checkpoint's place never write the same file."""
    bench.start(keyed=(PIECE,))
    assert bench.names() == ["sum-0-keyed-0-e3-a2"]


def test_transactions_are_durable_before_the_ack(bench):
    """R5: pre-commit, then ack."""
    seen = []
    bench.start(before_ack=(lambda: seen.append(list(bench.orders)),))
    assert seen == [[]]
    assert bench.ack()


def test_an_upload_that_storage_refuses_is_declined_and_leaves_nothing(bench, caplog):
    """C9 C18: reported, never assumed, and what did go up is deleted."""
    caplog.set_level("INFO")
    bench.start(keyed=(PIECE, KeyedSnapshot(GROUPS, fails)))
    declined = [order for order in bench.orders if isinstance(order, Decline)]
    assert [order.reason for order in declined] == [Reason.CHECKPOINT_ASYNC_EXCEPTION]
    (failed,) = bench.results
    assert failed.cause.startswith("OSError: the disk is full")
    assert bench.names() == []
    assert "could not upload checkpoint 1" in caplog.text


def test_a_transaction_that_cannot_be_made_durable_is_a_decline(bench, caplog):
    """C18, R5."""
    caplog.set_level(logging.CRITICAL)
    bench.start(before_ack=(fails,))
    assert [type(order) for order in bench.orders] == [Discard, Decline]


def test_a_panic_of_native_code_in_an_upload_is_a_decline_with_its_reason(bench, caplog):
    """C18: an upload ends in an ack or a decline, whatever is raised."""
    caplog.set_level(logging.INFO)
    bench.start(keyed=(PIECE,), before_ack=(panics,))
    assert [type(order) for order in bench.orders] == [Discard, Decline]
    (failed,) = bench.results
    assert failed.cause.startswith("PanicException: not yet implemented")
    assert bench.names() == []
    assert not bench.uploads.is_busy
    assert "could not upload checkpoint 1: PanicException: not yet implemented" in caplog.text


def test_a_panic_while_data_in_flight_is_written_is_a_decline(bench, caplog):
    """A4, C18."""
    caplog.set_level(logging.CRITICAL)

    class Panicking(SnapshotStorage):
        def put(self, *_, **__):
            panics()

    bench.start()
    bench.orders.clear()
    panicking = Panicking(SnapshotStorageSettings(f"file://{bench.directory}", 0, 0))
    bench.writer = replace(bench.writer, storage=panicking)
    batch = pa.record_batch({"n": [1]})
    bench.persist(((EDGE, Side.INPUT, (batch,)),))
    (declined,) = [order for order in bench.orders if isinstance(order, Decline)]
    assert declined.reason is Reason.CHANNEL_STATE_SHARED_STREAM_EXCEPTION


def test_the_files_of_an_aborted_checkpoint_are_deleted(bench):
    """C9: the subtask that uploaded them deletes them."""
    bench.start(keyed=(PIECE,))
    bench.abort()
    assert bench.names() == []


def test_an_upload_under_way_is_deleted_when_it_has_ended(bench):
    """C9: an abort comes at any moment."""
    bench.executor.is_held = True
    bench.start(keyed=(PIECE,))
    bench.abort()
    bench.executor.release()
    assert not any(isinstance(order, Ack) for order in bench.orders)
    assert bench.names() == []


def test_files_that_cannot_be_deleted_are_left_to_the_garbage_collection(tmp_path, caplog):
    """C9: a failed deletion fails nothing else."""

    class Stubborn(SnapshotStorage):
        def delete(self, paths):
            raise OSError(f"{len(paths)} files are busy")

    bench = Bench(tmp_path)
    files = Stubborn(
        SnapshotStorageSettings(f"file://{tmp_path}", inline_threshold=0, memory_limit=0)
    )
    bench.use(files)
    bench.start(keyed=(PIECE,))
    bench.abort()
    assert "1 files are busy" in caplog.text


def test_old_versions_are_released_once_whatever_becomes_of_the_snapshot(bench, caplog):
    """S3."""
    caplog.set_level(logging.CRITICAL)
    bench.start(1, keyed=(PIECE,))
    bench.start(2, before_ack=(fails,))
    assert bench.released == [1, 2]


def test_data_in_flight_goes_up_before_the_ack(bench):
    """A4: state first, then what the barrier overtook."""
    batch = pa.record_batch({"n": [1, 2]})
    bench.start()
    bench.persist(((EDGE, Side.INPUT, (batch,)),))
    (handle,) = bench.results[-1].handles
    (read,) = read_in_flight(bench.files.fetch(handle.file), None, (), 16)
    assert (handle.channel, handle.side) == (EDGE, Side.INPUT)
    assert read.equals(batch)


def test_data_in_flight_that_cannot_be_written_is_declined(bench, caplog):
    """A4, C18."""
    caplog.set_level(logging.CRITICAL)
    bench.start()
    bench.orders.clear()
    bench.persist(((EDGE, Side.INPUT, ("no batch",)),))
    (declined,) = [order for order in bench.orders if isinstance(order, Decline)]
    assert declined.reason is Reason.CHANNEL_STATE_SHARED_STREAM_EXCEPTION


def test_what_is_still_pending_is_remembered_when_another_completes(bench):
    """C9: a savepoint that completes says nothing about an older checkpoint's files."""
    bench.start(1, keyed=(PIECE,))
    bench.start(2, keyed=(PIECE,))
    bench.uploads.keep_only({CheckpointId(1)})
    bench.discard(2)
    assert len(bench.names()) == 1
    bench.discard(1)
    assert bench.names() == []


def test_the_time_that_both_parts_took_is_known_for_the_ack(bench):
    """A2, U1."""
    bench.start()
    bench.persist(((EDGE, Side.INPUT, (pa.record_batch({"n": [1]}),)),))
    assert [result.timings.sync_ms for result in bench.results] == [4, 4]
    first, second = (result.timings.written_bytes for result in bench.results)
    assert first == 0
    assert second > 0


def test_a_small_piece_is_no_file(tmp_path):
    """S7: it travels in its handle, and there is nothing to delete."""
    bench = Bench(tmp_path)
    files = SnapshotStorage(
        SnapshotStorageSettings(f"file://{tmp_path}", inline_threshold=100, memory_limit=0)
    )
    bench.use(files)
    bench.start(keyed=(PIECE,))
    (keyed,) = bench.ack().snapshot.keyed
    assert keyed.file == StateFile("", len(CONTENT), checksum=keyed.file.checksum, content=CONTENT)
    assert bench.names() == []


def test_uploads_that_pile_up_are_noticed_and_forgotten_when_they_end(bench):
    """R7: each holds a version of the state, so another snapshot is declined instead."""
    bench.executor.is_held = True
    for checkpoint in range(1, MOST_UPLOADS + 1):
        assert not bench.uploads.is_full
        bench.start(checkpoint, keyed=(PIECE,))
        bench.discard(checkpoint)

    assert bench.uploads.is_full
    bench.executor.release()
    assert not bench.uploads.is_full


def test_uploads_of_older_checkpoints_are_reckoned_at_the_size_of_the_last_snapshot(bench):
    """R7, S3: what a version will cost in memory is not known before it has been written."""
    bench.start(1, keyed=(PIECE,))
    assert bench.uploads.unsaved_bytes(CheckpointId(2)) == 0
    bench.executor.is_held = True
    bench.start(2, keyed=(PIECE,), keyed_in_memory=True)
    bench.abort(2)
    bench.start(3, keyed=(PIECE,), keyed_in_memory=True)

    assert bench.uploads.unsaved_bytes(CheckpointId(3)) == len(CONTENT)
    assert bench.uploads.unsaved_bytes(CheckpointId(4)) == 2 * len(CONTENT)
    bench.executor.release()
    assert not bench.uploads.is_busy
    assert bench.uploads.unsaved_bytes(CheckpointId(4)) == 0


def test_uploads_of_state_on_disk_cost_no_memory(bench):
    """R7: however large it is; operator state is in memory with any backend."""
    bench.start(1, keyed=(PIECE,))
    bench.executor.is_held = True
    bench.start(2, keyed=(PIECE,))
    assert bench.uploads.unsaved_bytes(CheckpointId(3)) == 0

    listed = ListSnapshot("splits", Redistribution.SPLIT, [b"x"])
    bench.start(3, lists=(listed,))

    assert bench.uploads.unsaved_bytes(CheckpointId(4)) == len(CONTENT)
    bench.executor.release()


def test_a_restored_state_is_known_by_its_size_before_the_first_snapshot(bench):
    """R7."""
    bench.uploads.restored(CheckpointId(7), [StateFile("a", 30), StateFile("b", 12)])
    bench.executor.is_held = True
    bench.start(8, keyed=(PIECE,), keyed_in_memory=True)

    assert bench.uploads.unsaved_bytes(CheckpointId(9)) == 42


def test_rows_in_flight_count_as_unsaved_until_they_are_durable(bench):
    """R7, A4: exactly, for they are there."""
    batch = pa.record_batch({"n": pa.array([1, 2], pa.int64())})
    bench.start(1)
    bench.executor.is_held = True
    rows = ((EDGE, Side.INPUT, (batch, batch)), (EDGE, Side.OUTPUT, (batch,)))
    bench.persist(rows)

    assert bench.uploads.unsaved_bytes(CheckpointId(2)) == 3 * size_of(batch)
    bench.executor.release()
    assert bench.uploads.unsaved_bytes(CheckpointId(2)) == 0


def test_a_local_copy_lives_as_long_as_a_snapshot_that_may_be_restored(tmp_path):
    """S13: beside each file that goes up, until a newer checkpoint is complete."""
    bench = Bench(tmp_path)
    keeping = SnapshotStorageSettings(
        f"file://{tmp_path}", 0, 0, local_directory=f"{tmp_path}/local"
    )
    bench.use(SnapshotStorage(keeping))

    def copies():
        found = (tmp_path / "local").glob("*/[0-9]*-*")
        return len([place for place in found if not place.name.endswith(MARK)])

    bench.start(1, keyed=(PIECE,))
    bench.complete(1)
    bench.place = "chk-2"
    bench.start(2, keyed=(PIECE,))
    assert copies() == 2
    bench.complete(2)

    assert copies() == 1


def test_a_plain_savepoint_takes_no_copy_and_leaves_those_of_the_checkpoint(tmp_path):
    """S13: a job restarts from its newest checkpoint, not from the user's savepoint."""
    bench = Bench(tmp_path)
    keeping = SnapshotStorageSettings(
        f"file://{tmp_path}", 0, 0, local_directory=f"{tmp_path}/local"
    )
    bench.use(SnapshotStorage(keeping))
    bench.start(1, keyed=(PIECE,))
    bench.complete(1)
    copies = sorted((tmp_path / "local").rglob("*"))

    bench.start(2, keyed=(PIECE,), kind=CheckpointKind.SAVEPOINT)
    bench.complete(2)

    assert sorted((tmp_path / "local").rglob("*")) == copies


def test_a_snapshot_is_read_from_its_local_copy_and_from_storage_without_one(tmp_path):
    """S13: the restored state is the same."""
    keeping = SnapshotStorageSettings(
        f"file://{tmp_path}", 0, 0, local_directory=f"{tmp_path}/local"
    )
    files = SnapshotStorage(keeping)
    owner = Owner(SUBTASK, CheckpointId(1))
    file = files.put(f"file://{tmp_path}/chk-1/state", pa.py_buffer(CONTENT), owner=owner)
    (tmp_path / "chk-1" / "state").unlink()
    assert files.fetch(file).to_pybytes() == CONTENT

    files.put(file.path, pa.py_buffer(CONTENT))
    files.completed(Owner(SUBTASK, CheckpointId(2)), ())
    assert files.held() == ((SUBTASK.index, 2),)
    assert files.fetch(file).to_pybytes() == CONTENT
