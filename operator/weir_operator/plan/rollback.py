"""Rolls back to the last stable version when a newer one does not become stable (spec K6).

The stable version continues from the state of the newer one, so nothing is lost and no output is
repeated. Only if it cannot read that state, it returns to its own last state; output is then
repeated, so the user must have allowed it. A version that was rolled back is not tried again until
the specification is edited.
"""

from weir.api.report import JobPhase
from weir_operator.plan import drivers
from weir_operator.plan.driver_recovery import failed, start_overdue
from weir_operator.plan.drivers import PlanInputs
from weir_operator.plan.job_plan import Plan
from weir_operator.plan.spec_versions import DesiredVersion, readable
from weir_operator.plan.stability import has_become_stable
from weir_operator.plan.upgrade import begin_upgrade
from weir_operator.plan.upgrade_steps import active, step_of
from weir_operator.resource.status_fields import RestorePoint, Rollback, StepName, UpgradeCause

MAX_FAILED_STARTS = 3


def roll_back(plan: Plan, inputs: PlanInputs) -> Plan | None:
    """Begin a rollback, or restore the stable version's own state; none if neither is needed."""
    status = plan.status
    if status.stable is None or status.deployed is None or status.upgrade is None:
        return None
    if status.deployed.hash == status.stable.hash:
        return _last_resort(plan, inputs)
    why = _why(plan, inputs)
    now, stable = inputs.observed.now, status.stable
    spec = readable(stable)
    if why is None or spec is None or not inputs.desired.spec.rollback.enabled:
        return None
    back = Rollback(
        from_generation=inputs.observed.generation,
        to_generation=stable.generation,
        because=why,
        started_at=now,
    )
    plan = failed(plan.with_status(rollback=back), inputs, "RolledBack", why)
    older = PlanInputs(DesiredVersion(stable, spec), inputs.observed, inputs.requested_spec)
    return begin_upgrade(plan, older, UpgradeCause.ROLLED_BACK)


def _why(plan: Plan, inputs: PlanInputs) -> str | None:
    """Why the version counts as failed; a lost node or a preempted pod does not count."""
    status = plan.status
    report = drivers.report_of(plan, inputs.observed)
    if report is not None and report.phase is JobPhase.FAILED:
        return f"the new version failed: {report.why or 'it gave no reason'}"
    overdue = start_overdue(plan, inputs)
    if overdue is not None:
        return overdue
    driver = status.driver
    assert driver is not None, "what was deployed has had a driver"
    if driver.running_since is None and driver.failed_starts >= MAX_FAILED_STARTS:
        return f"{driver.failed_starts} drivers in a row were lost"
    return _not_stable_in_time(plan, inputs)


def _not_stable_in_time(plan: Plan, inputs: PlanInputs) -> str | None:
    upgrade = plan.status.upgrade
    if upgrade is None or active(upgrade) is not StepName.BECOME_STABLE:
        return None
    deadline = step_of(upgrade, StepName.BECOME_STABLE).deadline
    if deadline is None or inputs.observed.now < deadline or has_become_stable(plan, inputs):
        return None
    if inputs.desired.spec.checkpointing.is_periodic:
        return "the new version did not complete its checkpoints in time without a restart"
    return "the new version did not run for the whole of rollback.within without a restart"


def _last_resort(plan: Plan, inputs: PlanInputs) -> Plan | None:
    """The stable version cannot read the state of the newer one."""
    status, report = plan.status, drivers.report_of(plan, inputs.observed)
    back, driver = status.rollback, status.driver
    if back is None or back.repeats_output or driver is None or driver.running_since is not None:
        return None
    if report is None or report.phase is not JobPhase.FAILED or not report.is_rejected:
        return None
    left = None if status.stable is None else status.stable.left_at
    agreed = (
        inputs.requested_spec is not None and inputs.requested_spec.rollback.allow_repeated_output
    )
    if left is None or not agreed:
        return None
    before = status.restore_point
    assert before is not None, "a driver that was refused had a restore point"
    point = RestorePoint(
        type=left.type,
        path=left.path,
        lowest_checkpoint=left.lowest_checkpoint,
        deployment=before.deployment + 1,
        recorded_at=inputs.observed.now,
    )
    repeats = back.model_copy(update={"restore_point": point, "repeats_output": True})
    plan = plan.with_status(restore_point=point, rollback=repeats, ended_at=None)
    message = f"{driver.pod_name} cannot read the state of the newer version; output is repeated"
    return drivers.delete_drivers(failed(plan, inputs, "OutputRepeats", message), inputs.observed)
