"""What a plan can ask for. Every action can be repeated: its names were chosen before.

Creating meets the same object again and adopts it; deleting what is gone is done; asking the driver
again under the same key asks nothing more. So whoever carries them out needs no memory.
"""

from dataclasses import dataclass

from weir_operator.plan.observed_state import Part
from weir_operator.resource.snapshot import (
    CheckpointedJobSnapshotSpec,
    CheckpointedJobSnapshotStatus,
)
from weir_operator.resource.status_fields import Action as Kind
from weir_operator.resource.status_fields import RestorePoint, SpecVersion


@dataclass(frozen=True, slots=True)
class Ensure:
    """Make what stands beside the driver's pod, or adopt it."""

    part: Part
    attempt: int
    version: SpecVersion
    local_recovery: bool


@dataclass(frozen=True, slots=True)
class CreateDriver:
    """Make the driver's pod, owned by the resource, restarted by nobody but us."""

    name: str
    attempt: int
    version: SpecVersion
    restore: RestorePoint
    job_id: str
    local_recovery: bool


@dataclass(frozen=True, slots=True)
class DeleteDriver:
    """Delete this very pod, by name and uid; by force, do not wait for its node."""

    name: str
    uid: str
    attempt: int
    force: bool = False


@dataclass(frozen=True, slots=True)
class ForceDelete:
    """Delete an executor's pod on a lost node, without waiting for the node."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class RequestSavepoint:
    """Ask the driver for a savepoint, and go on."""

    attempt: int
    key: str
    directory: str | None = None


@dataclass(frozen=True, slots=True)
class RequestCheckpoint:
    """Ask the driver for a checkpoint now."""

    attempt: int
    key: str


@dataclass(frozen=True, slots=True)
class RequestStop:
    """Ask the driver for a savepoint and to end with it, undrained: the job will go on."""

    attempt: int
    key: str


@dataclass(frozen=True, slots=True)
class CreateSnapshot:
    """Make a CheckpointedJobSnapshot."""

    name: str
    spec: CheckpointedJobSnapshotSpec


@dataclass(frozen=True, slots=True)
class DeleteSnapshot:
    """Delete a CheckpointedJobSnapshot whose time is over."""

    name: str


@dataclass(frozen=True, slots=True)
class Dispose:
    """Start the Job that deletes a snapshot's files, in the job's own namespace."""

    snapshot: str
    status: CheckpointedJobSnapshotStatus


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """Delete the resource, because its time after the end is over."""

    name: str


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """Tell whoever watches the resource."""

    reason: str
    message: str
    is_warning: bool = False


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Let the resource go."""


@dataclass(frozen=True, slots=True)
class ReadLive:
    """Look again at once, and ask the API server itself: a verdict hangs on it."""


Effect = (
    CreateDriver
    | DeleteDriver
    | ForceDelete
    | RequestSavepoint
    | RequestCheckpoint
    | RequestStop
    | CreateSnapshot
    | DeleteSnapshot
    | Dispose
    | DeleteJob
)
Action = Effect | Ensure | EmitEvent | RemoveFinalizer | ReadLive

KINDS: dict[type[Effect], Kind] = {
    CreateDriver: Kind.CREATE_DRIVER,
    DeleteDriver: Kind.DELETE_DRIVER,
    ForceDelete: Kind.FORCE_DELETE_PODS,
    RequestSavepoint: Kind.TAKE_SAVEPOINT,
    RequestCheckpoint: Kind.TAKE_CHECKPOINT,
    RequestStop: Kind.STOP_WITH_SAVEPOINT,
    CreateSnapshot: Kind.CREATE_SNAPSHOT,
    DeleteSnapshot: Kind.DELETE_SNAPSHOT,
    Dispose: Kind.DISPOSE,
    DeleteJob: Kind.DELETE_JOB,
}
"""What each effect is called in the status."""
