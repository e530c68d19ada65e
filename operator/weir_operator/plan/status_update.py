"""Records what was observed since the last reconcile in the status, with Events; decides nothing.

A report counts only while the driver's pod exists, so that a late report never affects the
successor of its driver.
"""

from weir.api.report import JobPhase
from weir_operator.plan.drivers import current, report_of
from weir_operator.plan.job_plan import Plan
from weir_operator.plan.local_recovery import decide, revised
from weir_operator.plan.observed_state import DriverPod, DriverReport, Observed, Terminated, Waiting
from weir_operator.plan.restore_points import describe, raised
from weir_operator.plan.spec_versions import DesiredVersion, is_fully_suspended
from weir_operator.resource.deadlines import StartPhase
from weir_operator.resource.status_fields import DriverStatus, Stability

RESTARTED = "JobRestarted"

_PHASES = {
    JobPhase.CREATED: StartPhase.SLOTS,
    JobPhase.WAITING_FOR_SLOTS: StartPhase.SLOTS,
    JobPhase.DEPLOYING: StartPhase.RESTORE,
    JobPhase.RESTARTING: StartPhase.RESTORE,
}


def record_observed(plan: Plan, observed: Observed) -> Plan:
    """The status with everything that was observed of the current driver."""
    pod = current(plan, observed)
    if pod is None:
        return plan.with_status(scheduler_running=None)
    plan = _with_pod(plan, pod, observed)
    report = report_of(plan, observed)
    if report is None:
        return _with_phase(plan.with_status(scheduler_running=None), pod, None, observed)
    plan = _with_restarts(_with_checkpoint(plan, report), report, observed)
    plan = plan.with_status(scheduler_running=report.scheduler_running)
    plan = _with_advance(_with_phase(plan, pod, report, observed), report)
    return _with_stability(plan, report, observed)


def record_rejection(plan: Plan, observed: Observed) -> Plan:
    """A rejection by the API server is a failure of the job, unless a later one hides it."""
    refused, known = observed.refusal, plan.status.last_failure
    is_news = refused is not None and (known is None or known.at < refused.at)
    if not is_news or plan.status.ended_at is not None:
        return plan
    return plan.with_status(last_failure=refused)


def record_local_recovery(plan: Plan, desired: DesiredVersion, observed: Observed) -> Plan:
    """Whether executors keep copies, as decided for the current or the next driver (spec K8)."""
    status, decided = plan.status, plan.status.local_recovery
    if status.driver is None or is_fully_suspended(status):
        requested_spec = desired.spec.state.local_recovery
        return plan.with_status(
            local_recovery=decide(observed.local_volume) if requested_spec else None
        )
    assert status.deployed is not None, "what has a driver was deployed"
    if decided is None or desired.version.hash != status.deployed.hash:
        return plan
    reported = revised(decided, status.driver.pod_name, observed.local_volume)
    return plan.with_status(local_recovery=reported)


def restart_message(plan: Plan, observed: Observed) -> str:
    """What a driver reports about the restart of its job; empty if there is none."""
    driver, report = plan.status.driver, report_of(plan, observed)
    if driver is None or report is None or is_running(plan, observed) or is_down(plan, observed):
        return ""
    is_restart = report.restarts or report.phase is JobPhase.RESTARTING
    return describe_restart(driver, report) if is_restart else ""


def describe_restart(driver: DriverStatus, report: DriverReport) -> str:
    """The driver's own text: truncated when it was received, and untrusted (spec X3)."""
    return f"{driver.pod_name} restarts the job: {report.why.strip() or 'it gave no reason'}"


def is_running(plan: Plan, observed: Observed) -> bool:
    """Whether all subtasks run, according to the driver."""
    pod, report = current(plan, observed), report_of(plan, observed)
    return (
        pod is not None
        and not isinstance(pod.stage, Terminated)
        and not pod.is_node_lost
        and report is not None
        and report.phase is JobPhase.RUNNING
    )


def is_down(plan: Plan, observed: Observed) -> bool:
    """Whether the driver is gone, ending or not started, or its job over; not if unreachable."""
    pod, report = current(plan, observed), report_of(plan, observed)
    return (
        pod is None
        or (report is not None and report.phase.is_over)
        or pod.is_node_lost
        or pod.is_terminating
        or isinstance(pod.stage, Terminated | Waiting)
    )


def _with_pod(plan: Plan, pod: DriverPod, observed: Observed) -> Plan:
    driver, point = plan.status.driver, plan.status.restore_point
    assert driver is not None, "the current pod is that of a known attempt"
    if driver.pod_uid is not None:
        return plan
    assert point is not None, "what a driver starts from is written before it starts"
    plan = plan.with_status(driver=driver.model_copy(update={"pod_uid": pod.uid}))
    return plan.with_event(observed.now, "DriverStarted", f"{pod.name} starts {describe(point)}")


def _with_checkpoint(plan: Plan, report: DriverReport) -> Plan:
    status, newest = plan.status, report.newest
    if newest is None or not report.completed:
        return plan
    if status.last_checkpoint is None or newest.id > status.last_checkpoint.id:
        plan = plan.with_status(last_checkpoint=newest)
    point, driver = status.restore_point, status.driver
    if point is None or driver is None or point.deployment != driver.deployment:
        return plan
    return plan.with_status(restore_point=raised(point, newest))


def _with_restarts(plan: Plan, report: DriverReport, observed: Observed) -> Plan:
    driver = plan.status.driver
    assert driver is not None, "the report is that of a known attempt"
    more = max(0, report.restarts - driver.restarts)
    if not more:
        return plan
    counted = driver.model_copy(update={"restarts": report.restarts})
    plan = plan.with_status(driver=counted, restarts=plan.status.restarts + more)
    return plan if report.phase.is_over else _with_restart_event(plan, counted, report, observed)


def _with_restart_event(
    plan: Plan, driver: DriverStatus, report: DriverReport, observed: Observed
) -> Plan:
    """An Event for the restarts since the last reconcile; consecutive ones share an entry."""
    history = plan.status.history
    if history and (history[-1].reason, history[-1].attempt) == (RESTARTED, driver.attempt):
        plan = plan.with_status(history=history[:-1])
    return plan.with_event(
        observed.now, RESTARTED, describe_restart(driver, report), is_warning=True
    )


def _with_phase(
    plan: Plan, pod: DriverPod, report: DriverReport | None, observed: Observed
) -> Plan:
    driver = plan.status.driver
    assert driver is not None, "the current pod is that of a known attempt"
    if driver.running_since is not None or isinstance(pod.stage, Terminated):
        return plan
    if report is not None and report.phase is JobPhase.RUNNING:
        ran = {"phase": None, "phase_since": None, "running_since": observed.now}
        plan = plan.with_status(driver=driver.model_copy(update=ran))
        return plan.with_event(observed.now, "Running", f"All subtasks of {pod.name} are running")
    phase = _phase(pod, report)
    if phase is None or not _is_further(phase, driver.phase):
        return plan
    return plan.with_status(
        driver=driver.model_copy(update={"phase": phase, "phase_since": observed.now})
    )


def _with_advance(plan: Plan, report: DriverReport) -> Plan:
    """A driver that ran and completed a checkpoint resets the count of failed starts."""
    driver = plan.status.driver
    assert driver is not None, "the report is that of a known attempt"
    if driver.running_since is None or not report.completed:
        return plan
    return plan.with_status(driver=driver.model_copy(update={"failed_starts": 0}))


def _is_further(phase: StartPhase, before: StartPhase | None) -> bool:
    """A start that falls back, or a driver that is briefly unreachable, gets no new deadline."""
    order = list(StartPhase)
    return before is None or order.index(phase) > order.index(before)


def _phase(pod: DriverPod, report: DriverReport | None) -> StartPhase | None:
    if isinstance(pod.stage, Waiting):
        return StartPhase.POD
    return StartPhase.DRIVER if report is None else _PHASES.get(report.phase)


def _with_stability(plan: Plan, report: DriverReport, observed: Observed) -> Plan:
    """Count this version's checkpoints; a restart resets the count unless it is stable."""
    stability = plan.status.stability
    if report.phase is not JobPhase.RUNNING or (stability and stability.is_stable):
        return plan
    restarts = plan.status.restarts
    if stability is None or stability.restarts_before != restarts:
        stability = Stability(
            since=observed.now, completed_before=report.completed, restarts_before=restarts
        )
    done = max(stability.checkpoints, report.completed - stability.completed_before)
    return plan.with_status(stability=stability.model_copy(update={"checkpoints": done}))
