"""Derives the lifecycle state and the conditions of a job from its status (spec K7).

No decision depends on them; they are for users and for ``kubectl wait``.
"""

from collections.abc import Iterator

from weir.api.report import JobPhase
from weir_operator.plan.drivers import report_of
from weir_operator.plan.job_plan import Plan, merged
from weir_operator.plan.observed_state import Observed
from weir_operator.plan.pod_problems import condition_reason, driver_problem, is_transient
from weir_operator.plan.spec_versions import has_failed, is_aborted, is_suspended
from weir_operator.plan.status_update import is_down, is_running, restart_message
from weir_operator.plan.stuck_drivers import STUCK, describe, stuck_after, termination_blocker
from weir_operator.plan.upgrade_steps import active, is_in_progress
from weir_operator.resource.conditions import Condition, ConditionStatus, ConditionType
from weir_operator.resource.status import CheckpointedJobStatus, LifecycleState
from weir_operator.resource.status_fields import Failure, StepName, Upgrade, UpgradeCause
from weir_operator.resource.validation import Rejected

_NEXT = {
    StepName.TAKE_SAVEPOINT: "waits for its savepoint or checkpoint; then stops the old driver",
    StepName.STOP_DRIVER: "waits for the old driver's pod to terminate; then starts the new one",
    StepName.RECORD_RESTORE_POINT: "records what the new driver starts from",
    StepName.START_DRIVER: "creates the new driver",
    StepName.BECOME_STABLE: "waits for the new version to become stable",
}


def with_conditions(plan: Plan, observed: Observed, refused: Rejected | None) -> Plan:
    """The plan with its state and conditions set."""
    plan = plan.with_status(state=_state(plan, observed), upgrade=_with_next(plan.status.upgrade))
    status = plan.status
    conditions = (
        _ready(plan, observed),
        _progressing(plan, observed),
        _degraded(plan, observed, refused),
        _accepted(observed, refused),
        _stable(status, observed),
        *_local_recovery(status, observed),
    )
    return plan.with_status(
        conditions=merged(status.conditions, conditions), observed_generation=observed.generation
    )


def with_failure(
    status: CheckpointedJobStatus, failure: Failure, observed: Observed
) -> CheckpointedJobStatus:
    """The same status, degraded by a failure that prevents writing another one."""
    degraded = _condition(
        ConditionType.DEGRADED, ConditionStatus.TRUE, failure.reason, failure.message, observed
    )
    others = [known for known in status.conditions if known.type is not degraded.type]
    conditions = merged(status.conditions, (*others, degraded))
    return status.model_copy(update={"conditions": conditions})


def _with_next(upgrade: Upgrade | None) -> Upgrade | None:
    """Describe what the upgrade waits for, and what comes next."""
    if upgrade is None:
        return None
    step = active(upgrade)
    return upgrade.model_copy(update={"next": None if step is None else _NEXT[step]})


def _state(plan: Plan, observed: Observed) -> LifecycleState:
    status = plan.status
    if observed.deleted_at is not None:
        return LifecycleState.DELETING
    if is_in_progress(status.upgrade):
        return _upgrade_state(status)
    if is_suspended(status) or (status.driver is None and status.restore_point is not None):
        return LifecycleState.SUSPENDED
    if status.ended_at is not None:
        return LifecycleState.FAILED if has_failed(status) else LifecycleState.FINISHED
    if status.driver is None:
        return LifecycleState.CREATED
    return _driver_state(plan, observed)


def _upgrade_state(status: CheckpointedJobStatus) -> LifecycleState:
    assert status.upgrade is not None, "an upgrade is under way"
    if status.upgrade.cause is UpgradeCause.SUSPENDED:
        return LifecycleState.SUSPENDING
    if status.upgrade.cause is UpgradeCause.ROLLED_BACK:
        return LifecycleState.ROLLING_BACK
    return LifecycleState.UPGRADING


def _driver_state(plan: Plan, observed: Observed) -> LifecycleState:
    status = plan.status
    if not is_running(plan, observed):
        assert status.driver is not None, "the job has had a driver"
        has_run = status.driver.running_since is not None or status.driver.failed_starts
        return LifecycleState.RECOVERING if has_run else LifecycleState.STARTING
    if status.rollback is not None:
        return LifecycleState.ROLLED_BACK
    is_stable = status.stability is not None and status.stability.is_stable
    return LifecycleState.STABLE if is_stable else LifecycleState.RUNNING


def _ready(plan: Plan, observed: Observed) -> Condition:
    driver, kind = plan.status.driver, ConditionType.READY
    if is_running(plan, observed):
        return _condition(kind, ConditionStatus.TRUE, "AllSubtasksRunning", "", observed)
    message = restart_message(plan, observed)
    if driver is not None and driver.running_since is not None and not is_down(plan, observed):
        if report_of(plan, observed) is not None:
            return _condition(kind, ConditionStatus.UNKNOWN, "Restarting", message, observed)
        why = (
            "" if observed.unreachable is None else f"{driver.pod_name}: {observed.unreachable.why}"
        )
        return _condition(kind, ConditionStatus.UNKNOWN, "DriverUnreachable", why, observed)
    return _condition(kind, ConditionStatus.FALSE, str(plan.status.state), message, observed)


def _progressing(plan: Plan, observed: Observed) -> Condition:
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
    message = _progress_message(plan, observed) if moves else ""
    return _condition(ConditionType.PROGRESSING, verdict, str(status.state), message, observed)


def _progress_message(plan: Plan, observed: Observed) -> str:
    """What a start or a stop waits for."""
    for pod in observed.drivers:
        if (until := stuck_after(pod)) is not None:
            blocker = termination_blocker(pod)
            return f"waits for {pod.name} to terminate, until {until:%H:%M:%S} UTC: {blocker}"
    driver, problem = plan.status.driver, driver_problem(plan, observed)
    phase = "" if driver is None or driver.phase is None else f"phase {driver.phase}"
    waits = _slots_waited_for(plan, observed) if problem is None else problem.message
    return ": ".join(filter(None, (phase, waits)))


def _slots_waited_for(plan: Plan, observed: Observed) -> str:
    report = report_of(plan, observed)
    if report is None or report.phase is not JobPhase.WAITING_FOR_SLOTS or not report.slots_missing:
        return ""
    slots = "slot" if report.slots_missing == 1 else "slots"
    return f"waits for {report.slots_missing} more {slots}"


def _degraded(plan: Plan, observed: Observed, refused: Rejected | None) -> Condition:
    status, failure = plan.status, _unresolved_failure(plan.status)
    kind, yes = ConditionType.DEGRADED, ConditionStatus.TRUE
    if observed.refusal is not None:
        return _condition(kind, yes, observed.refusal.reason, observed.refusal.message, observed)
    if observed.stuck:
        return _condition(kind, yes, STUCK, " ".join(map(describe, observed.stuck)), observed)
    acute = _current_problem(plan, observed)
    if acute is not None:
        return _condition(kind, yes, *acute, observed)
    if refused is not None:
        return _condition(kind, yes, "SpecRejected", str(refused), observed)
    if status.upgrade is not None and is_aborted(status.upgrade):
        return _condition(kind, yes, "UpgradeAborted", "The old version keeps running", observed)
    if status.rollback is not None:
        return _condition(kind, yes, "RolledBack", status.rollback.because, observed)
    if failure is not None:
        return _condition(kind, yes, failure.reason, failure.message, observed)
    return _condition(kind, ConditionStatus.FALSE, "Healthy", "", observed)


def _current_problem(plan: Plan, observed: Observed) -> tuple[str, str] | None:
    """What prevents the job from running now, as reported by its driver or its pod."""
    if plan.status.state not in (LifecycleState.STARTING, LifecycleState.RECOVERING):
        return None
    message, problem = restart_message(plan, observed), driver_problem(plan, observed)
    if message:
        return "Restarting", message
    if problem is None or is_transient(problem):
        return None
    return condition_reason(problem), f"{problem.name}: {problem.message}"


def _unresolved_failure(status: CheckpointedJobStatus) -> Failure | None:
    """The failure that the job is in; one from before its driver ran is not relevant any more."""
    failure, driver = status.last_failure, status.driver
    if failure is None or status.state is LifecycleState.FAILED:
        return failure
    since = None if driver is None else driver.running_since
    is_past = since is not None and failure.at < since
    return None if is_past or status.state is not LifecycleState.RECOVERING else failure


def _accepted(observed: Observed, refused: Rejected | None) -> Condition:
    if refused is None:
        return _condition(
            ConditionType.SPEC_ACCEPTED, ConditionStatus.TRUE, "SpecAccepted", "", observed
        )
    return _condition(
        ConditionType.SPEC_ACCEPTED, ConditionStatus.FALSE, "SpecRejected", str(refused), observed
    )


def _stable(status: CheckpointedJobStatus, observed: Observed) -> Condition:
    if status.stability is not None and status.stability.is_stable:
        assert status.deployed is not None, "only what was deployed becomes stable"
        message = f"Generation {status.deployed.generation} is stable"
        return _condition(
            ConditionType.STABLE, ConditionStatus.TRUE, "BecameStable", message, observed
        )
    return _condition(ConditionType.STABLE, ConditionStatus.FALSE, "NotYetStable", "", observed)


def _local_recovery(status: CheckpointedJobStatus, observed: Observed) -> Iterator[Condition]:
    """Whether executors keep local copies of state, if the user requested them (spec K8)."""
    found, kind = status.local_recovery, ConditionType.LOCAL_RECOVERY
    if found is None:
        return
    why = found.reason or ""
    if found.enabled:
        yield _condition(kind, ConditionStatus.TRUE, "PersistentLocalVolume", why, observed)
    else:
        yield _condition(kind, ConditionStatus.FALSE, "NoPersistentLocalVolume", why, observed)


def _condition(
    kind: ConditionType, status: ConditionStatus, reason: str, message: str, observed: Observed
) -> Condition:
    return Condition(
        type=kind,
        status=status,
        observed_generation=observed.generation,
        last_transition_time=observed.now,
        reason=reason,
        message=message,
    )
