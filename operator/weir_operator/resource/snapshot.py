"""A savepoint or checkpoint as an object of the cluster: ``CheckpointedJobSnapshot``.

The object is not the data. Deleting it deletes the files only with ``disposeOnDelete``, which is
false by default: a default must not delete the only copy of a state. The object outlives its job,
so it keeps what the deletion of its files needs.
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
from weir_operator.resource.status_model import Count, StatusModel
from weir_operator.resource.string_types import DnsLabel, Message, ObjectName


class SnapshotType(StrEnum):
    """What a snapshot object refers to."""

    SAVEPOINT = "savepoint"
    """A self-contained copy that belongs to the user."""
    CHECKPOINT = "checkpoint"
    """A checkpoint of the job, which deletes it when newer ones are complete."""


class Trigger(StrEnum):
    """What requested a snapshot."""

    USER = "user"
    """A user who created the object."""
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
    """It was not requested from the driver yet."""
    IN_PROGRESS = "InProgress"
    """It was requested from the driver and is being taken."""
    COMPLETED = "Completed"
    """It is complete and can be restored."""
    FAILED = "Failed"
    """It could not be taken, and is not tried again."""
    ABANDONED = "Abandoned"
    """The job was gone before it could be taken."""
    DISPOSING = "Disposing"
    """The object was deleted, and its files are being deleted."""


def is_on_a_volume(url: str | None) -> bool:
    """Whether only pods with the right volume can access files there, unlike the disposal Job."""
    return url is not None and url.startswith("file://")


class CheckpointedJobSnapshotSpec(Model):
    """Which snapshot to take, or which existing one this object refers to."""

    job_name: DnsLabel
    """Name of the CheckpointedJob in the same namespace."""

    type: SnapshotType = SnapshotType.SAVEPOINT
    """savepoint, or checkpoint for one of the job's own checkpoints."""

    directory: DurableUrl | None = None
    """Directory in which a savepoint is created; the job's checkpointing.savepointDir if not given.
    """

    adopt_path: DurableUrl | None = None
    """Path of an existing savepoint or checkpoint. Nothing is taken then; the object only refers to
    it."""

    dispose_on_delete: StrictBool = False
    """Delete the files together with this object, even when the job is gone. Never while the job is
    using them, never those of a checkpoint, which belong to the job, and never those under file://,
    where only pods of the job find them. This can be changed at any time."""

    trigger: Trigger = Trigger.USER
    """What requested it; the operator sets it on the objects that it creates. Only those of the
    schedule (periodic) are deleted by retention."""

    @property
    def is_adopted(self) -> bool:
        """Whether it exists already, so that nothing is taken."""
        return self.adopt_path is not None

    def contradictions(self) -> Iterator[Problem]:
        """Yield fields that exclude each other."""
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
                "a checkpoint is stored in the job's own storage",
                "remove directory or set type to savepoint",
            )
        if self.dispose_on_delete:
            yield self.problem(
                "dispose_on_delete",
                "a checkpoint belongs to its job, which deletes it",
                "set disposeOnDelete to false or type to savepoint",
            )


class DisposalMeans(StatusModel):
    """What the Job that deletes the files runs with, kept for when the CheckpointedJob is gone."""

    image: Message
    """Image of the job when the snapshot was taken."""

    service_account: DnsLabel
    """Service account of the job."""

    storage_secrets: Annotated[tuple[ObjectName, ...], Field(max_length=16)] = ()
    """Names of the Secrets with the keys of the storage."""


class CheckpointedJobSnapshotStatus(StatusModel):
    """The state of the snapshot."""

    observed_generation: Count | None = None
    """Generation of the object that this status is for."""

    state: SnapshotState = SnapshotState.PENDING
    """Pending, InProgress, Completed, Failed, Abandoned (the job was gone first) or Disposing."""

    request_id: Message | None = None
    """Key of the request to the driver; repeating it has no further effect."""

    path: DurableUrl | None = None
    """Path of the snapshot, once it is complete."""

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
    """When the driver received the request."""

    completed_at: AwareDatetime | None = None
    """When it was complete."""

    job_generation: Count | None = None
    """Generation of the job's specification that was running."""

    job_spec_hash: Message | None = None
    """Hash of the job's specification that was running."""

    failures: Count = 0
    """How many attempts have failed."""

    message: Message | None = None
    """Why it failed, waits or cannot be deleted, and what to do."""

    in_use: StrictBool = False
    """Whether the job was started from it or will be, so that its files are not deleted."""

    disposal: DisposalMeans | None = None
    """What the Job that deletes the files runs with, kept for when the CheckpointedJob is gone."""
