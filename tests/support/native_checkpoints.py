"""Takes backends through incremental checkpoints with native files, as slots do, and back.

The parts of a slot are the real ones: the writer of snapshots, the files it may refer to, and the
storage that fetches instances. The coordinator's part is only to say which checkpoint completed.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from captured_state import MAX_PARALLELISM
from weir.core.barriers import AlignmentType, Barrier
from weir.core.ids import NO_CHECKPOINT, CheckpointId, Epoch, Millis, OperatorId, SubtaskId
from weir.core.key_groups import range_of
from weir.core.rescale import NativeShare, StateAssignment, assign_state
from weir.core.snapshots import (
    CheckpointKind,
    KeyGroupRange,
    Manifest,
    NativeHandle,
    StateFile,
    SubtaskSnapshot,
    Width,
)
from weir.core.topology import Operator, Topology
from weir.ports.keyed_state import KeyedBackend
from weir.ports.operators import NativeInstance, RestoredState, TaskInfo
from weir.slot.effects import StartUpload
from weir.slot.row_format import ArrowFormat
from weir.slot.snapshot_storage import SnapshotStorage, SnapshotStorageSettings
from weir.slot.snapshot_uploads import SnapshotUploaded, SnapshotUploads, UploadMemory
from weir.slot.snapshot_writer import SnapshotWriter

OP = OperatorId("op")


def a_native_place(index: int = 0, parallelism: int = 1) -> TaskInfo:
    """Of a job whose checkpoints are incremental."""
    place = (SubtaskId(OP, index), parallelism, MAX_PARALLELISM)
    return TaskInfo(*place, 1, 1, lambda: Millis(0), is_incremental=True)


def storage_in(directory: object, local: str = "") -> SnapshotStorage:
    return SnapshotStorage(
        SnapshotStorageSettings(
            f"file://{directory}/chk",
            inline_threshold=0,
            memory_limit=0,
            is_incremental=True,
            local_directory=local,
            restore_directory=f"{directory}/local",
        )
    )


@dataclass
class NativeSubtask:
    """A backend of one subtask and the part of its slot that uploads."""

    backend: KeyedBackend
    place: TaskInfo
    storage: SnapshotStorage
    directory: object
    attempt: int = 1
    uploads: SnapshotUploads = field(init=False)
    written_bytes: int = 0

    def __post_init__(self) -> None:
        self.uploads = SnapshotUploads(self.place.subtask, UploadMemory())
        run = (1, self.attempt)
        self.writer = SnapshotWriter(
            self.place.subtask, run, self.storage, ArrowFormat(), self.uploads
        )

    def checkpoint(
        self,
        number: int,
        base: CheckpointId = NO_CHECKPOINT,
        kind: CheckpointKind = CheckpointKind.CHECKPOINT,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> SubtaskSnapshot:
        """The snapshot, whose upload begins after what happens meanwhile."""
        checkpoint = CheckpointId(number)
        location = f"file://{self.directory}/chk/chk-{number}"
        barrier = Barrier(checkpoint, kind, AlignmentType.ALIGNED, Millis(0), location, base=base)
        captured = self.backend.capture(checkpoint)
        upload = self.uploads.start(barrier, 0, captured)
        meanwhile()
        result = self.writer.write(
            StartUpload(upload, captured, SubtaskSnapshot(self.place.subtask))
        )
        assert isinstance(result, SnapshotUploaded), result
        self.written_bytes = upload.written_bytes
        return result.snapshot

    def completed(self, number: int) -> None:
        self.uploads.completed(CheckpointId(number))
        self.backend.completed(CheckpointId(number))

    def aborted(self, number: int) -> None:
        self.uploads.aborted(CheckpointId(number))
        upload = self.uploads.discard(CheckpointId(number))
        if upload is not None:
            self.writer.delete(upload)

    def restore(self, state_assignment: StateAssignment, number: int) -> list[str]:
        instances = [self.storage.fetch_native(share) for share in state_assignment.native]
        state = RestoredState(
            keyed=[(h.groups, self.storage.fetch(h.file)) for h in state_assignment.keyed],
            native=instances,
            checkpoint=CheckpointId(number),
        )
        self.uploads.native.restored(CheckpointId(number), instances)
        return self.backend.restore(state)


def assigned(
    snapshots: Iterable[SubtaskSnapshot], old: int, new: int
) -> Mapping[SubtaskId, StateAssignment]:
    """Who restores what at another parallelism."""
    topology = Topology((Operator(OP, new, MAX_PARALLELISM),), ())
    return assign_state(a_manifest_of(snapshots, old, new), topology)


def a_manifest_of(snapshots: Iterable[SubtaskSnapshot], old: int, new: int) -> Manifest:
    topology = Topology((Operator(OP, new, MAX_PARALLELISM),), ())
    return Manifest(
        checkpoint=CheckpointId(1),
        epoch=Epoch(1),
        kind=CheckpointKind.CHECKPOINT,
        taken_at=Millis(0),
        location="memory",
        fingerprint=topology.fingerprint(),
        widths=(Width(OP, old, MAX_PARALLELISM),),
        snapshots=tuple(snapshots),
        finished=(),
        coordinators=(),
        ledgers=(),
    )


def share_of(handle: NativeHandle, index: int = 0, parallelism: int = 1) -> NativeShare:
    own = range_of(index, parallelism, MAX_PARALLELISM)
    groups = KeyGroupRange(max(own.first, handle.groups.first), min(own.last, handle.groups.last))
    return NativeShare(groups, handle)


def fetched(storage: SnapshotStorage, snapshot: SubtaskSnapshot) -> list[NativeInstance]:
    return [storage.fetch_native(share_of(handle)) for handle in snapshot.native]


def immutable(snapshot: SubtaskSnapshot) -> dict[str, StateFile]:
    """The SST files by name."""
    return {n.name: n.file for h in snapshot.native for n in h.files if n.file.shared}
