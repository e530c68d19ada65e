"""Which files of an instance go up, and which a checkpoint refers to."""

from weir.core.barriers import AlignmentType, Barrier
from weir.core.ids import CheckpointId, Millis
from weir.core.snapshots import CheckpointKind, StateFile
from weir.ports.operators import LocalFile
from weir.slot.native_files import NativeFiles

SST = LocalFile("000007.sst", "/local/000007.sst", is_immutable=True)
MANIFEST = LocalFile("MANIFEST-000005", "/local/MANIFEST-000005", is_immutable=False)


def stored(files: NativeFiles, checkpoint: int, base: int, instance: str = "a") -> dict[str, str]:
    """The paths by the names of the files."""
    barrier = Barrier(
        CheckpointId(checkpoint),
        CheckpointKind.CHECKPOINT,
        AlignmentType.ALIGNED,
        Millis(0),
        "chk",
        base=CheckpointId(base),
    )

    def put(file: LocalFile) -> StateFile:
        return StateFile(f"{file.name} of {checkpoint}", 1, shared=file.is_immutable)

    return {n.name: n.file.path for n in files.store(barrier, instance, (SST, MANIFEST), put)}


def test_a_file_that_the_base_has_is_referred_to_and_what_changes_goes_up():
    """S2 S4."""
    files = NativeFiles()
    stored(files, 1, 0)
    files.completed(CheckpointId(1))

    assert stored(files, 2, 1) == {
        "000007.sst": "000007.sst of 1",
        "MANIFEST-000005": "MANIFEST-000005 of 2",
    }


def test_a_checkpoint_that_was_aborted_or_whose_fate_is_unknown_is_no_base():
    """S4: its files may be deleted at any moment."""
    files = NativeFiles()
    stored(files, 1, 0)
    assert stored(files, 2, 0)["000007.sst"] == "000007.sst of 2"
    files.aborted(CheckpointId(2))
    files.completed(CheckpointId(2))

    assert stored(files, 3, 2)["000007.sst"] == "000007.sst of 3"


def test_the_same_name_in_another_instance_is_another_file():
    """S4: a restored instance gives names out again that a lost one had."""
    files = NativeFiles()
    stored(files, 1, 0)
    files.completed(CheckpointId(1))

    assert stored(files, 2, 1, instance="b")["000007.sst"] == "000007.sst of 2"
