"""What is deleted of a savepoint, and what is refused because it is none."""

import pytest

from weir.core.ids import CheckpointId, Epoch, Millis, OperatorId, SubtaskId
from weir.core.snapshots import (
    CheckpointKind,
    KeyedHandle,
    KeyGroupRange,
    Manifest,
    StateFile,
    SubtaskSnapshot,
)
from weir.errors import JobRejected
from weir.storage import manifests, state_files
from weir.storage.object_store import WriteFailed
from weir.storage.savepoint_disposal import dispose

SUMS = OperatorId("sums")


def put(place, kind=CheckpointKind.SAVEPOINT, *elsewhere):
    """A snapshot of two files, at the place's directory; it may name files elsewhere too."""
    files = [state_files.put(place.store, place.url(f"part-{n}"), b"state") for n in range(2)]
    files += [StateFile(url, 5) for url in elsewhere]
    snapshots = tuple(
        SubtaskSnapshot(SubtaskId(SUMS, n), keyed=(KeyedHandle(KeyGroupRange(n, n), file),))
        for n, file in enumerate(files)
    )
    manifest = Manifest(
        checkpoint=CheckpointId(3),
        epoch=Epoch(1),
        kind=kind,
        taken_at=Millis(1),
        location=place.directory,
        fingerprint=((), ()),
        widths=(),
        snapshots=snapshots,
        finished=(),
        coordinators=(),
        ledgers=(),
    )
    manifests.write(place.store, manifest)


def test_a_disposal_returns_whether_there_was_a_savepoint(place):
    """K5 U3: what never was is not said to be deleted."""
    assert not dispose(place.store, place.directory)
    put(place)
    assert dispose(place.store, place.directory)
    assert not dispose(place.store, place.directory)


class Dying:
    """A store whose process dies after so many deletions."""

    def __init__(self, store, deletions):
        self._store = store
        self._left = deletions

    def __getattr__(self, name):
        return getattr(self._store, name)

    def delete(self, urls):
        for url in urls:
            if not self._left:
                raise WriteFailed("the process died")
            self._left -= 1
            self._store.delete([url])


@pytest.mark.parametrize("kind", [kind for kind in CheckpointKind if kind.is_savepoint])
def test_a_savepoint_is_deleted_with_all_its_files(place, kind):
    """K5: and to delete it again is no mistake."""
    put(place, kind)
    dispose(place.store, place.directory)
    assert [url for url in place.store.list(place.directory) if url != place.directory] == []

    dispose(place.store, place.directory)


@pytest.mark.parametrize("ending", ["/", "/_metadata"])
def test_a_savepoint_is_named_as_for_a_restore(in_memory, ending):
    """C13 K5: by its directory or by its manifest."""
    put(in_memory)
    dispose(in_memory.store, f"{in_memory.directory}{ending}")

    assert in_memory.store.list(in_memory.directory) == ()


@pytest.mark.parametrize("deletions", range(4))
def test_a_deletion_that_died_is_taken_up_where_it_was(in_files, deletions):
    """K5: and what is half deleted is never taken for a savepoint."""
    put(in_files)
    with pytest.raises(WriteFailed):
        dispose(Dying(in_files.store, deletions), in_files.directory)
    is_whole = in_files.store.exists(in_files.url("_metadata"))
    assert is_whole == (deletions == 0)

    dispose(in_files.store, in_files.directory)
    assert in_files.store.list(in_files.directory) == ()


@pytest.mark.parametrize("kind", [CheckpointKind.CHECKPOINT, CheckpointKind.FULL_CHECKPOINT])
def test_a_checkpoint_is_its_jobs_and_is_refused(in_memory, kind):
    """K5 C12: only the job knows who else needs its files."""
    put(in_memory, kind)
    with pytest.raises(JobRejected, match=rf"no savepoint: it is a {kind}.*Remedy"):
        dispose(in_memory.store, in_memory.directory)

    assert len(in_memory.store.list(in_memory.directory)) == 3


def test_a_directory_of_something_else_is_refused(in_memory):
    """K5: a typing error must not delete other data."""
    in_memory.store.write(in_memory.url("family/photo"), b"smile")
    with pytest.raises(JobRejected, match="holds files and no manifest"):
        dispose(in_memory.store, in_memory.directory)

    assert in_memory.store.exists(in_memory.url("family/photo"))


def test_a_damaged_manifest_is_refused_with_the_reason(in_memory):
    """S8 K5: its files are not known."""
    put(in_memory)
    in_memory.store.write(in_memory.url("_metadata"), b"{")
    with pytest.raises(JobRejected, match="its manifest cannot be read: it is not JSON"):
        dispose(in_memory.store, in_memory.directory)


def test_a_manifest_cannot_lead_out_of_its_directory(in_files):
    """X2: a manifest that another party wrote must not delete other files."""
    others = f"{in_files.directory}-others/part-0"
    above = f"{in_files.directory.rpartition('/')[0]}/precious"
    in_files.store.write(others, b"state")
    in_files.store.write(above, b"state")
    put(in_files, CheckpointKind.SAVEPOINT, others, f"{in_files.directory}/../precious")
    dispose(in_files.store, in_files.directory)

    assert in_files.store.exists(others)
    assert in_files.store.exists(above)
    assert not in_files.store.exists(in_files.url("part-0"))
