"""What is wrong with the files of an instance is said before anything is restored from them."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from captured_state import MAX_PARALLELISM
from native_checkpoints import (
    NativeSubtask,
    a_manifest_of,
    a_native_place,
    assigned,
    fetched,
    immutable,
    storage_in,
)
from weir.core.ids import CheckpointId, SubtaskId
from weir.dataflow.types import schema_of
from weir.errors import JobRejected, Unavailable
from weir.ports.operators import RestoredState
from weir.slot.snapshot_storage import SnapshotStorage, SnapshotStorageSettings
from weir.state.row_types import RowType
from weir.state.snapshot_files import read_list
from weir.state.state_file_reader import header_of
from weir.storage.inspection import StateFileReaders, describe, states_of
from weir.storage.state_files import DamagedState
from weir.storage.stores import store_for

KEYS = (pa.field("key", pa.int64()),)


def a_subtask(backends, directory, storage, attempt=1):
    backend = backends(a_native_place(), KEYS)
    state = backend.value_state("s", RowType("state 's'", schema_of("n long")))
    subtask = NativeSubtask(backend, a_native_place(), storage, directory, attempt)
    return subtask, state


def checkpointed(backends, directory, storage):
    subtask, state = a_subtask(backends, directory, storage)
    for key in range(500):
        subtask.backend.seek((key,))
        state.update((key,))
    snapshot = subtask.checkpoint(1)
    subtask.completed(1)
    subtask.backend.close()
    return snapshot


def place_of(snapshot):
    file = next(iter(immutable(snapshot).values()))
    return Path(file.path.removeprefix("file://"))


def restored(backends, directory, storage, snapshot):
    subtask, state = a_subtask(backends, directory, storage, 2)
    subtask.restore(assigned([snapshot], 1, 1)[SubtaskId("op", 0)], 1)
    found = []
    for key in range(500):
        subtask.backend.seek((key,))
        found.append(state.get())
    subtask.backend.close()
    return found


def damage(place):
    content = bytearray(place.read_bytes())
    content[len(content) // 2] ^= 1
    place.unlink()
    place.write_bytes(content)


@pytest.mark.parametrize(
    ("harm", "why"),
    [(Path.unlink, "it does not exist"), (damage, "its bytes are not those that were written")],
)
def test_a_file_that_is_missing_or_damaged_is_named(rocksdb_backends, tmp_path, harm, why):
    """C18 S2: with its path, the reason and the remedy; nothing is left on the local disk."""
    storage = storage_in(tmp_path)
    snapshot = checkpointed(rocksdb_backends, tmp_path, storage)
    harm(place_of(snapshot))

    with pytest.raises(DamagedState) as refused:
        fetched(storage, snapshot)

    assert place_of(snapshot).name in str(refused.value)
    assert why in str(refused.value)
    assert "restore an older checkpoint or a savepoint" in str(refused.value)
    assert not [p for p in (tmp_path / "local").rglob("*") if p.is_file()]


def test_an_instance_that_does_not_open_fails_the_restore_and_nothing_else(
    rocksdb_backends, tmp_path
):
    """R1 S2: the backend is closed afterwards as any other, and its directories are gone."""
    storage = storage_in(tmp_path)
    snapshot = checkpointed(rocksdb_backends, tmp_path, storage)
    subtask, _ = a_subtask(rocksdb_backends, tmp_path, storage, 2)
    (instance,) = fetched(storage, snapshot)
    Path(instance.directory, "CURRENT").write_bytes(b"MANIFEST-999999\n")

    with pytest.raises(Unavailable, match="RocksDB failed"):
        subtask.backend.restore(RestoredState(native=[instance]))
    subtask.backend.close()

    assert not Path(instance.directory).exists()


def test_a_local_directory_that_cannot_be_used_is_refused(rocksdb_backends, tmp_path):
    """U3 S2: with the setting that names it."""
    snapshot = checkpointed(rocksdb_backends, tmp_path, storage_in(tmp_path))
    (tmp_path / "file").touch()
    settings = SnapshotStorageSettings(
        f"file://{tmp_path}/chk", 0, 0, restore_directory=f"{tmp_path}/file"
    )

    with pytest.raises(JobRejected, match=r"set state\.rocksdbLocalDir to a directory"):
        fetched(SnapshotStorage(settings), snapshot)


def test_a_local_disk_that_is_full_is_named(rocksdb_backends, tmp_path):
    """U3 R1 S2: the restore is tried again, for there may be room then."""
    storage = storage_in(tmp_path)
    snapshot = checkpointed(rocksdb_backends, tmp_path, storage)

    with pytest.raises(Unavailable, match=r"make room on that disk"):
        full_disk(storage, snapshot)


def full_disk(storage, snapshot):
    """A file may have no byte more."""
    import resource  # noqa: PLC0415 - only here
    import signal  # noqa: PLC0415 - only here

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handled = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        fetched(storage, snapshot)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handled)


def test_local_copies_are_opened_without_the_network(rocksdb_backends, tmp_path):
    """S13: storage may even have lost the files; a damaged copy leads back to it."""
    storage = storage_in(tmp_path, f"{tmp_path}/copies")
    snapshot = checkpointed(rocksdb_backends, tmp_path, storage)
    copies = [p for p in (tmp_path / "copies").rglob("1-*") if p.is_file()]
    assert len(copies) >= len(immutable(snapshot)) > 0
    remote = place_of(snapshot)
    content = remote.read_bytes()
    remote.unlink()

    assert restored(rocksdb_backends, tmp_path, storage, snapshot) == [(n,) for n in range(500)]

    remote.write_bytes(content)
    for copy in copies:
        damage(copy)
    assert restored(rocksdb_backends, tmp_path, storage, snapshot) == [(n,) for n in range(500)]


def test_a_native_checkpoint_is_described_and_its_rows_are_refused(rocksdb_backends, tmp_path):
    """U2 U3 S2: backend, files and new bytes; a file that is lost is among the problems."""
    snapshot = checkpointed(rocksdb_backends, tmp_path, storage_in(tmp_path))
    manifest = a_manifest_of([snapshot], 1, 1)
    store = store_for("file://")
    readers = StateFileReaders(header_of, read_list)

    (operator,) = describe(store, manifest, readers).operators
    (native,) = operator.native
    assert (native.backend, native.states) == ("rocksdb", ("s",))
    assert native.files == len(snapshot.native[0].files)
    assert native.new_bytes == native.bytes == snapshot.native[0].bytes
    later = describe(store, replace(manifest, checkpoint=CheckpointId(2)), readers)
    shared = sum(file.bytes for file in immutable(snapshot).values())
    assert later.operators[0].native[0].new_bytes == native.bytes - shared
    with pytest.raises(JobRejected, match="take a savepoint, whose files are open"):
        states_of([operator], "s")
    place_of(snapshot).unlink()
    (problem,) = describe(store, manifest, readers).problems
    assert "it does not exist" in str(problem)


def test_an_upload_that_fails_loses_no_change(rocksdb_backends, tmp_path):
    """C18 S2: the checkpoint is declined, and the next one has all of it."""
    storage = storage_in(tmp_path)
    subtask, state = a_subtask(rocksdb_backends, tmp_path, storage)
    for key in range(500):
        subtask.backend.seek((key,))
        state.update((key,))
    captured = subtask.backend.capture(CheckpointId(1))
    captured.release()
    for key in range(0, 500, 2):
        subtask.backend.seek((key,))
        state.update((-key,))

    snapshot = subtask.checkpoint(2)

    expected = [(-n,) if n % 2 == 0 else (n,) for n in range(500)]
    assert restored(rocksdb_backends, tmp_path, storage, snapshot) == expected
    assert snapshot.native[0].groups.last + 1 == MAX_PARALLELISM
    subtask.backend.close()
