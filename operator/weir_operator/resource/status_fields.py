"""The parts of a job's status: restore point, driver, intent, upgrade, rollback and others.

Each step of an upgrade is recorded separately. That a savepoint is complete and that the job has
stopped are two steps, so that a failure of the second never loses the first. The intent is written
before its effect, so after a crash the operator knows what may have been done already and repeats
it under the same name, which changes nothing.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field, StrictBool, model_validator

from weir.api.config_problem import Problem
from weir.api.duration import Duration
from weir.api.recovery_config import ClaimMode
from weir.api.storage_url import DurableUrl, StorageUrl
from weir_operator.resource.compression import LARGEST_UNPACKED, NotPacked, packed, unpacked
from weir_operator.resource.conditions import Reason
from weir_operator.resource.deadlines import StartPhase
from weir_operator.resource.list_map import ListMap
from weir_operator.resource.pod_settings import FreeForm
from weir_operator.resource.status_model import Count, StatusModel
from weir_operator.resource.string_types import Message, ObjectName
from weir_operator.resource.upgrade_policy import UpgradeMode

MOST_REPORTED = 32
"""How many reported snapshots or problems are remembered."""


class RestoreType(StrEnum):
    """The kinds of restore points."""

    NOTHING = "Nothing"
    """The job starts without state."""
    PATH = "Path"
    """The job starts from the savepoint or checkpoint at a path."""
    LAST_STATE = "LastState"
    """The job starts from its newest completed checkpoint, none older than the reported one."""


class RestorePoint(StatusModel):
    """What the next driver starts from. It does not depend on a pod."""

    type: RestoreType
    """Nothing, Path, or LastState for the job's newest completed checkpoint."""

    path: DurableUrl | None = None
    """With Path: the savepoint or checkpoint."""

    claim_mode: ClaimMode = ClaimMode.NO_CLAIM
    """With Path: whether the job owns and later deletes it (CLAIM) or never touches it
    (NO_CLAIM)."""

    lowest_checkpoint: Count = 0
    """With LastState: the driver must find this checkpoint or a newer one; with 0 the job has never
    completed one and may start without."""

    deployment: Count = 0
    """Number of the deployment that starts from it; it only grows. A new driver within a deployment
    continues from its newest checkpoint, whatever the deployment once started from."""

    recorded_at: AwareDatetime
    """When it was decided."""

    def contradictions(self) -> Iterator[Problem]:
        """Yield a type Path without a path, and a path with another type."""
        if (self.type is RestoreType.PATH) != (self.path is not None):
            yield self.problem("path", f"type = {self.type}", "give a path with type Path only")


class DriverStatus(StatusModel):
    """The driver's pod of the current attempt."""

    attempt: Count
    """Number of the attempt. It only grows, and the pod is named after it."""

    pod_name: ObjectName
    """Name of the driver's pod."""

    deployment: Count = 0
    """Number of its deployment."""

    pod_uid: Message | None = None
    """Uid of the pod, once it was observed: another pod of the same name is a different one."""

    created_at: AwareDatetime | None = None
    """When the pod was created."""

    phase: StartPhase | None = None
    """Which phase of its start the driver is in (pod, driver, slots, restore); none once all
    subtasks run."""

    phase_since: AwareDatetime | None = None
    """When that phase began; its deadline counts from here."""

    running_since: AwareDatetime | None = None
    """When all subtasks ran for the first time in this attempt."""

    restarts: Count = 0
    """How often this driver has restarted the job."""

    failed_starts: Count = 0
    """How many drivers before this one were lost in a row without a checkpoint or a long run; each
    waits longer than the one before. None once this one has completed a checkpoint."""


class Action(StrEnum):
    """The actions of the operator."""

    CREATE_DRIVER = "CreateDriver"
    """Create the driver's pod with its Service, configuration and Secret."""
    DELETE_DRIVER = "DeleteDriver"
    """Delete the driver's pod, and with it its executors."""
    FORCE_DELETE_PODS = "ForceDeletePods"
    """Delete pods on a lost node without waiting for it."""
    CREATE_SNAPSHOT = "CreateSnapshot"
    """Create a CheckpointedJobSnapshot."""
    DELETE_SNAPSHOT = "DeleteSnapshot"
    """Delete an expired CheckpointedJobSnapshot."""
    TAKE_SAVEPOINT = "TakeSavepoint"
    """Request a savepoint from the driver."""
    TAKE_CHECKPOINT = "TakeCheckpoint"
    """Request a checkpoint from the driver."""
    STOP_WITH_SAVEPOINT = "StopWithSavepoint"
    """Request a savepoint from the driver, and a stop after it."""
    DISPOSE = "Dispose"
    """Create the Job that deletes a snapshot's files."""
    DELETE_JOB = "DeleteJob"
    """Delete the resource, because ttlAfterEnd has passed."""


class Intent(StatusModel):
    """An action that was decided and may or may not have been executed yet."""

    action: Action
    """The action."""

    target: ObjectName
    """Name of its object. Names are fixed in advance, so that repeating the action finds the same
    object."""

    attempt: Count | None = None
    """Attempt of its driver."""

    generation: Count | None = None
    """Generation of the specification that it executes."""

    request_id: Message | None = None
    """Key of a request to the driver; repeating it has no further effect."""

    written_at: AwareDatetime
    """When it was decided."""


class UpgradeCause(StrEnum):
    """Why a job moves to a new driver on purpose."""

    SPEC_CHANGED = "SpecChanged"
    """Its specification was edited."""
    RESCALED = "Rescaled"
    """Only its parallelism was changed."""
    RESTART_NONCE = "RestartNonce"
    """The restart nonce was changed."""
    REDEPLOY_NONCE = "RedeployNonce"
    """The redeploy nonce was changed."""
    SUSPENDED = "Suspended"
    """It was suspended."""
    RESUMED = "Resumed"
    """It is resumed after a suspension."""
    ROLLED_BACK = "RolledBack"
    """The version before did not become stable."""


class StepName(StrEnum):
    """The steps of an upgrade, in order."""

    TAKE_SAVEPOINT = "TakeSavepoint"
    """A savepoint is taken."""
    STOP_DRIVER = "StopDriver"
    """The old driver and its pods end."""
    RECORD_RESTORE_POINT = "RecordRestorePoint"
    """What the new version starts from is recorded."""
    START_DRIVER = "StartDriver"
    """The new driver starts and restores."""
    BECOME_STABLE = "BecomeStable"
    """The new version completes its checkpoints."""


class StepState(StrEnum):
    """The state of a step."""

    PENDING = "Pending"
    """It has not begun."""
    ACTIVE = "Active"
    """It is in progress."""
    DONE = "Done"
    """It is done."""
    SKIPPED = "Skipped"
    """It is not needed."""
    FAILED = "Failed"
    """It could not be done."""


class UpgradeStep(StatusModel):
    """One step of an upgrade."""

    name: StepName
    """TakeSavepoint, StopDriver, RecordRestorePoint, StartDriver or BecomeStable."""

    state: StepState = StepState.PENDING
    """Pending, Active, Done, Skipped or Failed."""

    tries: Count = 0
    """How often it was tried."""

    started_at: AwareDatetime | None = None
    """When it began."""

    ended_at: AwareDatetime | None = None
    """When it ended, successfully or not."""

    deadline: AwareDatetime | None = None
    """When it counts as failed if it has not ended."""

    message: Message | None = None
    """What it waits for, or why it failed or was skipped."""


class Upgrade(StatusModel):
    """A move from one driver to the next, with its steps."""

    cause: UpgradeCause
    """Why: SpecChanged, Rescaled, RestartNonce, RedeployNonce, Suspended, Resumed or
    RolledBack."""

    from_generation: Count | None = None
    """Generation of the specification that ran before."""

    to_generation: Count
    """Generation of the specification that is to run."""

    mode: UpgradeMode
    """The mode in which it is done, which is savepoint's fallback if that was needed."""

    mode_because: Message | None = None
    """Why the mode is not the one of the specification."""

    snapshot: ObjectName | None = None
    """Name of the CheckpointedJobSnapshot of its savepoint."""

    started_at: AwareDatetime
    """When it began."""

    steps: Annotated[tuple[UpgradeStep, ...], ListMap("name", 8)] = ()
    """The steps, in order."""

    next: Message | None = None
    """What happens next, and what it waits for."""


class Rollback(StatusModel):
    """A return to the last stable specification."""

    from_generation: Count
    """Generation of the specification that did not become stable. It is not tried again until the
    specification is edited."""

    to_generation: Count
    """Generation of the stable specification."""

    because: Message
    """Why the newer one counts as failed."""

    restore_point: RestorePoint | None = None
    """What the stable specification starts from."""

    repeats_output: StrictBool = False
    """Whether output that was already committed is written again, with the user's consent."""

    started_at: AwareDatetime
    """When it began."""


class SpecVersion(StatusModel):
    """A specification as it was deployed."""

    generation: Count
    """Generation of the resource."""

    hash: Message
    """Hash of the specification."""

    compressed_spec: Annotated[str, Field(max_length=LARGEST_UNPACKED)] = ""
    """The specification with its defaults, as JSON in gzip in base64: base64 -d | gunzip."""

    uncompressed_spec: FreeForm | None = Field(default=None, alias="spec")
    """The specification as a release before compressedSpec wrote it. It is read, never written."""

    deployed_at: AwareDatetime | None = None
    """When its first driver was created."""

    left_at: RestorePoint | None = None
    """Its state when it stopped for a newer one."""

    @property
    def spec(self) -> dict[str, object]:
        """The specification, decompressed on each access."""
        return unpacked(self.compressed_spec)

    @model_validator(mode="before")
    @classmethod
    def _compressed(cls, given: object) -> object:
        """Compress a specification that an older release, or a new version, gives uncompressed."""
        if not isinstance(given, Mapping) or not isinstance(given.get("spec"), Mapping):
            return given
        rest = {name: value for name, value in given.items() if name != "spec"}
        return {"compressedSpec": packed(given["spec"]), **rest}

    def contradictions(self) -> Iterator[Problem]:
        """Yield a text that is not a compressed specification, before it is needed."""
        try:
            unpacked(self.compressed_spec)
        except NotPacked as problem:
            yield self.problem(
                "compressed_spec",
                str(problem),
                "restore the status from a backup, or delete status.deployed and status.stable",
            )


class Stability(StatusModel):
    """Progress of the deployed specification towards being stable."""

    since: AwareDatetime
    """When it began to run without a restart."""

    checkpoints: Count = 0
    """Checkpoints it has completed since."""

    completed_before: Count = 0
    """Checkpoints that its driver had completed by then."""

    restarts_before: Count = 0
    """Restarts of the job by then."""

    is_stable: StrictBool = False
    """Whether it is stable."""


class LastCheckpoint(StatusModel):
    """The newest completed checkpoint that the driver has reported."""

    id: Count
    """Its number, which only grows."""

    path: StorageUrl | None = None
    """Its path."""

    completed_at: AwareDatetime
    """When it completed."""

    size_bytes: Count | None = None
    """Size of what it stored."""

    duration: Duration | None = None
    """How long it took."""


class LastSavepoint(StatusModel):
    """The newest completed savepoint."""

    path: DurableUrl
    """Its path."""

    snapshot: ObjectName | None = None
    """Name of its CheckpointedJobSnapshot."""

    checkpoint_id: Count | None = None
    """Its number as a checkpoint of the job."""

    completed_at: AwareDatetime
    """When it was complete."""


class Failure(StatusModel):
    """The last time something went wrong."""

    at: AwareDatetime
    """When."""

    reason: Reason
    """One word for it."""

    message: Message
    """What happened and what to do."""


class LocalRecoveryStatus(StatusModel):
    """Whether executors keep local copies of state, as decided when their driver was created."""

    enabled: StrictBool
    """Whether they do."""

    reason: Message | None = None
    """On which volume they do, or why they do not; and what the next driver will do, if other."""


class ReportedSnapshot(StatusModel):
    """A CheckpointedJobSnapshot whose outcome was reported."""

    name: ObjectName
    """Its name."""

    created_at: AwareDatetime
    """When it was created; another one may have its name later."""


class Answered(StatusModel):
    """Requests that were handled and outcomes that were reported, so that none is repeated."""

    savepoint_annotation: Message | None = None
    """Value of the annotation weir.dev/savepoint that was handled last."""

    checkpoint_annotation: Message | None = None
    """Value of the annotation weir.dev/checkpoint that was handled last."""

    savepoint_nonce: Count | None = None
    """Value of savepointNonce that was handled last."""

    restart_nonce: Count | None = None
    """Value of restartNonce that was handled last."""

    redeploy_nonce: Count | None = None
    """Value of redeployNonce that was handled last."""

    periodic_savepoint_at: AwareDatetime | None = None
    """The time of the schedule that was handled last."""

    snapshots: Annotated[tuple[ReportedSnapshot, ...], Field(max_length=MOST_REPORTED)] = ()
    """The youngest snapshots whose outcome was reported, oldest first."""

    troubles: Annotated[tuple[Message, ...], Field(max_length=MOST_REPORTED)] = ()
    """Problems of pods that were reported, each as pod and reason."""


class HistoryEntry(StatusModel):
    """An event in the history of the job."""

    at: AwareDatetime
    """When."""

    reason: Reason
    """A CamelCase reason, the same as that of its Event."""

    message: Message
    """What happened."""

    generation: Count | None = None
    """Generation of the specification that was running."""

    attempt: Count | None = None
    """Attempt of the driver."""
