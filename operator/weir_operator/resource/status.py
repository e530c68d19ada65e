"""What the operator knows of a ``CheckpointedJob``, and all that it remembers between two looks.

The status is a log written ahead: what is to be done stands here before it is done, and what a new
driver starts from stands here whether or not any pod was ever seen. Only the operator writes it,
under an optimistic lock. Its lists have limits, because a job may run for years.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field, StrictBool

from weir_operator.resource.conditions import Condition
from weir_operator.resource.list_map import By
from weir_operator.resource.status_fields import (
    Answered,
    DriverStatus,
    Failure,
    HistoryEntry,
    Intent,
    LastCheckpoint,
    LastSavepoint,
    LocalRecoveryStatus,
    RestorePoint,
    Rollback,
    SpecVersion,
    Stability,
    Upgrade,
)
from weir_operator.resource.status_model import Count, Reported
from weir_operator.resource.string_types import Line

LONGEST_HISTORY = 20


class LifecycleState(StrEnum):
    """Where a job stands, in one word."""

    CREATED = "Created"
    """The resource was seen; nothing was started."""
    STARTING = "Starting"
    """A driver is on its way to run all subtasks."""
    RUNNING = "Running"
    """All subtasks run; this version has not proved itself yet."""
    STABLE = "Stable"
    """All subtasks run, and this version has proved itself."""
    RECOVERING = "Recovering"
    """Something was lost, and the job goes on from its newest checkpoint."""
    UPGRADING = "Upgrading"
    """The old version is being stopped for a new one."""
    ROLLING_BACK = "RollingBack"
    """The new version is being stopped for the last stable one."""
    ROLLED_BACK = "RolledBack"
    """The last stable version runs, though the specification asks for another."""
    SUSPENDING = "Suspending"
    """The job is being stopped, to go on later."""
    SUSPENDED = "Suspended"
    """The job is stopped and can go on."""
    FINISHED = "Finished"
    """All sources came to their end, and all output is committed."""
    FAILED = "Failed"
    """The job has stopped and needs a person."""
    DELETING = "Deleting"
    """The resource was deleted, and what it made is being deleted."""


class CheckpointedJobStatus(Reported):
    """What the operator knows and remembers of the job."""

    observed_generation: Count | None = None
    """Generation of the resource that this status speaks of."""

    state: LifecycleState = LifecycleState.CREATED
    """Created, Starting, Running, Stable (this version has proved itself), Recovering, Upgrading,
    RollingBack, RolledBack, Suspending, Suspended, Finished, Failed or Deleting."""

    conditions: Annotated[tuple[Condition, ...], By("type", 16)] = ()
    """Ready, Progressing, Degraded, SpecAccepted and Stable, each with its reason, and
    LocalRecovery if the specification asks for it."""

    job_id: Line | None = None
    """Name of the job's directory below checkpointing.storage. It never changes."""

    deployed: SpecVersion | None = None
    """The specification that runs or ran last. It goes on when an edit is refused."""

    stable: SpecVersion | None = None
    """The last specification that became stable, which a rollback goes back to."""

    stability: Stability | None = None
    """How far the deployed specification is on its way to be stable."""

    driver: DriverStatus | None = None
    """The driver's pod of the current attempt."""

    intent: Intent | None = None
    """What the operator is about to do, or has just done and not yet seen the result of."""

    restore_point: RestorePoint | None = None
    """What the next driver starts from."""

    last_checkpoint: LastCheckpoint | None = None
    """The newest completed checkpoint that the driver has told of."""

    last_savepoint: LastSavepoint | None = None
    """The newest completed savepoint."""

    scheduler_running: StrictBool | None = None
    """Whether periodic checkpoints are being taken; not given when nobody could say."""

    upgrade: Upgrade | None = None
    """The upgrade, suspension or restart in progress, or the last one."""

    rollback: Rollback | None = None
    """The rollback in progress, or the last one until the specification is edited."""

    restarts: Count = 0
    """How often the job has recovered from a failure, by itself or with a new driver."""

    last_failure: Failure | None = None
    """The last failure."""

    local_recovery: LocalRecoveryStatus | None = None
    """Whether executors keep local copies of state, on which volume, or why not."""

    answered: Answered = Field(default_factory=Answered)
    """What was carried out or told last, so that nothing is carried out or told twice."""

    parallelism: Count = 0
    """Parallelism of the deployed specification; what a HorizontalPodAutoscaler counts."""

    selector: Line | None = None
    """Label selector of the executors, for a HorizontalPodAutoscaler."""

    ended_at: AwareDatetime | None = None
    """When the job finished or failed for good; ttlAfterEnd counts from here."""

    history: Annotated[tuple[HistoryEntry, ...], Field(max_length=LONGEST_HISTORY)] = ()
    """The last 20 things that happened, oldest first."""
