"""Takes a job down whose resource was deleted, with a last savepoint if asked, and always ends.

A job that is down takes no savepoint, and one that does not answer is not waited for longer than
its deadline (spec K10). Then people are told that there is none, and why (spec K7). What lies in
storage stays. The pods belong to the resource, so Kubernetes deletes whatever is left after it.
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
from weir_operator.plan.spec_versions import has_failed, is_at_rest
from weir_operator.plan.status_update import is_down, is_running
from weir_operator.plan.upgrade_steps import is_moving
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.snapshot import CheckpointedJobSnapshotSpec, SnapshotState, Trigger
from weir_operator.resource.status import LifecycleState
from weir_operator.resource.status_fields import LastSavepoint

LOOK_MS = 1_000
SAVEPOINT_FAILED = "SavepointFailed"
PATIENCE_MS = 120_000
"""How long pods may take to end before the resource goes without having seen it."""


def delete(plan: Plan, spec: CheckpointedJobSpec | None, seen: Observed) -> Plan:
    """The next step towards the end."""
    assert seen.deleted_at is not None, "the resource was deleted"
    plan = plan.writing(state=LifecycleState.DELETING)
    savepoints = None if spec is None else spec.savepoints
    until = seen.deleted_at
    if savepoints is not None and savepoints.on_deletion:
        until = later(until, savepoints.deletion_deadline)
        plan, is_waiting = _last_savepoint(plan, seen, until)
        if is_waiting:
            return plan
    plan = _with_snapshot_object(plan, seen)
    return _let_go(plan, seen, later(until, PATIENCE_MS))


def _last_savepoint(plan: Plan, seen: Observed, until: datetime) -> tuple[Plan, bool]:
    """Whether to wait for it; no longer once there is one, or none can be expected any more."""
    driver, name = plan.status.driver, _name(seen)
    last = plan.status.last_savepoint
    if driver is None or (last is not None and last.snapshot == name):
        return plan, False
    report = drivers.report_of(plan, seen)
    if report is not None and report.phase is JobPhase.FINISHED and plan.status.ended_at is None:
        plan = finished(plan, seen.now)
    request = None if report is None else report.request(name)
    place = None if request is None else request.place
    if request is not None and place is not None:
        taken = LastSavepoint(
            path=place,
            snapshot=name,
            checkpoint_id=request.checkpoint,
            completed_at=seen.now,
        )
        plan = plan.writing(last_savepoint=taken)
        plan = plan.telling(seen.now, "SavepointCompleted", f"savepoint at {place}")
        return plan.looking(seen.now), True
    why = _cannot_be(plan, seen, request, until)
    if why is not None:
        return _given_up(plan, seen, why), False
    plan = plan.looking(later(seen.now, LOOK_MS), until)
    if request is not None or not is_running(plan, seen):
        return plan, True
    return plan.doing(RequestStop(driver.attempt, name)), True


def _cannot_be(
    plan: Plan, seen: Observed, request: RequestReport | None, until: datetime
) -> str | None:
    """Why no savepoint can be expected."""
    if request is not None and request.outcome is not Outcome.IN_PROGRESS:
        return request.message or "the driver did not say why"
    if is_down(plan, seen):
        return "the job is down"
    late = "it was not complete within savepoints.deletionDeadline"
    return late if seen.now >= until else None


def _given_up(plan: Plan, seen: Observed, why: str) -> Plan:
    """Tell it once, by a name that no other entry has, and only if something was to be saved."""
    name = _name(seen)
    was_told = any(
        one.reason == SAVEPOINT_FAILED and one.message.startswith(name)
        for one in plan.status.history
    )
    if was_told or _is_saved(plan, seen):
        return plan
    message = f"{name}: {why}; the job goes without it, and what lies in storage stays"
    return plan.telling(seen.now, SAVEPOINT_FAILED, message, is_warning=True)


def _is_saved(plan: Plan, seen: Observed) -> bool:
    """Whether all sources came to their end, or it was stopped on purpose before the deletion."""
    status, last = plan.status, plan.status.last_savepoint
    has_finished = status.ended_at is not None and not has_failed(status)
    has_one = last is not None and last.snapshot in _triggers(plan, seen)
    return has_finished or is_at_rest(status) or has_one


def _with_snapshot_object(plan: Plan, seen: Observed) -> Plan:
    """The savepoint of the deletion, or of the upgrade that it has cut short, as an object."""
    last, triggers = plan.status.last_savepoint, _triggers(plan, seen)
    if last is None or last.snapshot is None or last.snapshot not in triggers:
        return plan
    if seen.snapshot(last.snapshot) is not None:
        return plan
    spec = CheckpointedJobSnapshotSpec(
        job_name=seen.name, adopt_path=last.path, trigger=triggers[last.snapshot]
    )
    return plan.doing(CreateSnapshot(last.snapshot, spec))


def _triggers(plan: Plan, seen: Observed) -> dict[str | None, Trigger]:
    """The savepoints that the job may end with, by name."""
    upgrade = plan.status.upgrade
    triggers: dict[str | None, Trigger] = {_name(seen): Trigger.DELETION}
    if upgrade is not None and upgrade.snapshot is not None and is_moving(upgrade):
        triggers[upgrade.snapshot] = Trigger.UPGRADE
    return triggers


def _let_go(plan: Plan, seen: Observed, until: datetime) -> Plan:
    """End the pods; go when they are gone and the snapshot is there, or when time is up.

    What the API server refuses then is not tried once more before: it would hold up the rest.
    """
    is_done = not seen.drivers and not plan.actions and _is_written_down(plan, seen)
    if seen.now >= until and seen.refusal is not None:
        return replace(plan, actions=(RemoveFinalizer(),))
    plan = drivers.end_all(plan, seen)
    if seen.now >= until or (is_done and seen.is_live):
        return plan.doing(RemoveFinalizer())
    if is_done:
        return plan.doing(ReadLive())
    return plan.looking(later(seen.now, LOOK_MS), until)


def _is_written_down(plan: Plan, seen: Observed) -> bool:
    """Whether the savepoint's object has what only the job's status knows of it."""
    last = plan.status.last_savepoint
    made = None if last is None or last.snapshot is None else seen.snapshot(last.snapshot)
    return made is None or made.status.state is not SnapshotState.PENDING


def _name(seen: Observed) -> str:
    return f"{seen.name}-deletion-{seen.uid[:8]}"
