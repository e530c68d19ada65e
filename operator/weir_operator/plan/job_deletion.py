"""Shuts a job down whose resource was deleted, with a last savepoint on request, in bounded time.

A job that is down takes no savepoint, and an unreachable one is not waited for beyond its deadline
(spec K10). An Event then reports that there is no savepoint, and why (spec K7). Files in storage
stay. The resource owns the pods, so Kubernetes deletes whatever is left.
"""

from dataclasses import replace
from datetime import datetime

from weir.api.report import JobPhase, Outcome
from weir_operator.plan import drivers
from weir_operator.plan.cluster_actions import (
    CreateSnapshot,
    ReadLive,
    RemoveFinalizer,
    RequestStop,
)
from weir_operator.plan.driver_recovery import finished
from weir_operator.plan.job_plan import Plan, later
from weir_operator.plan.observed_state import Observed, RequestReport
from weir_operator.plan.spec_versions import has_failed, is_fully_suspended
from weir_operator.plan.status_update import is_down, is_running
from weir_operator.plan.upgrade_steps import is_in_progress
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.snapshot import CheckpointedJobSnapshotSpec, SnapshotState, Trigger
from weir_operator.resource.status import LifecycleState
from weir_operator.resource.status_fields import LastSavepoint

REQUEUE_MS = 1_000
SAVEPOINT_FAILED = "SavepointFailed"
POD_TERMINATION_TIMEOUT_MS = 120_000
"""How long pods may take to terminate before the finalizer is removed without seeing it."""


def delete(plan: Plan, spec: CheckpointedJobSpec | None, observed: Observed) -> Plan:
    """The next step of the deletion."""
    assert observed.deleted_at is not None, "the resource was deleted"
    plan = plan.with_status(state=LifecycleState.DELETING)
    savepoints = None if spec is None else spec.savepoints
    until = observed.deleted_at
    if savepoints is not None and savepoints.on_deletion:
        until = later(until, savepoints.deletion_deadline)
        plan, is_waiting = _last_savepoint(plan, observed, until)
        if is_waiting:
            return plan
    plan = _with_snapshot_object(plan, observed)
    return _release(plan, observed, later(until, POD_TERMINATION_TIMEOUT_MS))


def _last_savepoint(plan: Plan, observed: Observed, until: datetime) -> tuple[Plan, bool]:
    """Whether to wait for it: not once it is complete, or can no longer be expected."""
    driver, name = plan.status.driver, _name(observed)
    last = plan.status.last_savepoint
    if driver is None or (last is not None and last.snapshot == name):
        return plan, False
    report = drivers.report_of(plan, observed)
    if report is not None and report.phase is JobPhase.FINISHED and plan.status.ended_at is None:
        plan = finished(plan, observed.now)
    request = None if report is None else report.request(name)
    durable_path = None if request is None else request.durable_path
    if request is not None and durable_path is not None:
        taken = LastSavepoint(
            path=durable_path,
            snapshot=name,
            checkpoint_id=request.checkpoint,
            completed_at=observed.now,
        )
        plan = plan.with_status(last_savepoint=taken)
        plan = plan.with_event(
            observed.now, "SavepointCompleted", f"Savepoint completed: {durable_path}"
        )
        return plan.requeue_by(observed.now), True
    why = _why_impossible(plan, observed, request, until)
    if why is not None:
        return _report_missing_savepoint(plan, observed, why), False
    plan = plan.requeue_by(later(observed.now, REQUEUE_MS), until)
    if request is not None or not is_running(plan, observed):
        return plan, True
    return plan.with_actions(RequestStop(driver.attempt, name)), True


def _why_impossible(
    plan: Plan, observed: Observed, request: RequestReport | None, until: datetime
) -> str | None:
    """Why no savepoint can be expected."""
    if request is not None and request.outcome is not Outcome.IN_PROGRESS:
        return request.message or "the driver gave no reason"
    if is_down(plan, observed):
        return "the job is down"
    late = "it did not complete within savepoints.deletionDeadline"
    return late if observed.now >= until else None


def _report_missing_savepoint(plan: Plan, observed: Observed, why: str) -> Plan:
    """Report it once, identified by its name, and only if there was state to save."""
    name = _name(observed)
    was_reported = any(
        one.reason == SAVEPOINT_FAILED and one.message.startswith(name)
        for one in plan.status.history
    )
    if was_reported or _is_saved(plan, observed):
        return plan
    message = f"{name}: {why}; the job is deleted without it, and its files in storage stay"
    return plan.with_event(observed.now, SAVEPOINT_FAILED, message, is_warning=True)


def _is_saved(plan: Plan, observed: Observed) -> bool:
    """Whether the job finished, or was suspended before the deletion."""
    status, last = plan.status, plan.status.last_savepoint
    has_finished = status.ended_at is not None and not has_failed(status)
    has_one = last is not None and last.snapshot in _triggers(plan, observed)
    return has_finished or is_fully_suspended(status) or has_one


def _with_snapshot_object(plan: Plan, observed: Observed) -> Plan:
    """Create the object of the deletion's savepoint, or of an interrupted upgrade's."""
    last, triggers = plan.status.last_savepoint, _triggers(plan, observed)
    if last is None or last.snapshot is None or last.snapshot not in triggers:
        return plan
    if observed.snapshot(last.snapshot) is not None:
        return plan
    spec = CheckpointedJobSnapshotSpec(
        job_name=observed.name, adopt_path=last.path, trigger=triggers[last.snapshot]
    )
    return plan.with_actions(CreateSnapshot(last.snapshot, spec))


def _triggers(plan: Plan, observed: Observed) -> dict[str | None, Trigger]:
    """The savepoints that the job may end with, by name."""
    upgrade = plan.status.upgrade
    triggers: dict[str | None, Trigger] = {_name(observed): Trigger.DELETION}
    if upgrade is not None and upgrade.snapshot is not None and is_in_progress(upgrade):
        triggers[upgrade.snapshot] = Trigger.UPGRADE
    return triggers


def _release(plan: Plan, observed: Observed, until: datetime) -> Plan:
    """Delete the pods; remove the finalizer when they are gone, or at the deadline.

    It also waits for the object of the last savepoint. After the deadline rejected actions are not
    retried: they would block the deletion.
    """
    is_done = not observed.drivers and not plan.actions and _is_written_down(plan, observed)
    if observed.now >= until and observed.refusal is not None:
        return replace(plan, actions=(RemoveFinalizer(),))
    plan = drivers.delete_drivers(plan, observed)
    if observed.now >= until or (is_done and observed.is_live):
        return plan.with_actions(RemoveFinalizer())
    if is_done:
        return plan.with_actions(ReadLive())
    return plan.requeue_by(later(observed.now, REQUEUE_MS), until)


def _is_written_down(plan: Plan, observed: Observed) -> bool:
    """Whether the savepoint's object has copied what only the job's status knows about it."""
    last = plan.status.last_savepoint
    made = None if last is None or last.snapshot is None else observed.snapshot(last.snapshot)
    return made is None or made.status.state is not SnapshotState.PENDING


def _name(observed: Observed) -> str:
    return f"{observed.name}-deletion-{observed.uid[:8]}"
