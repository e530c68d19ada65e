"""Decides the life of one CheckpointedJobSnapshot: ask, wait, write down, dispose (spec K5).

The object outlives its job. What the disposal of its files needs is kept in its status from the
moment it is complete, and the files are deleted by a Job in the same namespace, never by the
operator, and never while a driver is to start from them. Such a Job has the storage's keys and no
volume of the job, so files under file:// are a person's to delete. The object goes last: it is not
forgotten before its files are gone.
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
from weir_operator.plan.observed_state import Disposal, DriverReport, RequestReport, SeenSnapshot
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

MOST_FAILURES = 3
LOOK_MS = 2_000
_OUT_OF_REACH = (
    "its files are on a volume that only pods of the job have, so you must delete them yourself"
)
_OPEN = (SnapshotState.PENDING, SnapshotState.IN_PROGRESS)
_NO_MORE = (LifecycleState.FINISHED, LifecycleState.FAILED, LifecycleState.DELETING)


@dataclass(frozen=True, slots=True)
class JobSight:
    """The job of a snapshot, as far as it matters here."""

    status: CheckpointedJobStatus
    report: DriverReport | None = None


@dataclass(frozen=True, slots=True)
class SnapshotPlan:
    """Write the status if it changed or if there are actions, then act, then wait."""

    status: CheckpointedJobSnapshotStatus
    actions: tuple[Action, ...] = ()
    look_again: datetime | None = None

    def writing(self, **changes: object) -> "SnapshotPlan":
        fields = dict(self.status) | changes
        return replace(self, status=CheckpointedJobSnapshotStatus.model_validate(fields))

    def doing(self, action: Action) -> "SnapshotPlan":
        return replace(self, actions=(*self.actions, action))


def plan_snapshot(seen: SeenSnapshot, job: JobSight | None, now: datetime) -> SnapshotPlan:
    """What to do about a snapshot; ``job`` is none when its CheckpointedJob is gone."""
    plan = _decided(seen, job, now)
    return replace(plan, actions=(*_events(seen, plan), *plan.actions))


def _events(seen: SeenSnapshot, plan: SnapshotPlan) -> Iterator[EmitEvent]:
    """What the plan makes of the snapshot that people would ask about."""
    before, after = seen.status, plan.status
    message = after.message or ""
    is_let_go = RemoveFinalizer() in plan.actions
    if is_let_go and seen.disposal is Disposal.DONE:
        yield EmitEvent("Disposed", f"the files at {after.path} are deleted")
    elif is_let_go and seen.spec.trigger is Trigger.PERIODIC and is_on_a_volume(after.path):
        yield EmitEvent("FilesStay", f"{_OUT_OF_REACH}: {after.path}", is_warning=True)
    elif seen.is_deleted and message and message != before.message:
        yield EmitEvent("DisposalBlocked", message, is_warning=True)
    elif after.state is before.state:
        return
    elif after.state is SnapshotState.COMPLETED:
        yield EmitEvent("Completed", f"it lies at {after.path}")
    elif after.state in (SnapshotState.FAILED, SnapshotState.ABANDONED):
        yield EmitEvent(str(after.state), message, is_warning=True)


def _decided(seen: SeenSnapshot, job: JobSight | None, now: datetime) -> SnapshotPlan:
    plan = SnapshotPlan(seen.status)
    plan = plan.writing(in_use=_is_used(seen.status.path, job))
    is_alive = job is not None and job.status.state not in _NO_MORE
    if seen.is_deleted and not (is_alive and _is_being_taken(seen, job)):
        return _let_go(plan, seen, now)
    if seen.status.state not in _OPEN:
        return plan
    if seen.spec.is_adopted:
        return _adopted(plan, seen, job, now)
    if job is None or not is_alive:
        return plan.writing(
            state=SnapshotState.ABANDONED, message="the job was gone before it could be taken"
        )
    return _take(plan, seen, job, now)


def _is_being_taken(seen: SeenSnapshot, job: JobSight | None) -> bool:
    """Whether files may still appear that somebody must delete; no driver makes none."""
    has_driver = job is not None and job.status.state is not LifecycleState.SUSPENDED
    is_asked_for = seen.status.state is SnapshotState.IN_PROGRESS
    return has_driver and is_asked_for and seen.spec.dispose_on_delete


def _is_used(path: str | None, job: JobSight | None) -> bool:
    """Whether a driver is to start from it, or may have to after a rollback."""
    if path is None or job is None:
        return False
    status = job.status
    points = [status.restore_point]
    if status.stable is not None:
        points.append(status.stable.left_at)
    return any(point is not None and point.path == path for point in points)


def _take(plan: SnapshotPlan, seen: SeenSnapshot, job: JobSight, now: datetime) -> SnapshotPlan:
    plan = replace(plan, look_again=later(now, LOOK_MS))
    driver, report = job.status.driver, job.report
    key = _key(seen)
    if driver is None or report is None or report.attempt != driver.attempt:
        return plan.writing(message="it waits for the job to run")
    request = report.request(key)
    if request is not None:
        return _followed(plan, request, job, now)
    if report.phase is not JobPhase.RUNNING:
        return plan.writing(message="it waits for the job to run")
    asked = plan.writing(
        state=SnapshotState.IN_PROGRESS,
        request_id=key,
        started_at=plan.status.started_at or now,
        message=None,
    )
    if seen.spec.type is SnapshotType.CHECKPOINT:
        return asked.doing(RequestCheckpoint(driver.attempt, key))
    return asked.doing(RequestSavepoint(driver.attempt, key, seen.spec.directory))


def _key(seen: SeenSnapshot) -> str:
    """Of the request; a name may be longer than a key."""
    digest = hashlib.sha256(seen.name.encode()).hexdigest()[:32]
    return f"snapshot-{digest}-{seen.status.failures}"


def _followed(
    plan: SnapshotPlan, request: RequestReport, job: JobSight, now: datetime
) -> SnapshotPlan:
    match request.outcome:
        case Outcome.IN_PROGRESS:
            return plan
        case Outcome.COMPLETED if request.place is not None:
            return _completed(plan, job, now).writing(
                path=request.place,
                checkpoint_id=request.checkpoint or None,
                size_bytes=request.size_bytes,
            )
        case Outcome.COMPLETED:
            return _failed(plan, "the driver named no place that outlives it")
        case _:
            return _failed(plan, request.message or "the driver did not say why")


def _failed(plan: SnapshotPlan, why: str) -> SnapshotPlan:
    failures = plan.status.failures + 1
    if failures < MOST_FAILURES:
        return plan.writing(failures=failures, message=why, request_id=None)
    plan = plan.writing(state=SnapshotState.FAILED, failures=failures, message=why)
    return replace(plan, look_again=None)


def _completed(plan: SnapshotPlan, job: JobSight | None, now: datetime) -> SnapshotPlan:
    """It is there; keep what its disposal will need when the job is gone."""
    started = plan.status.started_at
    took = None if started is None else int((now - started).total_seconds() * 1_000)
    plan = plan.writing(
        state=SnapshotState.COMPLETED, completed_at=now, duration=took, message=None
    )
    plan = replace(plan, look_again=None)
    if job is None or job.status.deployed is None:
        return plan
    deployed = job.status.deployed
    spec = readable(deployed)
    if spec is None:
        return plan
    means = DisposalMeans(
        image=spec.image, service_account=spec.service_account, storage_secrets=spec.storage_secrets
    )
    return plan.writing(
        disposal=means, job_generation=deployed.generation, job_spec_hash=deployed.hash
    )


def _adopted(
    plan: SnapshotPlan, seen: SeenSnapshot, job: JobSight | None, now: datetime
) -> SnapshotPlan:
    """It exists already; of one that the job has stopped with, the job knows more than its path."""
    plan = _completed(plan, job, now).writing(path=seen.spec.adopt_path)
    taken = None if job is None else job.status.last_savepoint
    if job is None or taken is None or taken.snapshot != seen.name:
        return plan
    plan = plan.writing(checkpoint_id=taken.checkpoint_id or None, completed_at=taken.completed_at)
    newest = job.status.last_checkpoint
    if newest is None or newest.id != taken.checkpoint_id:
        return plan
    return plan.writing(size_bytes=newest.size_bytes, duration=newest.duration)


def _hindrance(status: CheckpointedJobSnapshotStatus) -> str | None:
    """Why its files cannot be deleted yet, or by us."""
    if status.in_use:
        return "the job starts from it; it goes when the job has moved on"
    if is_on_a_volume(status.path):
        return f"{_OUT_OF_REACH}; set disposeOnDelete to false first"
    if status.disposal is None:
        return (
            "nobody knows with which image and Secrets to delete its files;"
            " set disposeOnDelete to false and delete them yourself"
        )
    return None


def _let_go(plan: SnapshotPlan, seen: SeenSnapshot, now: datetime) -> SnapshotPlan:
    """Files first, if they are to go; then the object."""
    status = plan.status
    if not seen.spec.dispose_on_delete or status.path is None:
        return plan.doing(RemoveFinalizer())
    hindrance = _hindrance(status)
    if hindrance is not None:
        return plan.writing(message=hindrance)
    match seen.disposal:
        case Disposal.DONE:
            return plan.doing(RemoveFinalizer())
        case Disposal.FAILED:
            return plan.writing(
                message="its files could not be deleted; look at the Job, or set disposeOnDelete"
                " to false"
            )
        case Disposal.ABSENT:
            disposing = plan.writing(state=SnapshotState.DISPOSING, message=seen.refusal)
            disposing = disposing.doing(Dispose(seen.name, disposing.status))
            return replace(disposing, look_again=later(now, LOOK_MS))
        case Disposal.ACTIVE:
            return replace(plan.writing(message=None), look_again=later(now, LOOK_MS))
