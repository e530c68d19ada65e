"""Says where a job stands, in one word and in conditions, from what the status holds (spec K7).

Nothing is decided by these words; they are for people and for ``kubectl wait``.
"""

from collections.abc import Iterator

from weir.api.report import JobPhase
from weir_operator.plan.drivers import report_of
from weir_operator.plan.job_plan import Plan, merged
from weir_operator.plan.observed_state import Observed
from weir_operator.plan.pod_problems import as_reason, heals_by_itself, hindrance
from weir_operator.plan.spec_versions import has_failed, is_given_up, is_suspended
from weir_operator.plan.status_update import is_down, is_running, restarting
from weir_operator.plan.stuck_drivers import STUCK, holding, in_words, waited_for_until
from weir_operator.plan.upgrade_steps import active, is_moving
from weir_operator.resource.conditions import Condition, ConditionStatus, ConditionType
from weir_operator.resource.status import CheckpointedJobStatus, LifecycleState
from weir_operator.resource.status_fields import Failure, StepName, Upgrade, UpgradeCause
from weir_operator.resource.validation import Refused

_NEXT = {
    StepName.TAKE_SAVEPOINT: "waits for its savepoint or checkpoint; then the old driver stops",
    StepName.STOP_DRIVER: "waits for the old driver's pod to be gone; then the new one starts",
    StepName.RECORD_RESTORE_POINT: "writes down what the new driver starts from",
    StepName.START_DRIVER: "makes the new driver",
    StepName.BECOME_STABLE: "waits for the new version to prove itself",
}


def with_words(plan: Plan, seen: Observed, refused: Refused | None) -> Plan:
    """The plan with its state and conditions written."""
    plan = plan.writing(state=_state(plan, seen), upgrade=_with_next(plan.status.upgrade))
    status = plan.status
    conditions = (
        _ready(plan, seen),
        _progressing(plan, seen),
        _degraded(plan, seen, refused),
        _accepted(seen, refused),
        _stable(status, seen),
        *_local_recovery(status, seen),
    )
    return plan.writing(
        conditions=merged(status.conditions, conditions), observed_generation=seen.generation
    )


def with_failure(
    status: CheckpointedJobStatus, failure: Failure, seen: Observed
) -> CheckpointedJobStatus:
    """The same status, degraded by a failure that kept the operator from writing another one."""
    degraded = _condition(
        ConditionType.DEGRADED, ConditionStatus.TRUE, failure.reason, failure.message, seen
    )
    others = [known for known in status.conditions if known.type is not degraded.type]
    conditions = merged(status.conditions, (*others, degraded))
    return status.model_copy(update={"conditions": conditions})


def _with_next(upgrade: Upgrade | None) -> Upgrade | None:
    """What people ask first about an upgrade: what it waits for, and what comes then."""
    if upgrade is None:
        return None
    step = active(upgrade)
    return upgrade.model_copy(update={"next": None if step is None else _NEXT[step]})


def _state(plan: Plan, seen: Observed) -> LifecycleState:
    status = plan.status
    if seen.deleted_at is not None:
        return LifecycleState.DELETING
    if is_moving(status.upgrade):
        return _moving(status)
    if is_suspended(status) or (status.driver is None and status.restore_point is not None):
        return LifecycleState.SUSPENDED
    if status.ended_at is not None:
        return LifecycleState.FAILED if has_failed(status) else LifecycleState.FINISHED
    if status.driver is None:
        return LifecycleState.CREATED
    return _up(plan, seen)


def _moving(status: CheckpointedJobStatus) -> LifecycleState:
    assert status.upgrade is not None, "an upgrade is under way"
    if status.upgrade.cause is UpgradeCause.SUSPENDED:
        return LifecycleState.SUSPENDING
    if status.upgrade.cause is UpgradeCause.ROLLED_BACK:
        return LifecycleState.ROLLING_BACK
    return LifecycleState.UPGRADING


def _up(plan: Plan, seen: Observed) -> LifecycleState:
    status = plan.status
    if not is_running(plan, seen):
        assert status.driver is not None, "the job has had a driver"
        has_run = status.driver.running_since is not None or status.driver.failed_starts
        return LifecycleState.RECOVERING if has_run else LifecycleState.STARTING
    if status.rollback is not None:
        return LifecycleState.ROLLED_BACK
    is_stable = status.stability is not None and status.stability.is_stable
    return LifecycleState.STABLE if is_stable else LifecycleState.RUNNING


def _ready(plan: Plan, seen: Observed) -> Condition:
    driver, kind = plan.status.driver, ConditionType.READY
    if is_running(plan, seen):
        return _condition(kind, ConditionStatus.TRUE, "AllSubtasksRun", "", seen)
    said = restarting(plan, seen)
    if driver is not None and driver.running_since is not None and not is_down(plan, seen):
        if report_of(plan, seen) is not None:
            return _condition(kind, ConditionStatus.UNKNOWN, "Restarting", said, seen)
        why = "" if seen.silence is None else f"{driver.pod_name}: {seen.silence.why}"
        return _condition(kind, ConditionStatus.UNKNOWN, "DriverSilent", why, seen)
    return _condition(kind, ConditionStatus.FALSE, str(plan.status.state), said, seen)


def _progressing(plan: Plan, seen: Observed) -> Condition:
    status = plan.status
    moves = status.state in (
        LifecycleState.CREATED,
        LifecycleState.STARTING,
        LifecycleState.RECOVERING,
        LifecycleState.UPGRADING,
        LifecycleState.ROLLING_BACK,
        LifecycleState.SUSPENDING,
        LifecycleState.DELETING,
    )
    verdict = ConditionStatus.TRUE if moves else ConditionStatus.FALSE
    message = _hold_up(plan, seen) if moves else ""
    return _condition(ConditionType.PROGRESSING, verdict, str(status.state), message, seen)


def _hold_up(plan: Plan, seen: Observed) -> str:
    """What a start or a stop is waiting for."""
    for pod in seen.drivers:
        if (until := waited_for_until(pod)) is not None:
            return f"waits for {pod.name} to end, until {until:%H:%M:%S} UTC: {holding(pod)}"
    driver, trouble = plan.status.driver, hindrance(plan, seen)
    phase = "" if driver is None or driver.phase is None else f"phase {driver.phase}"
    waits = _slots_waited_for(plan, seen) if trouble is None else trouble.message
    return ": ".join(filter(None, (phase, waits)))


def _slots_waited_for(plan: Plan, seen: Observed) -> str:
    report = report_of(plan, seen)
    if report is None or report.phase is not JobPhase.WAITING_FOR_SLOTS or not report.slots_missing:
        return ""
    slots = "slot" if report.slots_missing == 1 else "slots"
    return f"waits for {report.slots_missing} more {slots}"


def _degraded(plan: Plan, seen: Observed, refused: Refused | None) -> Condition:
    status, failure = plan.status, _unhealed(plan.status)
    kind, yes = ConditionType.DEGRADED, ConditionStatus.TRUE
    if seen.refusal is not None:
        return _condition(kind, yes, seen.refusal.reason, seen.refusal.message, seen)
    if seen.stuck:
        return _condition(kind, yes, STUCK, " ".join(map(in_words, seen.stuck)), seen)
    acute = _acute(plan, seen)
    if acute is not None:
        return _condition(kind, yes, *acute, seen)
    if refused is not None:
        return _condition(kind, yes, "SpecRefused", str(refused), seen)
    if status.upgrade is not None and is_given_up(status.upgrade):
        return _condition(kind, yes, "UpgradeGivenUp", "the old version goes on", seen)
    if status.rollback is not None:
        return _condition(kind, yes, "RolledBack", status.rollback.because, seen)
    if failure is not None:
        return _condition(kind, yes, failure.reason, failure.message, seen)
    return _condition(kind, ConditionStatus.FALSE, "AsExpected", "", seen)


def _acute(plan: Plan, seen: Observed) -> tuple[str, str] | None:
    """What keeps the job from running now, if its driver, or a look at its pod, says so."""
    if plan.status.state not in (LifecycleState.STARTING, LifecycleState.RECOVERING):
        return None
    said, trouble = restarting(plan, seen), hindrance(plan, seen)
    if said:
        return "Restarting", said
    if trouble is None or heals_by_itself(trouble):
        return None
    return as_reason(trouble), f"{trouble.name}: {trouble.message}"


def _unhealed(status: CheckpointedJobStatus) -> Failure | None:
    """The failure that the job is in; one from before its driver ran explains nothing of now."""
    failure, driver = status.last_failure, status.driver
    if failure is None or status.state is LifecycleState.FAILED:
        return failure
    since = None if driver is None else driver.running_since
    is_past = since is not None and failure.at < since
    return None if is_past or status.state is not LifecycleState.RECOVERING else failure


def _accepted(seen: Observed, refused: Refused | None) -> Condition:
    if refused is None:
        return _condition(ConditionType.SPEC_ACCEPTED, ConditionStatus.TRUE, "CanBeRun", "", seen)
    return _condition(
        ConditionType.SPEC_ACCEPTED, ConditionStatus.FALSE, "CannotBeRun", str(refused), seen
    )


def _stable(status: CheckpointedJobStatus, seen: Observed) -> Condition:
    if status.stability is not None and status.stability.is_stable:
        return _condition(ConditionType.STABLE, ConditionStatus.TRUE, "ProvedItself", "", seen)
    return _condition(ConditionType.STABLE, ConditionStatus.FALSE, "NotProvedYet", "", seen)


def _local_recovery(status: CheckpointedJobStatus, seen: Observed) -> Iterator[Condition]:
    """Whether executors keep local copies of state, if they were asked to (spec K8)."""
    found, kind = status.local_recovery, ConditionType.LOCAL_RECOVERY
    if found is None:
        return
    why = found.reason or ""
    if found.enabled:
        yield _condition(kind, ConditionStatus.TRUE, "VolumeOutlivesItsPod", why, seen)
    else:
        yield _condition(kind, ConditionStatus.FALSE, "NoLastingLocalVolume", why, seen)


def _condition(
    kind: ConditionType, status: ConditionStatus, reason: str, message: str, seen: Observed
) -> Condition:
    return Condition(
        type=kind,
        status=status,
        observed_generation=seen.generation,
        last_transition_time=seen.now,
        reason=reason,
        message=message,
    )
