"""Takes a job from one driver to the next on purpose, step by step, each step a fact of its own.

Savepoint, stop, restore point, start, proof: what is done is written down and never done again,
whatever fails later. A savepoint that cannot be taken leaves the old version running, or falls back
to the newest checkpoint where the specification allows it; it never falls back to nothing. Until
the new driver is made, a newer specification simply takes the place of the one on its way.
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
from weir_operator.plan.driver_recovery import keep_alive
from weir_operator.plan.drivers import Look
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

MOST_TRIES = 3
SPARE_MS = 60_000
"""What a savepoint may take beyond the timeout of checkpoints, for asking and hearing."""
LOOK_MS = 2_000
_TOO_OLD = "the newest checkpoint is older than upgrade.maxCheckpointAge, and none can be taken"


def begin(plan: Plan, look: Look, cause: UpgradeCause) -> Plan:
    """Write down that the job goes to another version, or is suspended, and what was asked."""
    status, goal, seen = plan.status, look.goal, look.seen
    mode = UpgradeMode.LAST_STATE if cause is UpgradeCause.ROLLED_BACK else goal.spec.upgrade.mode
    upgrade = Upgrade(
        cause=cause,
        from_generation=status.deployed.generation if status.deployed else None,
        to_generation=goal.version.generation,
        mode=mode,
        started_at=seen.now,
        steps=new_steps(cause),
    )
    plan = plan.writing(upgrade=upgrade)
    if cause is not UpgradeCause.ROLLED_BACK:
        # What the version that failed asked for was answered, and is not asked for again.
        answered = _answered(status, goal.spec, status.answered.redeploy_nonce)
        plan = plan.writing(answered=answered, rollback=None)
    plan = plan.telling(seen.now, str(cause), f"going to generation {upgrade.to_generation}")
    return go_on(plan, look)


def _answered(
    status: CheckpointedJobStatus, spec: CheckpointedJobSpec, if_suspended: int | None
) -> Answered:
    """The nonces that this upgrade serves; a suspension leaves a redeployment for later."""
    redeploy = if_suspended if spec.suspend else spec.redeploy_nonce
    nonces = {"restart_nonce": spec.restart_nonce, "redeploy_nonce": redeploy}
    return status.answered.model_copy(update=nonces)


def go_on(plan: Plan, look: Look) -> Plan:
    """Do the step whose turn it is."""
    plan = _retargeted(plan, look)
    upgrade = plan.status.upgrade
    assert upgrade is not None, "an upgrade is under way"
    match active(upgrade):
        case StepName.TAKE_SAVEPOINT:
            return _take_savepoint(plan, look)
        case StepName.STOP_DRIVER:
            return _stop(plan, look)
        case StepName.RECORD_RESTORE_POINT:
            return _record(plan, look)
        case StepName.START_DRIVER:
            return _start(plan, look)
        case _:
            return plan


def _retargeted(plan: Plan, look: Look) -> Plan:
    """A newer specification takes over. A savepoint that was taken serves it just as well."""
    upgrade, goal = plan.status.upgrade, look.goal
    assert upgrade is not None, "an upgrade is under way"
    stays_suspended = upgrade.cause is UpgradeCause.SUSPENDED and not look.is_as_asked
    if upgrade.to_generation == goal.version.generation or stays_suspended:
        return plan
    wanted, cause = goal.spec.upgrade.mode, _newer_cause(plan, upgrade, look)
    has_savepoint = step_of(upgrade, StepName.TAKE_SAVEPOINT).state is StepState.DONE
    newer = upgrade.model_copy(
        update={
            "to_generation": goal.version.generation,
            "cause": cause,
            "mode": upgrade.mode
            if has_savepoint and wanted is not UpgradeMode.STATELESS
            else wanted,
            "mode_because": None,
        }
    )
    if cause is UpgradeCause.REDEPLOY_NONCE:
        newer = reopened(newer, StepName.RECORD_RESTORE_POINT)
    if not look.is_as_asked:
        return plan.writing(upgrade=newer, rollback=None)
    was_redeployed = upgrade.cause is UpgradeCause.REDEPLOY_NONCE
    later_on = None if was_redeployed else plan.status.answered.redeploy_nonce
    answered = _answered(plan.status, goal.spec, later_on)
    return plan.writing(upgrade=newer, answered=answered, rollback=None)


def _newer_cause(plan: Plan, upgrade: Upgrade, look: Look) -> UpgradeCause:
    spec, answered = look.goal.spec, plan.status.answered
    if not look.is_as_asked:
        return UpgradeCause.SPEC_CHANGED
    if spec.suspend:
        return UpgradeCause.SUSPENDED
    if spec.redeploy_nonce is not None and (
        spec.redeploy_nonce != answered.redeploy_nonce
        or upgrade.cause is UpgradeCause.REDEPLOY_NONCE
    ):
        return UpgradeCause.REDEPLOY_NONCE
    return UpgradeCause.SPEC_CHANGED


def _take_savepoint(plan: Plan, look: Look) -> Plan:
    upgrade = plan.status.upgrade
    assert upgrade is not None, "an upgrade is under way"
    reason = _needs_no_savepoint(plan, upgrade, look)
    if reason is not None:
        step = ended(upgrade, StepName.TAKE_SAVEPOINT, StepState.SKIPPED, look.seen.now, reason)
        return go_on(plan.writing(upgrade=step), look)
    if upgrade.mode is UpgradeMode.LAST_STATE:
        return _freshen(plan, upgrade, look)
    request = _stop_request(plan, upgrade, look)
    if request is not None and request.place is not None:
        return _savepoint_taken(plan, upgrade, request, look)
    if _has_stopped(plan, look):
        # It stopped before we heard where; its newest checkpoint is that savepoint.
        done = ended(upgrade, StepName.TAKE_SAVEPOINT, StepState.DONE, look.seen.now)
        done = done.model_copy(update={"mode": UpgradeMode.LAST_STATE})
        return go_on(plan.writing(upgrade=done), look)
    if is_down(plan, look.seen):
        return _savepoint_of_the_dead(plan, upgrade, look)
    return _ask_for_savepoint(plan, upgrade, request, look)


def _needs_no_savepoint(plan: Plan, upgrade: Upgrade, look: Look) -> str | None:
    status = plan.status
    driver, point = status.driver, status.restore_point
    if upgrade.mode is UpgradeMode.STATELESS:
        return "the specification asks to drop all state"
    if upgrade.cause is UpgradeCause.REDEPLOY_NONCE:
        return "the job starts from recovery.path"
    if driver is None or point is None:
        return "the job has never run"
    if driver.running_since is None and point.type is not RestoreType.LAST_STATE:
        return "nothing has run since the restore point"
    if upgrade.mode is UpgradeMode.LAST_STATE and not _is_too_old(plan, look):
        return "the newest completed checkpoint will do"
    return None


def _is_too_old(plan: Plan, look: Look) -> bool:
    upgrade, newest = plan.status.upgrade, plan.status.last_checkpoint
    most = look.goal.spec.upgrade.max_checkpoint_age
    if most is None or upgrade is None or upgrade.cause is UpgradeCause.ROLLED_BACK:
        return False
    began = upgrade.started_at
    return newest is None or later(newest.completed_at, most) < began


def _freshen(plan: Plan, upgrade: Upgrade, look: Look) -> Plan:
    """Have a checkpoint taken before the stop, because the newest is older than allowed."""
    if is_down(plan, look.seen):
        return _give_up(plan, look, _TOO_OLD)
    upgrade = advance(upgrade, StepName.TAKE_SAVEPOINT, look.seen.now, _patience(plan, look))
    step = step_of(upgrade, StepName.TAKE_SAVEPOINT)
    if step.deadline is not None and step.deadline <= look.seen.now:
        return _give_up(plan, look, "no checkpoint completed in time, and the newest is too old")
    driver = plan.status.driver
    assert driver is not None, "a running job has a driver"
    key = f"fresh-{_key(plan, upgrade)}"
    report = drivers.report_of(plan, look.seen)
    plan = plan.writing(upgrade=upgrade).looking(later(look.seen.now, LOOK_MS), step.deadline)
    if not is_running(plan, look.seen) or (report is not None and report.request(key) is not None):
        return plan
    return plan.doing(RequestCheckpoint(driver.attempt, key))


def _ask_for_savepoint(
    plan: Plan, upgrade: Upgrade, request: RequestReport | None, look: Look
) -> Plan:
    now = look.seen.now
    upgrade = advance(upgrade, StepName.TAKE_SAVEPOINT, now, _patience(plan, look))
    step = step_of(upgrade, StepName.TAKE_SAVEPOINT)
    is_late = step.deadline is not None and step.deadline <= now
    if is_late or (request is not None and request.outcome is Outcome.FAILED):
        why = request.message if request is not None and request.message else "it took too long"
        return _savepoint_failed(plan, upgrade, look, why)
    plan = plan.writing(upgrade=upgrade).looking(later(now, LOOK_MS), step.deadline)
    if request is not None or not is_running(plan, look.seen):
        return plan
    assert plan.status.driver is not None, "a running job has a driver"
    return plan.doing(RequestStop(plan.status.driver.attempt, _key(plan, upgrade)))


def _savepoint_failed(plan: Plan, upgrade: Upgrade, look: Look, why: str) -> Plan:
    now, step = look.seen.now, step_of(upgrade, StepName.TAKE_SAVEPOINT)
    if step.tries < MOST_TRIES:
        again = advance(upgrade, StepName.TAKE_SAVEPOINT, now, _patience(plan, look), anew=True)
        plan = plan.writing(upgrade=again).telling(now, "SavepointFailed", why, is_warning=True)
        return plan.looking(later(now, LOOK_MS))
    if look.goal.spec.upgrade.fallback is Fallback.NONE:
        return _give_up(plan, look, f"no savepoint could be taken: {why}")
    return _fall_back(plan, upgrade, look, f"no savepoint could be taken: {why}")


def _savepoint_of_the_dead(plan: Plan, upgrade: Upgrade, look: Look) -> Plan:
    """The job is down: go on from its newest checkpoint, or bring it back for its savepoint."""
    why = "the job is down and can take no savepoint"
    if not look.seen.drivers and not look.seen.is_live:
        return plan.doing(ReadLive())
    if look.goal.spec.upgrade.fallback is Fallback.LAST_STATE:
        return _fall_back(plan, upgrade, look, why)
    if plan.status.ended_at is not None:
        return _give_up(plan, look, why)
    return keep_alive(plan, look)


def _fall_back(plan: Plan, upgrade: Upgrade, look: Look, why: str) -> Plan:
    now = look.seen.now
    if _is_too_old(plan, look):
        return _give_up(plan, look, f"{why}; {_TOO_OLD}")
    changed = upgrade.model_copy(update={"mode": UpgradeMode.LAST_STATE, "mode_because": why})
    changed = ended(changed, StepName.TAKE_SAVEPOINT, StepState.SKIPPED, now, why)
    plan = plan.writing(upgrade=changed).telling(now, "FellBackToLastState", why, is_warning=True)
    return go_on(plan, look)


def _give_up(plan: Plan, look: Look, why: str) -> Plan:
    """The old version goes on; the next edit tries again."""
    upgrade, now = plan.status.upgrade, look.seen.now
    assert upgrade is not None, "an upgrade is under way"
    failed = ended(upgrade, StepName.TAKE_SAVEPOINT, StepState.FAILED, now, why)
    plan = plan.writing(upgrade=failed)
    return plan.telling(now, "UpgradeGivenUp", f"the old version goes on: {why}", is_warning=True)


def _savepoint_taken(plan: Plan, upgrade: Upgrade, request: RequestReport, look: Look) -> Plan:
    """The savepoint is a fact from here on, whatever becomes of the stop."""
    now, seen = look.seen.now, look.seen
    place = request.place
    assert place is not None, "a completed savepoint has a place"
    name = f"{seen.name}-{_key(plan, upgrade)}"
    taken = LastSavepoint(
        path=place, snapshot=name, checkpoint_id=request.checkpoint, completed_at=now
    )
    done = ended(upgrade, StepName.TAKE_SAVEPOINT, StepState.DONE, now)
    done = done.model_copy(update={"snapshot": name})
    plan = plan.writing(upgrade=done, last_savepoint=taken)
    plan = plan.telling(now, "SavepointCompleted", f"savepoint at {place}")
    return go_on(plan, look)


def _stop(plan: Plan, look: Look) -> Plan:
    seen, upgrade = look.seen, plan.status.upgrade
    assert upgrade is not None, "an upgrade is under way"
    plan = _with_snapshot_object(plan, upgrade, look)
    if seen.drivers or _is_without_object(upgrade, look):
        stopping = advance(upgrade, StepName.STOP_DRIVER, seen.now, None)
        plan = plan.writing(upgrade=stopping).looking(later(seen.now, LOOK_MS))
        return drivers.end_all(plan, seen)
    if not seen.is_live:
        return plan.doing(ReadLive())
    done = ended(upgrade, StepName.STOP_DRIVER, StepState.DONE, seen.now)
    return go_on(plan.writing(upgrade=done), look)


def _record(plan: Plan, look: Look) -> Plan:
    """Write down what the new version starts from, and what the old one had."""
    status, now = plan.status, look.seen.now
    upgrade = status.upgrade
    assert upgrade is not None, "an upgrade is under way"
    point = _restore_point(plan, upgrade, look)
    if status.stable is not None and status.deployed is not None:
        before = status.restore_point
        if before is not None and status.stable.hash == status.deployed.hash:
            left = _left(plan, upgrade, point, before)
            plan = plan.writing(stable=status.stable.model_copy(update={"left_at": left}))
    done = ended(upgrade, StepName.RECORD_RESTORE_POINT, StepState.DONE, now)
    return go_on(plan.writing(upgrade=done, restore_point=point), look)


def _left(plan: Plan, upgrade: Upgrade, point: RestorePoint, before: RestorePoint) -> RestorePoint:
    taken = plan.status.last_savepoint
    if upgrade.snapshot is not None and taken is not None and point.path == taken.path:
        return point
    return restore_points.as_left(before, plan.status.last_checkpoint)


def _restore_point(plan: Plan, upgrade: Upgrade, look: Look) -> RestorePoint:
    before, now = plan.status.restore_point, look.seen.now
    assert before is not None, "a job that was deployed has a restore point"
    if upgrade.cause is UpgradeCause.REDEPLOY_NONCE:
        return restore_points.from_path(look.goal.spec.recovery, before, now)
    if upgrade.mode is UpgradeMode.STATELESS:
        return restore_points.nothing(before, now)
    taken = plan.status.last_savepoint
    if upgrade.snapshot is not None and taken is not None and taken.snapshot == upgrade.snapshot:
        return restore_points.from_savepoint(taken.path, before, now)
    return restore_points.last_state(before, now)


def _with_snapshot_object(plan: Plan, upgrade: Upgrade, look: Look) -> Plan:
    """The savepoint as an object of the cluster, made while the old driver ends."""
    taken = plan.status.last_savepoint
    if upgrade.snapshot is None or not _is_without_object(upgrade, look):
        return plan
    assert taken is not None, "a savepoint with a name was taken"
    spec = CheckpointedJobSnapshotSpec(
        job_name=look.seen.name, adopt_path=taken.path, trigger=Trigger.UPGRADE
    )
    return plan.doing(CreateSnapshot(upgrade.snapshot, spec))


def _is_without_object(upgrade: Upgrade, look: Look) -> bool:
    return upgrade.snapshot is not None and look.seen.snapshot(upgrade.snapshot) is None


def _start(plan: Plan, look: Look) -> Plan:
    """Make the new driver; a suspended job waits here for as long as it is suspended."""
    upgrade, seen = plan.status.upgrade, look.seen
    assert upgrade is not None, "an upgrade is under way"
    if upgrade.cause is UpgradeCause.SUSPENDED:
        resting = ended(upgrade, StepName.START_DRIVER, StepState.SKIPPED, seen.now)
        resting = ended(resting, StepName.BECOME_STABLE, StepState.SKIPPED, seen.now)
        return plan.writing(upgrade=resting).telling(seen.now, "Suspended", "the job has stopped")
    if not seen.is_live or seen.drivers:
        return drivers.start(plan, look.goal.version, look)
    done = ended(upgrade, StepName.START_DRIVER, StepState.DONE, seen.now)
    plan = plan.writing(upgrade=done, stability=None)
    return drivers.start(plan, look.goal.version, look)


def _stop_request(plan: Plan, upgrade: Upgrade, look: Look) -> RequestReport | None:
    report = drivers.report_of(plan, look.seen)
    return None if report is None else report.request(_key(plan, upgrade))


def _has_stopped(plan: Plan, look: Look) -> bool:
    report = drivers.report_of(plan, look.seen)
    return report is not None and report.phase in (JobPhase.STOPPED, JobPhase.FINISHED)


def _key(plan: Plan, upgrade: Upgrade) -> str:
    """Of a request: the same for the same try of the same upgrade, whoever asks."""
    point = plan.status.restore_point
    deployment = 0 if point is None else point.deployment
    tries = max(1, step_of(upgrade, StepName.TAKE_SAVEPOINT).tries)
    return f"upgrade-{deployment}-{_stamp(upgrade.started_at)}-{tries}"


def _stamp(moment: datetime) -> int:
    return int(moment.timestamp())


def _patience(plan: Plan, look: Look) -> int:
    deployed = plan.status.deployed
    assert deployed is not None, "only what was deployed is upgraded"
    spec = readable(deployed) or look.goal.spec
    return spec.checkpointing.timeout + SPARE_MS
