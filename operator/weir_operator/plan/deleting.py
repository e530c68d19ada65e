"""Takes a job down whose resource was deleted, with a last savepoint if asked, and always ends.

A job that is down takes no savepoint, and one that does not answer is not waited for longer than
its deadline (K10). What lies in storage stays. The pods belong to the resource, so Kubernetes
deletes whatever is left after it.
"""

from dataclasses import replace
from datetime import datetime

from weir.api.report import Outcome
from weir_operator.plan import drivers
from weir_operator.plan.actions import CreateSnapshot, ReadLive, RemoveFinalizer, RequestStop
from weir_operator.plan.drafting import Plan, later
from weir_operator.plan.noting import is_down, is_running
from weir_operator.plan.observing import Observed
from weir_operator.plan.steps import is_moving
from weir_operator.resource.job import CheckpointedJobSpec
from weir_operator.resource.progress import LastSavepoint
from weir_operator.resource.snapshot import CheckpointedJobSnapshotSpec, SnapshotState, Trigger
from weir_operator.resource.status import LifecycleState

LOOK_MS = 1_000
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
        waiting = _last_savepoint(plan, seen, until)
        if waiting is not None:
            return waiting
    plan = _with_snapshot_object(plan, seen)
    return _let_go(plan, seen, later(until, PATIENCE_MS))


def _last_savepoint(plan: Plan, seen: Observed, until: datetime) -> Plan | None:
    """Wait for the savepoint; none once there is one, or none can be expected any more."""
    driver, name = plan.status.driver, _name(seen)
    last = plan.status.last_savepoint
    if driver is None or (last is not None and last.snapshot == name):
        return None
    report = drivers.report_of(plan, seen)
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
        return plan.looking(seen.now)
    has_failed = request is not None and request.outcome is not Outcome.IN_PROGRESS
    if has_failed or seen.now >= until or is_down(plan, seen):
        return None
    plan = plan.looking(later(seen.now, LOOK_MS), until)
    if request is not None or not is_running(plan, seen):
        return plan
    return plan.doing(RequestStop(driver.attempt, name))


def _with_snapshot_object(plan: Plan, seen: Observed) -> Plan:
    """The savepoint of the deletion, or of the upgrade that it has cut short, as an object."""
    last, upgrade = plan.status.last_savepoint, plan.status.upgrade
    triggers = {_name(seen): Trigger.DELETION}
    if upgrade is not None and upgrade.snapshot is not None and is_moving(upgrade):
        triggers[upgrade.snapshot] = Trigger.UPGRADE
    if last is None or last.snapshot is None or last.snapshot not in triggers:
        return plan
    if seen.snapshot(last.snapshot) is not None:
        return plan
    spec = CheckpointedJobSnapshotSpec(
        job_name=seen.name, adopt_path=last.path, trigger=triggers[last.snapshot]
    )
    return plan.doing(CreateSnapshot(last.snapshot, spec))


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
