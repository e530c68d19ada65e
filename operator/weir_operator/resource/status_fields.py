"""The parts of a job's status that tell how far something is: a start, an upgrade, a rollback.

Each step is a fact of its own. That a savepoint is complete and that the job has stopped are two
of them, so that a failure of the second never loses the first. The intent is written before its
effect, so whoever reads this after a crash knows what may have been done already and does it again,
under the same name, which changes nothing.
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
from weir_operator.resource.list_map import By
from weir_operator.resource.pod_settings import FreeForm
from weir_operator.resource.status_model import Count, Reported
from weir_operator.resource.string_types import Line, ObjectName
from weir_operator.resource.upgrade_policy import UpgradeMode

MOST_TOLD = 32
"""How many things of a kind are remembered as told."""


class RestoreType(StrEnum):
    """The kinds of restore points."""

    NOTHING = "Nothing"
    """The job starts without state."""
    PATH = "Path"
    """The job starts from what lies at a path."""
    LAST_STATE = "LastState"
    """The job starts from its newest completed checkpoint, none older than the one we know."""


class RestorePoint(Reported):
    """What the next driver starts from. It stands here whether or not a pod ever started."""

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
    """Number of the deployment that starts from it; it only grows. A driver that takes over within
    a deployment goes on from its newest checkpoint, whatever the deployment once started from."""

    recorded_at: AwareDatetime
    """When it was decided."""

    def contradictions(self) -> Iterator[Problem]:
        """Yield a path without a place, and a place without a path."""
        if (self.type is RestoreType.PATH) != (self.path is not None):
            yield self.problem("path", f"type = {self.type}", "give a path with type Path only")


class DriverStatus(Reported):
    """The driver's pod of the current attempt."""

    attempt: Count
    """Number of the attempt. It only grows, and the pod is named after it."""

    pod_name: ObjectName
    """Name of the driver's pod."""

    deployment: Count = 0
    """Number of the deployment that it serves."""

    pod_uid: Line | None = None
    """Uid of the pod, once it was seen: another pod of the same name is not ours."""

    created_at: AwareDatetime | None = None
    """When the pod was made."""

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
    """What the operator can do to the world."""

    CREATE_DRIVER = "CreateDriver"
    """Make the driver's pod with its Service, configuration and Secret."""
    DELETE_DRIVER = "DeleteDriver"
    """Delete the driver's pod, and with it its executors."""
    FORCE_DELETE_PODS = "ForceDeletePods"
    """Delete pods on a lost node without waiting for it."""
    CREATE_SNAPSHOT = "CreateSnapshot"
    """Make a CheckpointedJobSnapshot."""
    DELETE_SNAPSHOT = "DeleteSnapshot"
    """Delete a CheckpointedJobSnapshot whose time is over."""
    TAKE_SAVEPOINT = "TakeSavepoint"
    """Ask the driver for a savepoint, and go on."""
    TAKE_CHECKPOINT = "TakeCheckpoint"
    """Ask the driver for a checkpoint now."""
    STOP_WITH_SAVEPOINT = "StopWithSavepoint"
    """Ask the driver for a savepoint and to stop after it."""
    DISPOSE = "Dispose"
    """Start the Job that deletes a snapshot's files."""
    DELETE_JOB = "DeleteJob"
    """Delete the resource, because its time after the end is over."""


class Intent(Reported):
    """An effect that was decided and may or may not have happened yet."""

    action: Action
    """What is to be done."""

    target: ObjectName
    """Name of the object it is done to. Names are chosen before, so that doing it again meets the
    same object."""

    attempt: Count | None = None
    """Attempt of the driver that it belongs to."""

    generation: Count | None = None
    """Generation of the specification that it carries out."""

    request_id: Line | None = None
    """Key of a request to the driver; asking again under it does nothing more."""

    written_at: AwareDatetime
    """When it was decided."""


class UpgradeCause(StrEnum):
    """Why a job goes from one driver to the next on purpose."""

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
    """It goes on after a suspension."""
    ROLLED_BACK = "RolledBack"
    """The version before did not become stable."""


class StepName(StrEnum):
    """The steps of an upgrade, in order."""

    TAKE_SAVEPOINT = "TakeSavepoint"
    """A savepoint is taken."""
    STOP_DRIVER = "StopDriver"
    """The old driver and its pods end."""
    RECORD_RESTORE_POINT = "RecordRestorePoint"
    """What the new version starts from is written down."""
    START_DRIVER = "StartDriver"
    """The new driver starts and restores."""
    BECOME_STABLE = "BecomeStable"
    """The new version completes its checkpoints."""


class StepState(StrEnum):
    """How far a step is."""

    PENDING = "Pending"
    """Its turn has not come."""
    ACTIVE = "Active"
    """It is being done."""
    DONE = "Done"
    """It is done."""
    SKIPPED = "Skipped"
    """It is not needed."""
    FAILED = "Failed"
    """It could not be done."""


class UpgradeStep(Reported):
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
    """When it ended, well or not."""

    deadline: AwareDatetime | None = None
    """When it counts as failed if it has not ended."""

    message: Line | None = None
    """What it waits for, or why it failed or was skipped."""


class Upgrade(Reported):
    """A change from one driver to the next, with its steps."""

    cause: UpgradeCause
    """Why: SpecChanged, Rescaled, RestartNonce, RedeployNonce, Suspended, Resumed or
    RolledBack."""

    from_generation: Count | None = None
    """Generation of the specification that ran before."""

    to_generation: Count
    """Generation of the specification that is to run."""

    mode: UpgradeMode
    """The mode in which it is done, which is savepoint's fallback if that was needed."""

    mode_because: Line | None = None
    """Why the mode is not the one of the specification."""

    snapshot: ObjectName | None = None
    """Name of the CheckpointedJobSnapshot of its savepoint."""

    started_at: AwareDatetime
    """When it began."""

    steps: Annotated[tuple[UpgradeStep, ...], By("name", 8)] = ()
    """The steps, in order."""

    next: Line | None = None
    """What happens next, and what it waits for."""


class Rollback(Reported):
    """A return to the last stable specification."""

    from_generation: Count
    """Generation of the specification that did not become stable. It is not tried again until the
    specification is edited."""

    to_generation: Count
    """Generation of the stable specification."""

    because: Line
    """Why the newer one counts as failed."""

    restore_point: RestorePoint | None = None
    """What the stable specification starts from."""

    repeats_output: StrictBool = False
    """Whether output that was already committed is written again, with the user's consent."""

    started_at: AwareDatetime
    """When it began."""


class SpecVersion(Reported):
    """A specification as it was deployed."""

    generation: Count
    """Generation of the resource."""

    hash: Line
    """Hash of the specification."""

    compressed_spec: Annotated[str, Field(max_length=LARGEST_UNPACKED)] = ""
    """The specification, defaults written out, as JSON in gzip in base64: base64 -d | gunzip."""

    uncompressed_spec: FreeForm | None = Field(default=None, alias="spec")
    """The specification as a release before compressedSpec wrote it. It is read, never written."""

    deployed_at: AwareDatetime | None = None
    """When its first driver was made."""

    left_at: RestorePoint | None = None
    """What it had when it stopped for a newer one."""

    @property
    def spec(self) -> dict[str, object]:
        """The specification, unpacked anew each time."""
        return unpacked(self.compressed_spec)

    @model_validator(mode="before")
    @classmethod
    def _compressed(cls, given: object) -> object:
        """Compress what an older release, or a new version, gives as it is."""
        if not isinstance(given, Mapping) or not isinstance(given.get("spec"), Mapping):
            return given
        rest = {name: value for name, value in given.items() if name != "spec"}
        return {"compressedSpec": packed(given["spec"]), **rest}

    def contradictions(self) -> Iterator[Problem]:
        """Yield a text that is no specification: whoever reads it later must not fail at it."""
        try:
            unpacked(self.compressed_spec)
        except NotPacked as problem:
            yield self.problem(
                "compressed_spec",
                str(problem),
                "restore the status from a backup, or delete status.deployed and status.stable",
            )


class Stability(Reported):
    """How far the deployed specification is on its way to be stable."""

    since: AwareDatetime
    """When it began to run without a restart."""

    checkpoints: Count = 0
    """Checkpoints it has completed since."""

    completed_before: Count = 0
    """Checkpoints that its driver had completed by then."""

    restarts_before: Count = 0
    """Restarts of the job by then."""

    is_stable: StrictBool = False
    """Whether that was enough."""


class LastCheckpoint(Reported):
    """The newest completed checkpoint that the driver has told of."""

    id: Count
    """Its number, which only grows."""

    path: StorageUrl | None = None
    """Where it lies."""

    completed_at: AwareDatetime
    """When it was complete."""

    size_bytes: Count | None = None
    """Size of what it stored."""

    duration: Duration | None = None
    """How long it took."""


class LastSavepoint(Reported):
    """The newest completed savepoint."""

    path: DurableUrl
    """Where it lies."""

    snapshot: ObjectName | None = None
    """Name of its CheckpointedJobSnapshot."""

    checkpoint_id: Count | None = None
    """Its number as a checkpoint of the job."""

    completed_at: AwareDatetime
    """When it was complete."""


class Failure(Reported):
    """The last time something went wrong."""

    at: AwareDatetime
    """When."""

    reason: Reason
    """One word for it."""

    message: Line
    """What happened and what to do."""


class LocalRecoveryStatus(Reported):
    """Whether executors keep local copies of state, as decided when their driver was made."""

    enabled: StrictBool
    """Whether they do."""

    reason: Line | None = None
    """On which volume they do, or why they do not; and what the next driver will do, if other."""


class ToldSnapshot(Reported):
    """A CheckpointedJobSnapshot whose outcome was told."""

    name: ObjectName
    """Its name."""

    created_at: AwareDatetime
    """When it was made; another one may have its name later."""


class Answered(Reported):
    """What was carried out or told last, so that nothing is carried out or told twice."""

    savepoint_annotation: Line | None = None
    """Value of the annotation weir.dev/savepoint that was answered last."""

    checkpoint_annotation: Line | None = None
    """Value of the annotation weir.dev/checkpoint that was answered last."""

    savepoint_nonce: Count | None = None
    """Value of savepointNonce that was answered last."""

    restart_nonce: Count | None = None
    """Value of restartNonce that was answered last."""

    redeploy_nonce: Count | None = None
    """Value of redeployNonce that was answered last."""

    periodic_savepoint_at: AwareDatetime | None = None
    """The time of the schedule that was answered last."""

    snapshots: Annotated[tuple[ToldSnapshot, ...], Field(max_length=MOST_TOLD)] = ()
    """The youngest snapshots whose outcome was told, oldest first."""

    troubles: Annotated[tuple[Line, ...], Field(max_length=MOST_TOLD)] = ()
    """Troubles of pods that were told, each as pod and reason."""


class HistoryEntry(Reported):
    """Something that happened, for people."""

    at: AwareDatetime
    """When."""

    reason: Reason
    """One word for it, the same as that of its Event."""

    message: Line
    """What happened."""

    generation: Count | None = None
    """Generation of the specification that was running."""

    attempt: Count | None = None
    """Attempt of the driver."""
