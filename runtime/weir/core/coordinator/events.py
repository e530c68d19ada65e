"""The events that the checkpoint coordinator decides about.

Events are in the past tense: they report what happened. They are values without behaviour, so a log
of them is a complete record of a driver's run and can be replayed.
"""

from dataclasses import dataclass
from enum import StrEnum

from weir.core.ids import AttemptId, CheckpointId, OperatorId, RequestId, SubtaskId
from weir.core.lifecycle import JobStatus, SubtaskFinished, SubtaskRunning, TimePassed
from weir.core.reasons import Reason
from weir.core.snapshots import CheckpointKind, SubtaskSnapshot


@dataclass(frozen=True, slots=True)
class StatusReported:
    """The job's status changed. The draw, in [0, 1), places the first periodic checkpoint."""

    status: JobStatus
    draw: float


@dataclass(frozen=True, slots=True)
class RestartReported:
    """These subtasks are going down to be started again."""

    subtasks: tuple[SubtaskId, ...]
    whole_job: bool
    why: str


@dataclass(frozen=True, slots=True)
class CheckpointRequested:
    """A user requests a checkpoint or a savepoint, at a given location or at the default one."""

    request: RequestId
    kind: CheckpointKind
    location: str = ""


@dataclass(frozen=True, slots=True)
class OperatorEventSent:
    """An operator coordinator has a message for one of its subtasks, such as a split."""

    operator: OperatorId
    subtask: SubtaskId
    message: object


@dataclass(frozen=True, slots=True)
class OperatorSnapshotted:
    """An operator's coordinator gave its state for a checkpoint."""

    checkpoint: CheckpointId
    operator: OperatorId
    state: object


@dataclass(frozen=True, slots=True)
class OperatorNotSnapshotted:
    """An operator's coordinator could not give its state."""

    checkpoint: CheckpointId
    operator: OperatorId
    cause: str


@dataclass(frozen=True, slots=True)
class LocationPrepared:
    """The savepoint's directory is there and is ours."""

    checkpoint: CheckpointId


@dataclass(frozen=True, slots=True)
class LocationNotPrepared:
    """The savepoint's directory could not be made."""

    checkpoint: CheckpointId
    cause: str


class Phase(StrEnum):
    """How far a subtask has come with a checkpoint."""

    WAITING = "waiting for the barrier"
    ALIGNING = "aligning"
    UPLOADING = "in the asynchronous part"
    ACKED = "acknowledged"


@dataclass(frozen=True, slots=True)
class Timings:
    """How long a subtask's part of a checkpoint took, and how much it moved."""

    start_delay_ms: int = 0
    alignment_ms: int = 0
    sync_ms: int = 0
    async_ms: int = 0
    written_bytes: int = 0
    """What went up for it; older files that it refers to are not counted."""
    processed_bytes: int = 0
    """What went through the operator while it aligned."""


@dataclass(frozen=True, slots=True)
class SubtaskProgressed:
    """A subtask has entered a phase of a checkpoint; only messages to people depend on it."""

    attempt: AttemptId
    checkpoint: CheckpointId
    subtask: SubtaskId
    phase: Phase


@dataclass(frozen=True, slots=True)
class SubtaskAcked:
    """A subtask's snapshot is durable."""

    attempt: AttemptId
    checkpoint: CheckpointId
    subtask: SubtaskId
    snapshot: SubtaskSnapshot
    timings: Timings = Timings()


@dataclass(frozen=True, slots=True)
class SubtaskDeclined:
    """A subtask will not or cannot take part."""

    attempt: AttemptId
    checkpoint: CheckpointId
    subtask: SubtaskId
    reason: Reason
    cause: str = ""


@dataclass(frozen=True, slots=True)
class EndOfDataReached:
    """A subtask has processed its last row and waits for a checkpoint to cover it."""

    attempt: AttemptId
    subtask: SubtaskId


@dataclass(frozen=True, slots=True)
class ManifestWritten:
    """The manifest is durable."""

    checkpoint: CheckpointId


@dataclass(frozen=True, slots=True)
class ManifestNotWritten:
    """The manifest is surely not there."""

    checkpoint: CheckpointId
    cause: str


@dataclass(frozen=True, slots=True)
class ManifestInDoubt:
    """It is unknown whether the manifest was written."""

    checkpoint: CheckpointId


@dataclass(frozen=True, slots=True)
class EntryCreated:
    """The log's entry of that number is ours."""

    index: int


@dataclass(frozen=True, slots=True)
class EntryTaken:
    """The log's entry of that number, or its predecessor, is gone to another driver."""

    index: int


@dataclass(frozen=True, slots=True)
class EntryNotCreated:
    """The entry is surely not there."""

    index: int
    cause: str


@dataclass(frozen=True, slots=True)
class EntryInDoubt:
    """It is unknown whether the entry was created."""

    index: int


@dataclass(frozen=True, slots=True)
class NoSuccessorSeen:
    """The log ends with our own entry: no other driver has taken the job over."""

    index: int


@dataclass(frozen=True, slots=True)
class SuccessorUnknown:
    """The log could not be read."""

    index: int


@dataclass(frozen=True, slots=True)
class FilesDeleted:
    """A deletion is done."""

    operation: int


@dataclass(frozen=True, slots=True)
class FilesNotDeleted:
    """A deletion failed, at least in part."""

    operation: int


@dataclass(frozen=True, slots=True)
class CommitConfirmed:
    """The external system has these transactions committed."""

    sink: OperatorId
    sequence: int


@dataclass(frozen=True, slots=True)
class CommitInDoubt:
    """The commit failed, or its answer was lost."""

    sink: OperatorId
    sequence: int
    why: str = ""
    """What the sink's own code raised; empty if only the answer is missing."""
    error: str = ""
    """The type of the exception; empty if a retry may succeed."""


@dataclass(frozen=True, slots=True)
class TransactionsResolved:
    """No transaction of a failed attempt is left open."""

    operation: int


@dataclass(frozen=True, slots=True)
class TransactionsUnresolved:
    """The external system could not be asked."""

    operation: int
    sink: OperatorId = OperatorId("")
    """The sink whose code raised; empty if only the answer is missing."""
    why: str = ""
    error: str = ""
    """The type of the exception; empty if a retry may succeed."""


@dataclass(frozen=True, slots=True)
class RestorePointRequested:
    """An attempt is about to start these subtasks."""

    attempt: AttemptId
    subtasks: tuple[SubtaskId, ...]


Event = (
    TimePassed
    | StatusReported
    | RestartReported
    | SubtaskRunning
    | SubtaskFinished
    | CheckpointRequested
    | OperatorEventSent
    | OperatorSnapshotted
    | OperatorNotSnapshotted
    | LocationPrepared
    | LocationNotPrepared
    | SubtaskProgressed
    | SubtaskAcked
    | SubtaskDeclined
    | EndOfDataReached
    | ManifestWritten
    | ManifestNotWritten
    | ManifestInDoubt
    | EntryCreated
    | EntryTaken
    | EntryNotCreated
    | EntryInDoubt
    | NoSuccessorSeen
    | SuccessorUnknown
    | FilesDeleted
    | FilesNotDeleted
    | CommitConfirmed
    | CommitInDoubt
    | TransactionsResolved
    | TransactionsUnresolved
    | RestorePointRequested
)
