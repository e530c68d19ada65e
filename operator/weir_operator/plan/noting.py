"""Writes down what was learned since the last look; decides nothing.

What a driver said counts as long as its pod is there to have said it, so that a word which arrives
late never touches what was decided for its successor.
"""

from weir.api.report import JobPhase
from weir_operator.plan.drafting import Plan
from weir_operator.plan.drivers import current, report_of
from weir_operator.plan.local_recovery import Off, resolve
from weir_operator.plan.observing import DriverPod, DriverReport, Observed, Terminated, Waiting
from weir_operator.plan.restore_points import in_words, raised
from weir_operator.resource.deadlines import StartPhase
from weir_operator.resource.job import CheckpointedJobSpec
from weir_operator.resource.progress import LocalRecoveryStatus, Stability

_PHASES = {
    JobPhase.CREATED: StartPhase.SLOTS,
    JobPhase.WAITING_FOR_SLOTS: StartPhase.SLOTS,
    JobPhase.DEPLOYING: StartPhase.RESTORE,
    JobPhase.RESTARTING: StartPhase.RESTORE,
}


def note(plan: Plan, seen: Observed) -> Plan:
    """The status with everything that was seen of the current driver."""
    pod = current(plan, seen)
    if pod is None:
        return plan.writing(scheduler_running=None)
    plan = _with_pod(plan, pod, seen)
    report = report_of(plan, seen)
    if report is None:
        return _with_phase(plan.writing(scheduler_running=None), pod, None, seen)
    plan = _with_restarts(_with_checkpoint(plan, report), report)
    plan = plan.writing(scheduler_running=report.scheduler_running)
    return _with_stability(_with_phase(plan, pod, report, seen), report, seen)


def note_refusal(plan: Plan, seen: Observed) -> Plan:
    """What the API server refused is a failure of the job's, unless a later one hides it."""
    refused, known = seen.refusal, plan.status.last_failure
    is_news = refused is not None and (known is None or known.at < refused.at)
    if not is_news or plan.status.ended_at is not None:
        return plan
    return plan.writing(last_failure=refused)


def note_local_recovery(plan: Plan, spec: CheckpointedJobSpec, seen: Observed) -> Plan:
    """Whether executors keep copies, and why not (K8)."""
    if not spec.state.local_recovery:
        return plan.writing(local_recovery=None)
    found = resolve(seen.local_volume)
    reason = found.reason if isinstance(found, Off) else None
    return plan.writing(local_recovery=LocalRecoveryStatus(enabled=reason is None, reason=reason))


def is_running(plan: Plan, seen: Observed) -> bool:
    """Whether all subtasks run, as far as the driver says."""
    pod, report = current(plan, seen), report_of(plan, seen)
    return (
        pod is not None
        and not isinstance(pod.stage, Terminated)
        and not pod.node_is_lost
        and report is not None
        and report.phase is JobPhase.RUNNING
    )


def is_down(plan: Plan, seen: Observed) -> bool:
    """Whether the driver is gone, ending or not there yet, or its job over; a silent one is up."""
    pod, report = current(plan, seen), report_of(plan, seen)
    return (
        pod is None
        or (report is not None and report.phase.is_over)
        or pod.node_is_lost
        or pod.is_leaving
        or isinstance(pod.stage, Terminated | Waiting)
    )


def _with_pod(plan: Plan, pod: DriverPod, seen: Observed) -> Plan:
    driver, point = plan.status.driver, plan.status.restore_point
    assert driver is not None, "the current pod is that of a known attempt"
    if driver.pod_uid is not None:
        return plan
    assert point is not None, "what a driver starts from is written before it starts"
    plan = plan.writing(driver=driver.model_copy(update={"pod_uid": pod.uid}))
    return plan.telling(seen.now, "DriverStarted", f"{pod.name} starts {in_words(point)}")


def _with_checkpoint(plan: Plan, report: DriverReport) -> Plan:
    status, newest = plan.status, report.newest
    if newest is None or not report.completed:
        return plan
    if status.last_checkpoint is None or newest.id > status.last_checkpoint.id:
        plan = plan.writing(last_checkpoint=newest)
    point, driver = status.restore_point, status.driver
    if point is None or driver is None or point.deployment != driver.deployment:
        return plan
    return plan.writing(restore_point=raised(point, newest))


def _with_restarts(plan: Plan, report: DriverReport) -> Plan:
    driver = plan.status.driver
    assert driver is not None, "the report is that of a known attempt"
    more = max(0, report.restarts - driver.restarts)
    if not more:
        return plan
    counted = driver.model_copy(update={"restarts": report.restarts})
    return plan.writing(driver=counted, restarts=plan.status.restarts + more)


def _with_phase(plan: Plan, pod: DriverPod, report: DriverReport | None, seen: Observed) -> Plan:
    driver = plan.status.driver
    assert driver is not None, "the current pod is that of a known attempt"
    if driver.running_since is not None or isinstance(pod.stage, Terminated):
        return plan
    if report is not None and report.phase is JobPhase.RUNNING:
        ran = {"phase": None, "phase_since": None, "running_since": seen.now}
        plan = plan.writing(driver=driver.model_copy(update=ran))
        return plan.telling(seen.now, "Running", f"all subtasks of {pod.name} run")
    phase = _phase(pod, report)
    if phase is None or not _is_further(phase, driver.phase):
        return plan
    return plan.writing(driver=driver.model_copy(update={"phase": phase, "phase_since": seen.now}))


def _is_further(phase: StartPhase, before: StartPhase | None) -> bool:
    """A start that falls back, or a driver that is silent for a moment, gets no new deadline."""
    order = list(StartPhase)
    return before is None or order.index(phase) > order.index(before)


def _phase(pod: DriverPod, report: DriverReport | None) -> StartPhase | None:
    if isinstance(pod.stage, Waiting):
        return StartPhase.POD
    return StartPhase.DRIVER if report is None else _PHASES.get(report.phase)


def _with_stability(plan: Plan, report: DriverReport, seen: Observed) -> Plan:
    """Count this version's checkpoints; a restart begins the count anew, but for a proved one."""
    stability = plan.status.stability
    if report.phase is not JobPhase.RUNNING or (stability and stability.is_stable):
        return plan
    restarts = plan.status.restarts
    if stability is None or stability.restarts_before != restarts:
        stability = Stability(
            since=seen.now, completed_before=report.completed, restarts_before=restarts
        )
    done = max(stability.checkpoints, report.completed - stability.completed_before)
    return plan.writing(stability=stability.model_copy(update={"checkpoints": done}))
