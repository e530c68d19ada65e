"""Moves a job from one driver to the next, in steps that are each recorded in the status.

Savepoint, stop, restore point, start, stability: a completed step is recorded and never repeated,
whatever fails later. If a savepoint cannot be taken, the old version keeps running, or the upgrade
falls back to the newest checkpoint where the specification allows it; it never falls back to
nothing. Until the new driver is created, a newer specification replaces the one in progress.
"""

from datetime import datetime

from weir.api.report import JobPhase, Outcome
from weir_operator.plan import drivers, restore_points
from weir_operator.plan.cluster_actions import (
    CreateSnapshot,
    ReadLive,
    RequestCheckpoint,
    RequestStop,
)
from weir_operator.plan.driver_recovery import reconcile_driver
from weir_operator.plan.drivers import PlanInputs
from weir_operator.plan.job_plan import Plan, later
from weir_operator.plan.observed_state import RequestReport
from weir_operator.plan.spec_versions import readable
from weir_operator.plan.status_update import is_down, is_running
from weir_operator.plan.upgrade_steps import active, advance, ended, new_steps, reopened, step_of
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.snapshot import CheckpointedJobSnapshotSpec, Trigger
from weir_operator.resource.status import CheckpointedJobStatus
from weir_operator.resource.status_fields import (
    Answered,
    LastSavepoint,
    RestorePoint,
    RestoreType,
    StepName,
    StepState,
    Upgrade,
    UpgradeCause,
)
from weir_operator.resource.upgrade_policy import Fallback, UpgradeMode

MAX_TRIES = 3
SAVEPOINT_MARGIN_MS = 60_000
"""Added to the timeout of checkpoints for a savepoint, for the request and its report."""
REQUEUE_MS = 2_000
_TOO_OLD = "the newest checkpoint is older than upgrade.maxCheckpointAge, and none can be taken"


def begin_upgrade(plan: Plan, inputs: PlanInputs, cause: UpgradeCause) -> Plan:
    """Record that the job moves to another version, or is suspended."""
    status, desired, observed = plan.status, inputs.desired, inputs.observed
    mode = (
        UpgradeMode.LAST_STATE if cause is UpgradeCause.ROLLED_BACK else desired.spec.upgrade.mode
    )
    upgrade = Upgrade(
        cause=cause,
        from_generation=status.deployed.generation if status.deployed else None,
        to_generation=desired.version.generation,
        mode=mode,
        started_at=observed.now,
        steps=new_steps(cause),
    )
    plan = plan.with_status(upgrade=upgrade)
    if cause is not UpgradeCause.ROLLED_BACK:
        # The nonces of the failed version were handled and must not be handled again.
        answered = _answered(status, desired.spec, status.answered.redeploy_nonce)
        plan = plan.with_status(answered=answered, rollback=None)
    plan = plan.with_event(
        observed.now, str(cause), f"Moving to generation {upgrade.to_generation}"
    )
    return continue_upgrade(plan, inputs)


def _answered(
    status: CheckpointedJobStatus, spec: CheckpointedJobSpec, if_suspended: int | None
) -> Answered:
    """The nonces that this upgrade handles; a suspension leaves a redeployment for later."""
    redeploy = if_suspended if spec.suspend else spec.redeploy_nonce
    nonces = {"restart_nonce": spec.restart_nonce, "redeploy_nonce": redeploy}
    return status.answered.model_copy(update=nonces)


def continue_upgrade(plan: Plan, inputs: PlanInputs) -> Plan:
    """Do the active step."""
    plan = _retargeted(plan, inputs)
    upgrade = plan.status.upgrade
    assert upgrade is not None, "an upgrade is under way"
    match active(upgrade):
        case StepName.TAKE_SAVEPOINT:
            return _take_savepoint(plan, inputs)
        case StepName.STOP_DRIVER:
            return _stop(plan, inputs)
        case StepName.RECORD_RESTORE_POINT:
            return _record(plan, inputs)
        case StepName.START_DRIVER:
            return _start(plan, inputs)
        case _:
            return plan


def _retargeted(plan: Plan, inputs: PlanInputs) -> Plan:
    """A newer specification replaces the target. A completed savepoint serves it as well."""
    upgrade, desired = plan.status.upgrade, inputs.desired
    assert upgrade is not None, "an upgrade is under way"
    stays_suspended = upgrade.cause is UpgradeCause.SUSPENDED and not inputs.is_requested
    if upgrade.to_generation == desired.version.generation or stays_suspended:
        return plan
    wanted, cause = desired.spec.upgrade.mode, _newer_cause(plan, upgrade, inputs)
    has_savepoint = step_of(upgrade, StepName.TAKE_SAVEPOINT).state is StepState.DONE
    newer = upgrade.model_copy(
        update={
            "to_generation": desired.version.generation,
            "cause": cause,
            "mode": upgrade.mode
            if has_savepoint and wanted is not UpgradeMode.STATELESS
            else wanted,
            "mode_because": None,
        }
    )
    if cause is UpgradeCause.REDEPLOY_NONCE:
        newer = reopened(newer, StepName.RECORD_RESTORE_POINT)
    if not inputs.is_requested:
        return plan.with_status(upgrade=newer, rollback=None)
    was_redeployed = upgrade.cause is UpgradeCause.REDEPLOY_NONCE
    later_on = None if was_redeployed else plan.status.answered.redeploy_nonce
    answered = _answered(plan.status, desired.spec, later_on)
    return plan.with_status(upgrade=newer, answered=answered, rollback=None)


def _newer_cause(plan: Plan, upgrade: Upgrade, inputs: PlanInputs) -> UpgradeCause:
    spec, answered = inputs.desired.spec, plan.status.answered
    if not inputs.is_requested:
        return UpgradeCause.SPEC_CHANGED
    if spec.suspend:
        return UpgradeCause.SUSPENDED
    if spec.redeploy_nonce is not None and (
        spec.redeploy_nonce != answered.redeploy_nonce
        or upgrade.cause is UpgradeCause.REDEPLOY_NONCE
    ):
        return UpgradeCause.REDEPLOY_NONCE
    return UpgradeCause.SPEC_CHANGED


def _take_savepoint(plan: Plan, inputs: PlanInputs) -> Plan:
    upgrade = plan.status.upgrade
    assert upgrade is not None, "an upgrade is under way"
    reason = _needs_no_savepoint(plan, upgrade, inputs)
    if reason is not None:
        step = ended(
            upgrade, StepName.TAKE_SAVEPOINT, StepState.SKIPPED, inputs.observed.now, reason
        )
        return continue_upgrade(plan.with_status(upgrade=step), inputs)
    if upgrade.mode is UpgradeMode.LAST_STATE:
        return _take_fresh_checkpoint(plan, upgrade, inputs)
    request = _stop_request(plan, upgrade, inputs)
    if request is not None and request.durable_path is not None:
        return _savepoint_taken(plan, upgrade, request, inputs)
    if _has_stopped(plan, inputs):
        # It stopped before its report arrived; its newest checkpoint is that savepoint.
        done = ended(upgrade, StepName.TAKE_SAVEPOINT, StepState.DONE, inputs.observed.now)
        done = done.model_copy(update={"mode": UpgradeMode.LAST_STATE})
        return continue_upgrade(plan.with_status(upgrade=done), inputs)
    if is_down(plan, inputs.observed):
        return _savepoint_while_down(plan, upgrade, inputs)
    return _ask_for_savepoint(plan, upgrade, request, inputs)


def _needs_no_savepoint(plan: Plan, upgrade: Upgrade, inputs: PlanInputs) -> str | None:
    status = plan.status
    driver, point = status.driver, status.restore_point
    if upgrade.mode is UpgradeMode.STATELESS:
        return "the specification drops all state"
    if upgrade.cause is UpgradeCause.REDEPLOY_NONCE:
        return "the job starts from recovery.path"
    if driver is None or point is None:
        return "the job has never run"
    if driver.running_since is None and point.type is not RestoreType.LAST_STATE:
        return "nothing has run since the restore point"
    if upgrade.mode is UpgradeMode.LAST_STATE and not _is_too_old(plan, inputs):
        return "the newest completed checkpoint suffices"
    return None


def _is_too_old(plan: Plan, inputs: PlanInputs) -> bool:
    upgrade, newest = plan.status.upgrade, plan.status.last_checkpoint
    most = inputs.desired.spec.upgrade.max_checkpoint_age
    if most is None or upgrade is None or upgrade.cause is UpgradeCause.ROLLED_BACK:
        return False
    began = upgrade.started_at
    return newest is None or later(newest.completed_at, most) < began


def _take_fresh_checkpoint(plan: Plan, upgrade: Upgrade, inputs: PlanInputs) -> Plan:
    """Request a checkpoint before the stop, because the newest is older than allowed."""
    if is_down(plan, inputs.observed):
        return _abort(plan, inputs, _TOO_OLD)
    upgrade = advance(
        upgrade, StepName.TAKE_SAVEPOINT, inputs.observed.now, _savepoint_timeout_ms(plan, inputs)
    )
    step = step_of(upgrade, StepName.TAKE_SAVEPOINT)
    if step.deadline is not None and step.deadline <= inputs.observed.now:
        return _abort(plan, inputs, "no checkpoint completed in time, and the newest is too old")
    driver = plan.status.driver
    assert driver is not None, "a running job has a driver"
    key = f"fresh-{_key(plan, upgrade)}"
    report = drivers.report_of(plan, inputs.observed)
    plan = plan.with_status(upgrade=upgrade).requeue_by(
        later(inputs.observed.now, REQUEUE_MS), step.deadline
    )
    if not is_running(plan, inputs.observed) or (
        report is not None and report.request(key) is not None
    ):
        return plan
    return plan.with_actions(RequestCheckpoint(driver.attempt, key))


def _ask_for_savepoint(
    plan: Plan, upgrade: Upgrade, request: RequestReport | None, inputs: PlanInputs
) -> Plan:
    now = inputs.observed.now
    upgrade = advance(upgrade, StepName.TAKE_SAVEPOINT, now, _savepoint_timeout_ms(plan, inputs))
    step = step_of(upgrade, StepName.TAKE_SAVEPOINT)
    is_late = step.deadline is not None and step.deadline <= now
    if is_late or (request is not None and request.outcome is Outcome.FAILED):
        why = request.message if request is not None and request.message else "it took too long"
        return _savepoint_failed(plan, upgrade, inputs, why)
    plan = plan.with_status(upgrade=upgrade).requeue_by(later(now, REQUEUE_MS), step.deadline)
    if request is not None or not is_running(plan, inputs.observed):
        return plan
    assert plan.status.driver is not None, "a running job has a driver"
    return plan.with_actions(RequestStop(plan.status.driver.attempt, _key(plan, upgrade)))


def _savepoint_failed(plan: Plan, upgrade: Upgrade, inputs: PlanInputs, why: str) -> Plan:
    now, step = inputs.observed.now, step_of(upgrade, StepName.TAKE_SAVEPOINT)
    if step.tries < MAX_TRIES:
        again = advance(
            upgrade, StepName.TAKE_SAVEPOINT, now, _savepoint_timeout_ms(plan, inputs), anew=True
        )
        plan = plan.with_status(upgrade=again).with_event(
            now, "SavepointFailed", why, is_warning=True
        )
        return plan.requeue_by(later(now, REQUEUE_MS))
    if inputs.desired.spec.upgrade.fallback is Fallback.NONE:
        return _abort(plan, inputs, f"no savepoint could be taken: {why}")
    return _fall_back(plan, upgrade, inputs, f"no savepoint could be taken: {why}")


def _savepoint_while_down(plan: Plan, upgrade: Upgrade, inputs: PlanInputs) -> Plan:
    """The job is down: use its newest checkpoint, or restart it for its savepoint."""
    why = "the job is down and can take no savepoint"
    if not inputs.observed.drivers and not inputs.observed.is_live:
        return plan.with_actions(ReadLive())
    if inputs.desired.spec.upgrade.fallback is Fallback.LAST_STATE:
        return _fall_back(plan, upgrade, inputs, why)
    if plan.status.ended_at is not None:
        return _abort(plan, inputs, why)
    return reconcile_driver(plan, inputs)


def _fall_back(plan: Plan, upgrade: Upgrade, inputs: PlanInputs, why: str) -> Plan:
    now = inputs.observed.now
    if _is_too_old(plan, inputs):
        return _abort(plan, inputs, f"{why}; {_TOO_OLD}")
    changed = upgrade.model_copy(update={"mode": UpgradeMode.LAST_STATE, "mode_because": why})
    changed = ended(changed, StepName.TAKE_SAVEPOINT, StepState.SKIPPED, now, why)
    plan = plan.with_status(upgrade=changed).with_event(
        now, "FellBackToLastState", why, is_warning=True
    )
    return continue_upgrade(plan, inputs)


def _abort(plan: Plan, inputs: PlanInputs, why: str) -> Plan:
    """The old version keeps running; the next edit tries again."""
    upgrade, now = plan.status.upgrade, inputs.observed.now
    assert upgrade is not None, "an upgrade is under way"
    failed = ended(upgrade, StepName.TAKE_SAVEPOINT, StepState.FAILED, now, why)
    plan = plan.with_status(upgrade=failed)
    return plan.with_event(
        now, "UpgradeAborted", f"The old version keeps running: {why}", is_warning=True
    )


def _savepoint_taken(
    plan: Plan, upgrade: Upgrade, request: RequestReport, inputs: PlanInputs
) -> Plan:
    """Record the savepoint, whatever becomes of the stop."""
    now, observed = inputs.observed.now, inputs.observed
    durable_path = request.durable_path
    assert durable_path is not None, "a completed savepoint has a place"
    name = f"{observed.name}-{_key(plan, upgrade)}"
    taken = LastSavepoint(
        path=durable_path, snapshot=name, checkpoint_id=request.checkpoint, completed_at=now
    )
    done = ended(upgrade, StepName.TAKE_SAVEPOINT, StepState.DONE, now)
    done = done.model_copy(update={"snapshot": name})
    plan = plan.with_status(upgrade=done, last_savepoint=taken)
    plan = plan.with_event(now, "SavepointCompleted", f"Savepoint completed: {durable_path}")
    return continue_upgrade(plan, inputs)


def _stop(plan: Plan, inputs: PlanInputs) -> Plan:
    observed, upgrade = inputs.observed, plan.status.upgrade
    assert upgrade is not None, "an upgrade is under way"
    plan = _with_snapshot_object(plan, upgrade, inputs)
    if observed.drivers or _is_without_object(upgrade, inputs):
        stopping = advance(upgrade, StepName.STOP_DRIVER, observed.now, None)
        plan = plan.with_status(upgrade=stopping).requeue_by(later(observed.now, REQUEUE_MS))
        return drivers.delete_drivers(plan, observed)
    if not observed.is_live:
        return plan.with_actions(ReadLive())
    done = ended(upgrade, StepName.STOP_DRIVER, StepState.DONE, observed.now)
    return continue_upgrade(plan.with_status(upgrade=done), inputs)


def _record(plan: Plan, inputs: PlanInputs) -> Plan:
    """Record what the new version starts from, and the state of the old one."""
    status, now = plan.status, inputs.observed.now
    upgrade = status.upgrade
    assert upgrade is not None, "an upgrade is under way"
    point = _restore_point(plan, upgrade, inputs)
    if status.stable is not None and status.deployed is not None:
        before = status.restore_point
        if before is not None and status.stable.hash == status.deployed.hash:
            left = _left(plan, upgrade, point, before)
            plan = plan.with_status(stable=status.stable.model_copy(update={"left_at": left}))
    done = ended(upgrade, StepName.RECORD_RESTORE_POINT, StepState.DONE, now)
    return continue_upgrade(plan.with_status(upgrade=done, restore_point=point), inputs)


def _left(plan: Plan, upgrade: Upgrade, point: RestorePoint, before: RestorePoint) -> RestorePoint:
    taken = plan.status.last_savepoint
    if upgrade.snapshot is not None and taken is not None and point.path == taken.path:
        return point
    return restore_points.as_left(before, plan.status.last_checkpoint)


def _restore_point(plan: Plan, upgrade: Upgrade, inputs: PlanInputs) -> RestorePoint:
    before, now = plan.status.restore_point, inputs.observed.now
    assert before is not None, "a job that was deployed has a restore point"
    if upgrade.cause is UpgradeCause.REDEPLOY_NONCE:
        return restore_points.from_path(inputs.desired.spec.recovery, before, now)
    if upgrade.mode is UpgradeMode.STATELESS:
        return restore_points.nothing(before, now)
    taken = plan.status.last_savepoint
    if upgrade.snapshot is not None and taken is not None and taken.snapshot == upgrade.snapshot:
        return restore_points.from_savepoint(taken.path, before, now)
    return restore_points.last_state(before, now)


def _with_snapshot_object(plan: Plan, upgrade: Upgrade, inputs: PlanInputs) -> Plan:
    """Create the object of the savepoint while the old driver terminates."""
    taken = plan.status.last_savepoint
    if upgrade.snapshot is None or not _is_without_object(upgrade, inputs):
        return plan
    assert taken is not None, "a savepoint with a name was taken"
    spec = CheckpointedJobSnapshotSpec(
        job_name=inputs.observed.name, adopt_path=taken.path, trigger=Trigger.UPGRADE
    )
    return plan.with_actions(CreateSnapshot(upgrade.snapshot, spec))


def _is_without_object(upgrade: Upgrade, inputs: PlanInputs) -> bool:
    return upgrade.snapshot is not None and inputs.observed.snapshot(upgrade.snapshot) is None


def _start(plan: Plan, inputs: PlanInputs) -> Plan:
    """Create the new driver; a suspended job waits here until it is resumed."""
    upgrade, observed = plan.status.upgrade, inputs.observed
    assert upgrade is not None, "an upgrade is under way"
    if upgrade.cause is UpgradeCause.SUSPENDED:
        resting = ended(upgrade, StepName.START_DRIVER, StepState.SKIPPED, observed.now)
        resting = ended(resting, StepName.BECOME_STABLE, StepState.SKIPPED, observed.now)
        return plan.with_status(upgrade=resting).with_event(
            observed.now, "Suspended", "The job is suspended"
        )
    if not observed.is_live or observed.drivers:
        return drivers.start(plan, inputs.desired.version, inputs)
    done = ended(upgrade, StepName.START_DRIVER, StepState.DONE, observed.now)
    plan = plan.with_status(upgrade=done, stability=None)
    return drivers.start(plan, inputs.desired.version, inputs)


def _stop_request(plan: Plan, upgrade: Upgrade, inputs: PlanInputs) -> RequestReport | None:
    report = drivers.report_of(plan, inputs.observed)
    return None if report is None else report.request(_key(plan, upgrade))


def _has_stopped(plan: Plan, inputs: PlanInputs) -> bool:
    report = drivers.report_of(plan, inputs.observed)
    return report is not None and report.phase in (JobPhase.STOPPED, JobPhase.FINISHED)


def _key(plan: Plan, upgrade: Upgrade) -> str:
    """The key of a request: the same for the same try of the same upgrade."""
    point = plan.status.restore_point
    deployment = 0 if point is None else point.deployment
    tries = max(1, step_of(upgrade, StepName.TAKE_SAVEPOINT).tries)
    return f"upgrade-{deployment}-{_stamp(upgrade.started_at)}-{tries}"


def _stamp(moment: datetime) -> int:
    return int(moment.timestamp())


def _savepoint_timeout_ms(plan: Plan, inputs: PlanInputs) -> int:
    deployed = plan.status.deployed
    assert deployed is not None, "only what was deployed is upgraded"
    spec = readable(deployed) or inputs.desired.spec
    return spec.checkpointing.timeout + SAVEPOINT_MARGIN_MS
