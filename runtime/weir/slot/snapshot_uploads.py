"""Tracks the uploads of one subtask: which are under way, what they hold, and which are discarded.

Here are the decisions, made on the mailbox's thread; ``snapshot_writer`` does the I/O on upload
threads and sets ``Upload.is_busy``. An upload ends in exactly one of the results below, which the
mailbox delivers to the subtask as mail. A failed upload declines the checkpoint and fails nothing
else. The subtask deletes the files of a checkpoint that is not used, unless it has acked that
checkpoint: then the coordinator owns them (spec C7, C18).
"""

import time
from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from weir.core.barriers import Barrier
from weir.core.coordinator.events import Timings
from weir.core.ids import CheckpointId, SubtaskId
from weir.core.reasons import Reason
from weir.core.snapshots import InFlightHandle, StateFile, SubtaskSnapshot
from weir.exchange import Run
from weir.ports.operators import Captured
from weir.slot.layers import Layers
from weir.slot.native_files import NativeFiles
from weir.slot.state_log import StateLog

MOST_UPLOADS = 4
"""Of one subtask at a time."""

UNSAVED_LIMIT = 1 << 30
"""So many bytes of earlier checkpoints a slot may hold when it takes the next."""


@dataclass(slots=True)
class Upload:
    """The files of one checkpoint of one subtask; shared with the upload's thread."""

    barrier: Barrier
    sync_ms: int
    held_bytes: int = 0
    """Estimate of the memory that the upload holds until it is durable."""
    began: float = field(default_factory=time.monotonic)
    own: list[str] = field(default_factory=list)
    is_busy: bool = True
    is_held: bool = False
    """Pieces of it wait in a file that it shares with other subtasks."""
    is_discarded: bool = False
    async_ms: int = 0
    written_bytes: int = 0

    @property
    def timings(self) -> Timings:
        return Timings(
            sync_ms=self.sync_ms, async_ms=self.async_ms, written_bytes=self.written_bytes
        )


@dataclass(frozen=True, slots=True)
class SnapshotUploaded:
    """The captured state is durable."""

    checkpoint: CheckpointId
    snapshot: SubtaskSnapshot
    timings: Timings


@dataclass(frozen=True, slots=True)
class InFlightUploaded:
    """The rows that the barrier overtook are durable."""

    checkpoint: CheckpointId
    handles: tuple[InFlightHandle, ...]
    timings: Timings


@dataclass(frozen=True, slots=True)
class UploadFailed:
    """Storage or the capture refused; the checkpoint is declined."""

    checkpoint: CheckpointId
    reason: Reason
    cause: str


UploadResult = SnapshotUploaded | InFlightUploaded | UploadFailed


@dataclass(frozen=True, slots=True)
class UploadEnded:
    """Mail: the result of an upload, for a subtask of that run."""

    subtask: SubtaskId
    run: Run
    result: UploadResult


class UploadMemory:
    """The memory that all uploads of one slot hold, against its limit (spec R7)."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit = UNSAVED_LIMIT if limit is None else limit
        self._tracked: list[SnapshotUploads] = []

    def track(self, uploads: "SnapshotUploads") -> None:
        self._tracked.append(uploads)

    def unsaved_bytes(self, before: CheckpointId) -> int:
        """Bytes of older checkpoints that are not durable yet, also of subtasks that have ended."""
        self._tracked = [u for u in self._tracked if u.is_open or u.is_busy]
        return sum(uploads.unsaved_bytes(before) for uploads in self._tracked)

    def refusal(self, checkpoint: CheckpointId) -> str:
        """Why the slot cannot hold another snapshot; empty if it can."""
        unsaved = self.unsaved_bytes(checkpoint)
        if unsaved <= self._limit:
            return ""
        return (
            f"storage is too slow: the slot holds about {unsaved} bytes of earlier checkpoints that"
            f" are not durable yet, above its budget of {self._limit}"
        )


class SnapshotUploads:
    """All uploads of one subtask."""

    def __init__(
        self, subtask: SubtaskId, memory: UploadMemory, log: StateLog | None = None
    ) -> None:
        self._subtask = subtask
        self._memory = memory
        self._uploads: dict[CheckpointId, Upload] = {}
        self._under_way: list[Upload] = []
        self._state_bytes = 0
        """Of the snapshot written last: the next will hold about as much."""
        self.layers = Layers()
        self.log = log
        """Where changes are logged; None: snapshots are layered, or whole."""
        self.native = NativeFiles()
        self.is_open = True
        """Until the subtask ends; its uploads may go on after that."""
        self._referred: dict[CheckpointId, frozenset[str]] = {}
        """The files of each snapshot, as far as local copies of them may be kept."""
        memory.track(self)

    @property
    def referred(self) -> Layers | StateLog:
        """What later checkpoints may refer to."""
        return self.layers if self.log is None else self.log

    @property
    def is_full(self) -> bool:
        """Whether too many uploads are under way, those of aborted checkpoints included.

        Each holds a version of the state, so another snapshot would use memory without a bound.
        """
        return len(self._busy()) >= MOST_UPLOADS

    @property
    def is_busy(self) -> bool:
        return bool(self._busy())

    def unsaved_bytes(self, before: CheckpointId) -> int:
        """What uploads of older checkpoints hold.

        A version of the state costs memory as it is changed and as it is written, which is not
        known beforehand; the estimate is the size of the state in the last snapshot. State that a
        backend keeps on the local disk costs none.
        """
        return sum(u.held_bytes for u in self._busy() if u.barrier.checkpoint < before)

    def _busy(self) -> list[Upload]:
        self._under_way = [u for u in self._under_way if u.is_busy or u.is_held]
        return self._under_way

    def refusal(self, checkpoint: CheckpointId) -> str:
        """Why another snapshot cannot be held; empty if it can (spec R7)."""
        if self.is_full:
            return "storage is too slow: its uploads of earlier checkpoints have not ended"
        return self._memory.refusal(checkpoint)

    def start(self, barrier: Barrier, sync_ms: int, captured: Captured) -> Upload:
        upload = Upload(barrier, sync_ms, self._state_bytes if captured.is_in_memory else 0)
        self._uploads[barrier.checkpoint] = upload
        self._under_way.append(upload)
        return upload

    def start_in_flight(self, checkpoint: CheckpointId, held_bytes: int) -> Upload:
        upload = self._uploads[checkpoint]
        self._under_way = [*self._busy(), upload]
        upload.is_busy = True
        upload.held_bytes = held_bytes
        return upload

    def discard(self, checkpoint: CheckpointId) -> Upload | None:
        """The upload to delete now; one that is under way deletes its files when it ends."""
        upload = self._uploads.pop(checkpoint, None)
        if upload is None:
            return None
        upload.is_discarded = True
        return None if upload.is_busy else upload

    def written(self, snapshot: SubtaskSnapshot, barrier: Barrier) -> None:
        """The state is durable, whatever becomes of its checkpoint. Called by the upload."""
        self._state_bytes = snapshot.bytes
        if barrier.kind.commits:
            self._referred[barrier.checkpoint] = frozenset(f.segment for f in snapshot.files())

    def aborted(self, checkpoint: CheckpointId) -> None:
        """No later snapshot builds on it."""
        self.layers.aborted(checkpoint)
        self.native.aborted(checkpoint)

    def keep_only(self, pending: Container[CheckpointId]) -> None:
        """The coordinator owns the files of all others, or they are deleted."""
        self._uploads = {c: upload for c, upload in self._uploads.items() if c in pending}

    def restored(self, checkpoint: CheckpointId, files: Iterable[StateFile]) -> None:
        known = list(files)
        self._state_bytes = sum(file.bytes for file in known)
        self._referred[checkpoint] = frozenset(file.segment for file in known if file.path)

    def completed(self, checkpoint: CheckpointId) -> frozenset[str] | None:
        """The files whose local copies are still of use; None if the checkpoint ends none.

        A plain savepoint has no copies and ends none: no restart goes back to it by itself.
        """
        self.layers.completed(checkpoint)
        self.native.completed(checkpoint)
        if checkpoint not in self._referred:
            return None
        for older in [c for c in list(self._referred) if c < checkpoint]:
            del self._referred[older]
        logged = self.log.segments() if self.log is not None else frozenset[str]()
        return logged.union(*list(self._referred.values()))
