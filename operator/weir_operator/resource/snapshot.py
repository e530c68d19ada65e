"""A savepoint or checkpoint as an object of the cluster: ``CheckpointedJobSnapshot``.

The object is not the data. Deleting it deletes the files only where ``disposeOnDelete`` says so,
which is false unless somebody wrote otherwise: a default must not delete the only copy of a state.
The object outlives its job, so it keeps what the deletion of its files needs.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field, StrictBool, StrictInt

from weir.api.bounds import Bounds
from weir.api.config_problem import Problem
from weir.api.duration import Duration
from weir.api.model import Model
from weir.api.storage_url import DurableUrl
from weir_operator.resource.status_model import Count, Reported
from weir_operator.resource.string_types import Label, Line, ObjectName


class SnapshotType(StrEnum):
    """What a snapshot object stands for."""

    SAVEPOINT = "savepoint"
    """A copy that stands alone and belongs to the user."""
    CHECKPOINT = "checkpoint"
    """A checkpoint of the job, which deletes it when newer ones are complete."""


class Trigger(StrEnum):
    """Who asked for a snapshot."""

    USER = "user"
    """Somebody who made the object."""
    ANNOTATION = "annotation"
    """The annotation of the job."""
    NONCE = "nonce"
    """The job's savepointNonce."""
    PERIODIC = "periodic"
    """The job's schedule."""
    UPGRADE = "upgrade"
    """An upgrade or suspension of the job."""
    DELETION = "deletion"
    """The deletion of the job."""


class SnapshotState(StrEnum):
    """How far a snapshot is."""

    PENDING = "Pending"
    """The driver has not been asked yet."""
    IN_PROGRESS = "InProgress"
    """The driver was asked; the snapshot is being taken."""
    COMPLETED = "Completed"
    """It lies at its path and can be restored."""
    FAILED = "Failed"
    """It could not be taken, and is not tried again."""
    ABANDONED = "Abandoned"
    """The job was gone before it could be taken."""
    DISPOSING = "Disposing"
    """The object was deleted, and its files are being deleted."""


def is_on_a_volume(url: str | None) -> bool:
    """Whether only pods that have the right volume find files there, and our disposal has none."""
    return url is not None and url.startswith("file://")


class CheckpointedJobSnapshotSpec(Model):
    """Which snapshot is wanted, or which existing one this object stands for."""

    job_name: Label
    """Name of the CheckpointedJob in the same namespace."""

    type: SnapshotType = SnapshotType.SAVEPOINT
    """savepoint, or checkpoint for one of the job's own checkpoints."""

    directory: DurableUrl | None = None
    """Directory below which a savepoint is made; the job's checkpointing.savepointDir if not
    given."""

    adopt_path: DurableUrl | None = None
    """Path of a savepoint or checkpoint that exists already. Nothing is taken then; the object only
    stands for it."""

    dispose_on_delete: StrictBool = False
    """Delete the files together with this object, even when the job is gone. Never while the job is
    using them, never those of a checkpoint, which belong to the job, and never those under file://,
    where only pods of the job find them. This can be changed at any time."""

    trigger: Trigger = Trigger.USER
    """Who asked for it; set by the operator on what it makes itself. Only those of the schedule
    (periodic) are deleted by retention."""

    @property
    def is_adopted(self) -> bool:
        """Whether it exists already, so that nothing is taken."""
        return self.adopt_path is not None

    def contradictions(self) -> Iterator[Problem]:
        """Yield wishes that exclude each other."""
        if self.directory is not None and self.is_adopted:
            yield self.problem(
                "directory", "what is adopted is already somewhere", "remove directory or adoptPath"
            )
        if self.dispose_on_delete and is_on_a_volume(self.adopt_path or self.directory):
            yield self.problem(
                "dispose_on_delete",
                "files under file:// are on a volume that only pods of the job have",
                "set disposeOnDelete to false, and delete them yourself",
            )
        if self.type is not SnapshotType.CHECKPOINT:
            return
        if self.directory is not None:
            yield self.problem(
                "directory",
                "a checkpoint lies in the job's own storage",
                "remove directory or set type to savepoint",
            )
        if self.dispose_on_delete:
            yield self.problem(
                "dispose_on_delete",
                "a checkpoint belongs to its job, which deletes it",
                "set disposeOnDelete to false or type to savepoint",
            )


class DisposalMeans(Reported):
    """What the Job that deletes the files runs with, kept for when the CheckpointedJob is gone."""

    image: Line
    """Image of the job when the snapshot was taken."""

    service_account: Label
    """Service account of the job."""

    storage_secrets: Annotated[tuple[ObjectName, ...], Field(max_length=16)] = ()
    """Names of the Secrets with the keys of the storage."""


class CheckpointedJobSnapshotStatus(Reported):
    """What has become of the snapshot."""

    observed_generation: Count | None = None
    """Generation of the object that this status speaks of."""

    state: SnapshotState = SnapshotState.PENDING
    """Pending, InProgress, Completed, Failed, Abandoned (the job was gone first) or Disposing."""

    request_id: Line | None = None
    """Key under which the driver was asked; asking again under it does nothing more."""

    path: DurableUrl | None = None
    """Where the snapshot lies, once it is complete."""

    checkpoint_id: (
        Annotated[
            StrictInt,
            Bounds(least=1, because="checkpoints are numbered from 1", remedy="use its id"),
        ]
        | None
    ) = None
    """Number of the checkpoint within the job."""

    size_bytes: Count | None = None
    """Size of all its files."""

    duration: Duration | None = None
    """Time from the request to the completion."""

    started_at: AwareDatetime | None = None
    """When the driver was asked."""

    completed_at: AwareDatetime | None = None
    """When it was complete."""

    job_generation: Count | None = None
    """Generation of the job's specification that was running."""

    job_spec_hash: Line | None = None
    """Hash of the job's specification that was running."""

    failures: Count = 0
    """How many attempts have failed."""

    message: Line | None = None
    """Why it failed, waits or cannot be deleted, and what to do."""

    in_use: StrictBool = False
    """Whether the job was started from it or will be, so that its files are not deleted."""

    disposal: DisposalMeans | None = None
    """What the Job that deletes the files runs with, kept for when the CheckpointedJob is gone."""
