"""The actions that the checkpoint coordinator decides on.

Actions are in the imperative: the driver carries them out, in order, and answers with events. The
three reports are for people; no decision depends on them.
"""

from dataclasses import dataclass

from weir.core.barriers import Barrier
from weir.core.ids import AttemptId, CheckpointId, Epoch, Millis, OperatorId, RequestId, SubtaskId
from weir.core.lifecycle import JobStatus
from weir.core.log_entries import Entry
from weir.core.reasons import Reason
from weir.core.snapshots import CheckpointKind, Commit, Manifest, Transaction

Target = tuple[SubtaskId, AttemptId]


@dataclass(frozen=True, slots=True)
class SnapshotOperators:
    """Ask the operators' coordinators for their state, each at its next quiet moment."""

    checkpoint: CheckpointId
    operators: tuple[OperatorId, ...]


@dataclass(frozen=True, slots=True)
class PrepareLocation:
    """Make the savepoint's directory, which must be new."""

    checkpoint: CheckpointId
    location: str


@dataclass(frozen=True, slots=True)
class Trigger:
    """Let these subtasks start the barrier."""

    barrier: Barrier
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class SendToSubtask:
    """Pass an operator's message on, in order with the triggers."""

    operator: OperatorId
    target: Target
    message: object


@dataclass(frozen=True, slots=True)
class NotifyAborted:
    """Notify these subtasks that the checkpoint is aborted."""

    checkpoint: CheckpointId
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class NotifyCompleted:
    """Notify these subtasks that the checkpoint is complete."""

    checkpoint: CheckpointId
    kind: CheckpointKind
    targets: tuple[Target, ...]
    leaving: bool
    """The subtasks that took it with nothing left to process may finish now."""


@dataclass(frozen=True, slots=True)
class WriteManifest:
    """Make the manifest durable; writing the same one twice is one write."""

    manifest: Manifest


@dataclass(frozen=True, slots=True)
class CreateEntry:
    """Create the log's entry exclusively; finding our own there is success."""

    index: int
    entry: Entry


@dataclass(frozen=True, slots=True)
class LookForSuccessor:
    """See whether another driver has created the entry that would be our next.

    A successor may have come so long ago that the entry was truncated since; then the one before
    it, which is ours, is gone too, and the answer is that it was taken.
    """

    index: int


@dataclass(frozen=True, slots=True)
class TruncateLog:
    """Entries below this number may be deleted, oldest first, once it is noted as the floor."""

    below: int


@dataclass(frozen=True, slots=True)
class DeleteFiles:
    """No checkpoint refers to these files any more."""

    operation: int
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommitTransactions:
    """Commit under this number; idempotent by it."""

    epoch: Epoch
    commit: Commit


@dataclass(frozen=True, slots=True)
class ResolveTransactions:
    """Abort what failed attempts of those subtasks left open, except what a commit will take."""

    operation: int
    attempt: AttemptId
    subtasks: tuple[SubtaskId, ...]
    keep: tuple[Transaction, ...]


@dataclass(frozen=True, slots=True)
class RequestSucceeded:
    """The requested checkpoint or savepoint is complete."""

    checkpoint: CheckpointId
    location: str


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """The requested checkpoint or savepoint will not come."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class CompleteRequest:
    """Answer the user's request, once."""

    request: RequestId
    outcome: RequestSucceeded | RequestFailed


@dataclass(frozen=True, slots=True)
class FailAttempt:
    """The attempt must end and be tried anew."""

    reason: Reason
    why: str
    cause: str = ""
    """The cause, if the report of the failed checkpoint has already given it."""


@dataclass(frozen=True, slots=True)
class RestoreNothing:
    """Start empty."""


@dataclass(frozen=True, slots=True)
class RestoreManifest:
    """Start from this manifest.

    ``since`` is the checkpoint's id when this epoch completed it, and zero otherwise: ids of other
    epochs and other jobs are unrelated to what this driver's enumerators have assigned.
    """

    manifest: Manifest
    since: CheckpointId


RestorePoint = RestoreNothing | RestoreManifest


@dataclass(frozen=True, slots=True)
class OfferRestorePoint:
    """What the attempt starts from."""

    attempt: AttemptId
    subtasks: tuple[SubtaskId, ...]
    restore: RestorePoint


@dataclass(frozen=True, slots=True)
class ConfirmStop:
    """The synchronous savepoint is complete: the job ends with it."""


@dataclass(frozen=True, slots=True)
class EndDriver:
    """The job is closed, or lost to another driver: leave, and touch nothing on the way."""

    status: JobStatus
    fenced: bool


@dataclass(frozen=True, slots=True)
class ReportTriggered:
    """For people: a checkpoint began."""

    checkpoint: CheckpointId
    kind: CheckpointKind
    at: Millis


@dataclass(frozen=True, slots=True)
class ReportCompleted:
    """For people: a checkpoint is complete."""

    manifest: Manifest
    duration_ms: int
    finalization_ms: int


@dataclass(frozen=True, slots=True)
class ReportAborted:
    """For people: a checkpoint ended, or a request for one did, and why."""

    checkpoint: CheckpointId
    """Zero when the request never got an id."""
    reason: Reason
    message: str
    failed_triggers: int = 0


AttemptControl = OfferRestorePoint | ConfirmStop
"""For the attempt that runs the job: these two stay inside the core."""

DriverAction = (
    SnapshotOperators
    | PrepareLocation
    | Trigger
    | SendToSubtask
    | NotifyAborted
    | NotifyCompleted
    | WriteManifest
    | CreateEntry
    | LookForSuccessor
    | TruncateLog
    | DeleteFiles
    | CommitTransactions
    | ResolveTransactions
    | CompleteRequest
    | FailAttempt
    | ReportTriggered
    | ReportCompleted
    | ReportAborted
)

Action = DriverAction | EndDriver | AttemptControl
