"""The actions of a plan. Every action is idempotent, because its names are fixed in advance.

Creating an existing object adopts it; deleting a missing object succeeds; a repeated request to the
driver with the same key has no further effect. So the executor needs no memory.
"""

from dataclasses import dataclass

from weir_operator.plan.observed_state import Dependent
from weir_operator.resource.snapshot import (
    CheckpointedJobSnapshotSpec,
    CheckpointedJobSnapshotStatus,
)
from weir_operator.resource.status_fields import Action as Kind
from weir_operator.resource.status_fields import RestorePoint, SpecVersion


@dataclass(frozen=True, slots=True)
class EnsureDependent:
    """Create a dependent object of the driver's pod, or adopt it."""

    part: Dependent
    attempt: int
    version: SpecVersion
    local_recovery: bool


@dataclass(frozen=True, slots=True)
class CreateDriver:
    """Create the driver's pod, owned by the resource; only the operator restarts it."""

    name: str
    attempt: int
    version: SpecVersion
    restore: RestorePoint
    job_id: str
    local_recovery: bool


@dataclass(frozen=True, slots=True)
class DeleteDriver:
    """Delete exactly this pod, by name and uid; with force, do not wait for its node."""

    name: str
    uid: str
    attempt: int
    force: bool = False


@dataclass(frozen=True, slots=True)
class ForceDeletePod:
    """Delete an executor's pod on a lost node, without waiting for the node."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class RequestSavepoint:
    """Request a savepoint from the driver; the job continues."""

    attempt: int
    key: str
    directory: str | None = None


@dataclass(frozen=True, slots=True)
class RequestCheckpoint:
    """Request a checkpoint from the driver now."""

    attempt: int
    key: str


@dataclass(frozen=True, slots=True)
class RequestStop:
    """Request stop-with-savepoint without draining: the job will be resumed."""

    attempt: int
    key: str


@dataclass(frozen=True, slots=True)
class CreateSnapshot:
    """Create a CheckpointedJobSnapshot."""

    name: str
    spec: CheckpointedJobSnapshotSpec


@dataclass(frozen=True, slots=True)
class DeleteSnapshot:
    """Delete a CheckpointedJobSnapshot that has expired."""

    name: str


@dataclass(frozen=True, slots=True)
class Dispose:
    """Create the Job that deletes a snapshot's files, in the job's namespace."""

    snapshot: str
    status: CheckpointedJobSnapshotStatus


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """Delete the resource, because ttlAfterEnd has passed."""

    name: str


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """Record an Event for the resource."""

    reason: str
    message: str
    is_warning: bool = False


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Remove the finalizer, so that the resource can be deleted."""


@dataclass(frozen=True, slots=True)
class ReadLive:
    """Reconcile again at once, with a read from the API server: a decision depends on it."""


Effect = (
    CreateDriver
    | DeleteDriver
    | ForceDeletePod
    | RequestSavepoint
    | RequestCheckpoint
    | RequestStop
    | CreateSnapshot
    | DeleteSnapshot
    | Dispose
    | DeleteJob
)
Action = Effect | EnsureDependent | EmitEvent | RemoveFinalizer | ReadLive

KINDS: dict[type[Effect], Kind] = {
    CreateDriver: Kind.CREATE_DRIVER,
    DeleteDriver: Kind.DELETE_DRIVER,
    ForceDeletePod: Kind.FORCE_DELETE_PODS,
    RequestSavepoint: Kind.TAKE_SAVEPOINT,
    RequestCheckpoint: Kind.TAKE_CHECKPOINT,
    RequestStop: Kind.STOP_WITH_SAVEPOINT,
    CreateSnapshot: Kind.CREATE_SNAPSHOT,
    DeleteSnapshot: Kind.DELETE_SNAPSHOT,
    Dispose: Kind.DISPOSE,
    DeleteJob: Kind.DELETE_JOB,
}
"""The name of each effect in the status."""
