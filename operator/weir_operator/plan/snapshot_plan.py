"""Plans one CheckpointedJobSnapshot: request it, wait for it, record it, dispose of it (spec K5).

The object outlives its job. Its status keeps what the disposal of its files needs from the moment
it is complete. A Job in the same namespace deletes the files, never the operator, and never while a
driver is to start from them. This Job has the credentials of the storage but no volume of the job,
so a user must delete files under file://. The object is deleted last, after its files.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from weir.api.report import JobPhase, Outcome
from weir_operator.plan.cluster_actions import (
    Action,
    Dispose,
    EmitEvent,
    RemoveFinalizer,
    RequestCheckpoint,
    RequestSavepoint,
)
from weir_operator.plan.job_plan import later
from weir_operator.plan.observed_state import (
    Disposal,
    DriverReport,
    ObservedSnapshot,
    RequestReport,
)
from weir_operator.plan.spec_versions import readable
from weir_operator.resource.snapshot import (
    CheckpointedJobSnapshotStatus,
    DisposalMeans,
    SnapshotState,
    SnapshotType,
    Trigger,
    is_on_a_volume,
)
from weir_operator.resource.status import CheckpointedJobStatus, LifecycleState

MAX_FAILURES = 3
REQUEUE_MS = 2_000
_OUT_OF_REACH = (
    "its files are on a volume that only pods of the job mount, so you must delete them yourself"
)
_OPEN = (SnapshotState.PENDING, SnapshotState.IN_PROGRESS)
_NO_MORE = (LifecycleState.FINISHED, LifecycleState.FAILED, LifecycleState.DELETING)


@dataclass(frozen=True, slots=True)
class ObservedJob:
    """The job of a snapshot: its status and its driver's report."""

    status: CheckpointedJobStatus
    report: DriverReport | None = None


@dataclass(frozen=True, slots=True)
class SnapshotPlan:
    """Write the status if it changed or if there are actions, then execute them, then wait."""

    status: CheckpointedJobSnapshotStatus
    actions: tuple[Action, ...] = ()
    requeue_at: datetime | None = None

    def with_status(self, **changes: object) -> "SnapshotPlan":
        fields = dict(self.status) | changes
        return replace(self, status=CheckpointedJobSnapshotStatus.model_validate(fields))

    def with_actions(self, action: Action) -> "SnapshotPlan":
        return replace(self, actions=(*self.actions, action))


def plan_snapshot(
    observed: ObservedSnapshot, job: ObservedJob | None, now: datetime
) -> SnapshotPlan:
    """The plan for a snapshot; ``job`` is none when its CheckpointedJob is gone."""
    plan = _decided(observed, job, now)
    return replace(plan, actions=(*_events(observed, plan), *plan.actions))


def _events(observed: ObservedSnapshot, plan: SnapshotPlan) -> Iterator[EmitEvent]:
    """Events for the changes that users want to know."""
    before, after = observed.status, plan.status
    message = after.message or ""
    is_let_go = RemoveFinalizer() in plan.actions
    if is_let_go and observed.disposal is Disposal.DONE:
        yield EmitEvent("Disposed", f"Files deleted: {after.path}")
    elif is_let_go and observed.spec.trigger is Trigger.PERIODIC and is_on_a_volume(after.path):
        yield EmitEvent("FilesRetained", f"{_OUT_OF_REACH}: {after.path}", is_warning=True)
    elif observed.is_deleted and message and message != before.message:
        yield EmitEvent("DisposalBlocked", message, is_warning=True)
    elif after.state is before.state:
        return
    elif after.state is SnapshotState.COMPLETED:
        yield EmitEvent("Completed", f"Snapshot completed: {after.path}")
    elif after.state in (SnapshotState.FAILED, SnapshotState.ABANDONED):
        yield EmitEvent(str(after.state), message, is_warning=True)


def _decided(observed: ObservedSnapshot, job: ObservedJob | None, now: datetime) -> SnapshotPlan:
    plan = SnapshotPlan(observed.status)
    plan = plan.with_status(in_use=_is_used(observed.status.path, job))
    is_alive = job is not None and job.status.state not in _NO_MORE
    if observed.is_deleted and not (is_alive and _is_being_taken(observed, job)):
        return _release(plan, observed, now)
    if observed.status.state not in _OPEN:
        return plan
    if observed.spec.is_adopted:
        return _adopted(plan, observed, job, now)
    if job is None or not is_alive:
        return plan.with_status(
            state=SnapshotState.ABANDONED,
            message="the job was deleted before the snapshot could be taken",
        )
    return _take(plan, observed, job, now)


def _is_being_taken(observed: ObservedSnapshot, job: ObservedJob | None) -> bool:
    """Whether files may still appear that must be deleted; without a driver there are none."""
    has_driver = job is not None and job.status.state is not LifecycleState.SUSPENDED
    is_asked_for = observed.status.state is SnapshotState.IN_PROGRESS
    return has_driver and is_asked_for and observed.spec.dispose_on_delete


def _is_used(path: str | None, job: ObservedJob | None) -> bool:
    """Whether a driver is to start from it, or may have to after a rollback."""
    if path is None or job is None:
        return False
    status = job.status
    points = [status.restore_point]
    if status.stable is not None:
        points.append(status.stable.left_at)
    return any(point is not None and point.path == path for point in points)


def _take(
    plan: SnapshotPlan, observed: ObservedSnapshot, job: ObservedJob, now: datetime
) -> SnapshotPlan:
    plan = replace(plan, requeue_at=later(now, REQUEUE_MS))
    driver, report = job.status.driver, job.report
    key = _key(observed)
    if driver is None or report is None or report.attempt != driver.attempt:
        return plan.with_status(message="waiting for the job to run")
    request = report.request(key)
    if request is not None:
        return _followed(plan, request, job, now)
    if report.phase is not JobPhase.RUNNING:
        return plan.with_status(message="waiting for the job to run")
    requested_spec = plan.with_status(
        state=SnapshotState.IN_PROGRESS,
        request_id=key,
        started_at=plan.status.started_at or now,
        message=None,
    )
    if observed.spec.type is SnapshotType.CHECKPOINT:
        return requested_spec.with_actions(RequestCheckpoint(driver.attempt, key))
    return requested_spec.with_actions(
        RequestSavepoint(driver.attempt, key, observed.spec.directory)
    )


def _key(observed: ObservedSnapshot) -> str:
    """The key of the request; the object's name may be too long for a key."""
    digest = hashlib.sha256(observed.name.encode()).hexdigest()[:32]
    return f"snapshot-{digest}-{observed.status.failures}"


def _followed(
    plan: SnapshotPlan, request: RequestReport, job: ObservedJob, now: datetime
) -> SnapshotPlan:
    match request.outcome:
        case Outcome.IN_PROGRESS:
            return plan
        case Outcome.COMPLETED if request.durable_path is not None:
            return _completed(plan, job, now).with_status(
                path=request.durable_path,
                checkpoint_id=request.checkpoint or None,
                size_bytes=request.size_bytes,
            )
        case Outcome.COMPLETED:
            return _failed(plan, "the driver reported no path on durable storage")
        case _:
            return _failed(plan, request.message or "the driver gave no reason")


def _failed(plan: SnapshotPlan, why: str) -> SnapshotPlan:
    failures = plan.status.failures + 1
    if failures < MAX_FAILURES:
        return plan.with_status(failures=failures, message=why, request_id=None)
    plan = plan.with_status(state=SnapshotState.FAILED, failures=failures, message=why)
    return replace(plan, requeue_at=None)


def _completed(plan: SnapshotPlan, job: ObservedJob | None, now: datetime) -> SnapshotPlan:
    """Record the completion, with what the disposal will need when the job is gone."""
    started = plan.status.started_at
    took = None if started is None else int((now - started).total_seconds() * 1_000)
    plan = plan.with_status(
        state=SnapshotState.COMPLETED, completed_at=now, duration=took, message=None
    )
    plan = replace(plan, requeue_at=None)
    if job is None or job.status.deployed is None:
        return plan
    deployed = job.status.deployed
    spec = readable(deployed)
    if spec is None:
        return plan
    means = DisposalMeans(
        image=spec.image, service_account=spec.service_account, storage_secrets=spec.storage_secrets
    )
    return plan.with_status(
        disposal=means, job_generation=deployed.generation, job_spec_hash=deployed.hash
    )


def _adopted(
    plan: SnapshotPlan, observed: ObservedSnapshot, job: ObservedJob | None, now: datetime
) -> SnapshotPlan:
    """It exists already; the job's status may hold more than its path."""
    plan = _completed(plan, job, now).with_status(path=observed.spec.adopt_path)
    taken = None if job is None else job.status.last_savepoint
    if job is None or taken is None or taken.snapshot != observed.name:
        return plan
    plan = plan.with_status(
        checkpoint_id=taken.checkpoint_id or None, completed_at=taken.completed_at
    )
    newest = job.status.last_checkpoint
    if newest is None or newest.id != taken.checkpoint_id:
        return plan
    return plan.with_status(size_bytes=newest.size_bytes, duration=newest.duration)


def _disposal_blocker(status: CheckpointedJobSnapshotStatus) -> str | None:
    """Why its files cannot be deleted yet, or not by the operator."""
    if status.in_use:
        return "the job starts from it; it is deleted when the job no longer needs it"
    if is_on_a_volume(status.path):
        return f"{_OUT_OF_REACH}; set disposeOnDelete to false first"
    if status.disposal is None:
        return (
            "the image and the Secrets to delete its files with are unknown;"
            " set disposeOnDelete to false and delete them yourself"
        )
    return None


def _release(plan: SnapshotPlan, observed: ObservedSnapshot, now: datetime) -> SnapshotPlan:
    """Delete the files, if requested; then the object."""
    status = plan.status
    if not observed.spec.dispose_on_delete or status.path is None:
        return plan.with_actions(RemoveFinalizer())
    driver_problem = _disposal_blocker(status)
    if driver_problem is not None:
        return plan.with_status(message=driver_problem)
    match observed.disposal:
        case Disposal.DONE:
            return plan.with_actions(RemoveFinalizer())
        case Disposal.FAILED:
            return plan.with_status(
                message="its files could not be deleted; check the Job, or set disposeOnDelete"
                " to false"
            )
        case Disposal.ABSENT:
            disposing = plan.with_status(state=SnapshotState.DISPOSING, message=observed.refusal)
            disposing = disposing.with_actions(Dispose(observed.name, disposing.status))
            return replace(disposing, requeue_at=later(now, REQUEUE_MS))
        case Disposal.ACTIVE:
            return replace(plan.with_status(message=None), requeue_at=later(now, REQUEUE_MS))
