"""The status of a ``CheckpointedJob``: all that the operator remembers between two reconciles.

The status is a write-ahead log: it records an action before it is executed, and what a new driver
starts from independently of any pod. Only the operator writes it, under an optimistic lock. Its
lists have limits, because a job may run for years.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field, StrictBool

from weir_operator.resource.conditions import Condition
from weir_operator.resource.list_map import ListMap
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
from weir_operator.resource.status_model import Count, StatusModel
from weir_operator.resource.string_types import Message

LONGEST_HISTORY = 20


class LifecycleState(StrEnum):
    """The lifecycle state of a job."""

    CREATED = "Created"
    """The resource was observed; nothing was started."""
    STARTING = "Starting"
    """A driver is starting."""
    RUNNING = "Running"
    """All subtasks run; this version is not stable yet."""
    STABLE = "Stable"
    """All subtasks run, and this version is stable."""
    RECOVERING = "Recovering"
    """The job recovers from a failure with its newest checkpoint."""
    UPGRADING = "Upgrading"
    """The old version is being stopped for a new one."""
    ROLLING_BACK = "RollingBack"
    """The new version is being stopped for the last stable one."""
    ROLLED_BACK = "RolledBack"
    """The last stable version runs, and not the specified one."""
    SUSPENDING = "Suspending"
    """The job is being suspended."""
    SUSPENDED = "Suspended"
    """The job is suspended and can be resumed."""
    FINISHED = "Finished"
    """All sources reached their end, and all output is committed."""
    FAILED = "Failed"
    """The job has stopped and needs a person."""
    DELETING = "Deleting"
    """The resource is being deleted, with its dependents."""


class CheckpointedJobStatus(StatusModel):
    """What the operator knows about the job."""

    observed_generation: Count | None = None
    """Generation of the resource that this status is for."""

    state: LifecycleState = LifecycleState.CREATED
    """Created, Starting, Running, Stable, Recovering, Upgrading, RollingBack, RolledBack,
    Suspending, Suspended, Finished, Failed or Deleting."""

    conditions: Annotated[tuple[Condition, ...], ListMap("type", 16)] = ()
    """Ready, Progressing, Degraded, SpecAccepted and Stable, each with its reason, and
    LocalRecovery if the specification requests it."""

    job_id: Message | None = None
    """Name of the job's directory below checkpointing.storage. It never changes."""

    deployed: SpecVersion | None = None
    """The specification that runs or ran last. It keeps running when an edit is rejected."""

    stable: SpecVersion | None = None
    """The last specification that became stable; a rollback returns to it."""

    stability: Stability | None = None
    """Progress of the deployed specification towards being stable."""

    driver: DriverStatus | None = None
    """The driver's pod of the current attempt."""

    intent: Intent | None = None
    """The action that the operator is about to execute, or has executed without observing the
    result."""

    restore_point: RestorePoint | None = None
    """What the next driver starts from."""

    last_checkpoint: LastCheckpoint | None = None
    """The newest completed checkpoint that the driver has reported."""

    last_savepoint: LastSavepoint | None = None
    """The newest completed savepoint."""

    scheduler_running: StrictBool | None = None
    """Whether periodic checkpoints are being taken; absent when it is unknown."""

    upgrade: Upgrade | None = None
    """The upgrade, suspension or restart in progress, or the last one."""

    rollback: Rollback | None = None
    """The rollback in progress, or the last one until the specification is edited."""

    restarts: Count = 0
    """How often the job has recovered from a failure, in the same driver or with a new one."""

    last_failure: Failure | None = None
    """The last failure."""

    local_recovery: LocalRecoveryStatus | None = None
    """Whether executors keep local copies of state, on which volume, or why not."""

    answered: Answered = Field(default_factory=Answered)
    """Requests that were handled and outcomes that were reported, so that none is repeated."""

    parallelism: Count = 0
    """Parallelism of the deployed specification, for a HorizontalPodAutoscaler."""

    selector: Message | None = None
    """Label selector of the executors, for a HorizontalPodAutoscaler."""

    ended_at: AwareDatetime | None = None
    """When the job finished or failed for good; ttlAfterEnd counts from here."""

    history: Annotated[tuple[HistoryEntry, ...], Field(max_length=LONGEST_HISTORY)] = ()
    """The last 20 events, oldest first."""
