"""Goes back to the last stable version when a newer one does not become stable (spec K6).

The stable version goes on from what the newer one left, so nothing is lost and nothing is written
twice. Only if it cannot read that, it goes back to what it had itself when it stopped; output is
then repeated, so the user must have agreed to it. A version that was rolled back is not tried again
until somebody edits the specification.
"""

from weir.api.report import JobPhase
from weir_operator.plan import drivers, upgrade
from weir_operator.plan.driver_recovery import failed, start_overdue
from weir_operator.plan.drivers import Look
from weir_operator.plan.job_plan import Plan
from weir_operator.plan.spec_versions import Goal, readable
from weir_operator.plan.stability import has_proved_itself
from weir_operator.plan.upgrade_steps import active, step_of
from weir_operator.resource.status_fields import RestorePoint, Rollback, StepName, UpgradeCause

MOST_FAILED_STARTS = 3


def roll_back(plan: Plan, look: Look) -> Plan | None:
    """Begin a rollback, or take its last resort; none if neither is called for."""
    status = plan.status
    if status.stable is None or status.deployed is None or status.upgrade is None:
        return None
    if status.deployed.hash == status.stable.hash:
        return _last_resort(plan, look)
    why = _why(plan, look)
    now, stable = look.seen.now, status.stable
    spec = readable(stable)
    if why is None or spec is None or not look.goal.spec.rollback.enabled:
        return None
    back = Rollback(
        from_generation=look.seen.generation,
        to_generation=stable.generation,
        because=why,
        started_at=now,
    )
    plan = failed(plan.writing(rollback=back), look, "RolledBack", why)
    older = Look(Goal(stable, spec), look.seen, look.asked)
    return upgrade.begin(plan, older, UpgradeCause.ROLLED_BACK)


def _why(plan: Plan, look: Look) -> str | None:
    """Why the version counts as failed; a lost node or a preempted pod is no reason."""
    status = plan.status
    report = drivers.report_of(plan, look.seen)
    if report is not None and report.phase is JobPhase.FAILED:
        return f"the new version failed: {report.why or 'it did not say why'}"
    overdue = start_overdue(plan, look)
    if overdue is not None:
        return overdue
    driver = status.driver
    assert driver is not None, "what was deployed has had a driver"
    if driver.running_since is None and driver.failed_starts >= MOST_FAILED_STARTS:
        return f"{driver.failed_starts} drivers in a row were lost"
    return _not_stable_in_time(plan, look)


def _not_stable_in_time(plan: Plan, look: Look) -> str | None:
    upgrade = plan.status.upgrade
    if upgrade is None or active(upgrade) is not StepName.BECOME_STABLE:
        return None
    deadline = step_of(upgrade, StepName.BECOME_STABLE).deadline
    if deadline is None or look.seen.now < deadline or has_proved_itself(plan, look):
        return None
    if look.goal.spec.checkpointing.is_periodic:
        return "the new version did not complete its checkpoints in time without a restart"
    return "the new version did not run for the whole of rollback.within without a restart"


def _last_resort(plan: Plan, look: Look) -> Plan | None:
    """The stable version cannot read what the newer one left."""
    status, report = plan.status, drivers.report_of(plan, look.seen)
    back, driver = status.rollback, status.driver
    if back is None or back.repeats_output or driver is None or driver.running_since is not None:
        return None
    if report is None or report.phase is not JobPhase.FAILED or not report.is_rejected:
        return None
    left = None if status.stable is None else status.stable.left_at
    agreed = look.asked is not None and look.asked.rollback.allow_repeated_output
    if left is None or not agreed:
        return None
    before = status.restore_point
    assert before is not None, "a driver that was refused had a restore point"
    point = RestorePoint(
        type=left.type,
        path=left.path,
        lowest_checkpoint=left.lowest_checkpoint,
        deployment=before.deployment + 1,
        recorded_at=look.seen.now,
    )
    repeats = back.model_copy(update={"restore_point": point, "repeats_output": True})
    plan = plan.writing(restore_point=point, rollback=repeats, ended_at=None)
    message = f"{driver.pod_name} could not read what the newer version left; output repeats"
    return drivers.end_all(failed(plan, look, "OutputRepeats", message), look.seen)
