"""Where the pieces of snapshots go: inside the manifest if small, else into storage."""

import pyarrow as pa
import pytest

from weir.core.snapshots import StateFile
from weir.errors import JobRejected
from weir.slot.snapshot_storage import SnapshotStorage, SnapshotStorageSettings
from weir.storage.state_files import DamagedState

KIB = 1024


@pytest.fixture
def files(tmp_path):
    return SnapshotStorage(
        SnapshotStorageSettings(f"file://{tmp_path}", inline_threshold=20 * KIB, memory_limit=0)
    )


@pytest.fixture
def in_memory():
    return SnapshotStorage(
        SnapshotStorageSettings("memory://weir", inline_threshold=20 * KIB, memory_limit=64 * KIB)
    )


def content(size):
    return pa.py_buffer(b"x" * size)


def test_a_piece_up_to_the_threshold_travels_in_the_manifest(files, tmp_path):
    """S7: small state is inline."""
    piece = files.put(f"file://{tmp_path}/a", content(20 * KIB))
    assert (piece.path, piece.bytes) == ("", 20 * KIB)
    assert list(tmp_path.iterdir()) == []
    assert files.fetch(piece).equals(content(20 * KIB))


def test_a_larger_piece_is_a_file(files, tmp_path):
    """S7."""
    piece = files.put(f"file://{tmp_path}/a", content(20 * KIB + 1))
    assert piece.path == f"file://{tmp_path}/a"
    assert files.fetch(piece).equals(content(20 * KIB + 1))


def test_a_threshold_of_nothing_stores_every_piece_in_a_file(tmp_path):
    """S7."""
    files = SnapshotStorage(
        SnapshotStorageSettings(f"file://{tmp_path}", inline_threshold=0, memory_limit=0)
    )
    assert files.put(f"file://{tmp_path}/a", content(1)).path


def test_in_memory_every_piece_travels_in_the_manifest(in_memory):
    """S7: there is no storage that a slot and the driver could both reach."""
    piece = in_memory.put("memory://weir/job/a", content(64 * KIB))
    assert (piece.path, piece.bytes) == ("", 64 * KIB)
    assert in_memory.fetch(piece).equals(content(64 * KIB))


def test_in_memory_a_piece_above_the_limit_is_refused_with_a_remedy(in_memory):
    """S7, U3: memory is for experiments, refused above a stated size."""
    with pytest.raises(JobRejected) as refused:
        in_memory.put("memory://weir/job/chk-1/sum-0-keyed-0", content(64 * KIB + 1))
    assert str(refused.value) == (
        "sum-0-keyed-0 has 65537 bytes: checkpoints in memory are limited to 65536 for each piece."
        " Remedy: set checkpointing.storage to a directory."
    )


def test_a_piece_that_was_changed_is_refused(files, tmp_path):
    """C18: every state file has a checksum, verified on restore."""
    piece = files.put(f"file://{tmp_path}/a", content(30 * KIB))
    (tmp_path / "a").write_bytes(b"y" * 30 * KIB)
    with pytest.raises(DamagedState, match="bytes are not those"):
        files.fetch(piece)


def test_deleted_pieces_are_gone_and_deleting_again_is_no_error(files, tmp_path):
    """C9: an inline piece has a name, and no file."""
    path = f"file://{tmp_path}/a"
    piece = files.put(path, content(30 * KIB))
    for _ in range(2):
        files.delete([path, f"file://{tmp_path}/never-there"])
    with pytest.raises(DamagedState, match="does not exist"):
        files.fetch(piece)


def test_in_memory_there_is_nothing_to_delete(in_memory):
    """S7."""
    in_memory.delete(["memory://weir/job/a"])


def test_a_savepoint_may_lie_in_another_storage(files, tmp_path):
    """S10: what a job restores from is found by its own URL."""
    elsewhere = tmp_path / "elsewhere"
    piece = files.put(f"file://{elsewhere}/a", content(30 * KIB))
    other = SnapshotStorage(
        SnapshotStorageSettings("memory://weir", inline_threshold=0, memory_limit=KIB)
    )
    assert other.fetch(StateFile(*piece)).equals(content(30 * KIB))
