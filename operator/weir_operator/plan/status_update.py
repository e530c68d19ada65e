"""Writes down what was learned since the last look, and tells of it; decides nothing.

What a driver said counts as long as its pod is there to have said it, so that a word which arrives
late never touches what was decided for its successor.
"""

from weir.api.report import JobPhase
from weir_operator.plan.drivers import current, report_of
from weir_operator.plan.job_plan import Plan
from weir_operator.plan.local_recovery import decide, retell
from weir_operator.plan.observed_state import DriverPod, DriverReport, Observed, Terminated, Waiting
from weir_operator.plan.restore_points import in_words, raised
from weir_operator.plan.spec_versions import Goal, is_at_rest
from weir_operator.resource.deadlines import StartPhase
from weir_operator.resource.status_fields import DriverStatus, Stability

RESTARTED = "JobRestarted"

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
    plan = _with_restarts(_with_checkpoint(plan, report), report, seen)
    plan = plan.writing(scheduler_running=report.scheduler_running)
    plan = _with_advance(_with_phase(plan, pod, report, seen), report)
    return _with_stability(plan, report, seen)


def note_refusal(plan: Plan, seen: Observed) -> Plan:
    """What the API server refused is a failure of the job's, unless a later one hides it."""
    refused, known = seen.refusal, plan.status.last_failure
    is_news = refused is not None and (known is None or known.at < refused.at)
    if not is_news or plan.status.ended_at is not None:
        return plan
    return plan.writing(last_failure=refused)


def note_local_recovery(plan: Plan, goal: Goal, seen: Observed) -> Plan:
    """Whether executors keep copies, as decided for their driver or for the next one (spec K8)."""
    status, decided = plan.status, plan.status.local_recovery
    if status.driver is None or is_at_rest(status):
        asked = goal.spec.state.local_recovery
        return plan.writing(local_recovery=decide(seen.local_volume) if asked else None)
    assert status.deployed is not None, "what has a driver was deployed"
    if decided is None or goal.version.hash != status.deployed.hash:
        return plan
    told = retell(decided, status.driver.pod_name, seen.local_volume)
    return plan.writing(local_recovery=told)


def restarting(plan: Plan, seen: Observed) -> str:
    """What a living driver says of the restart that its job is in; empty if there is none."""
    driver, report = plan.status.driver, report_of(plan, seen)
    if driver is None or report is None or is_running(plan, seen) or is_down(plan, seen):
        return ""
    is_restart = report.restarts or report.phase is JobPhase.RESTARTING
    return restart_in_words(driver, report) if is_restart else ""


def restart_in_words(driver: DriverStatus, report: DriverReport) -> str:
    """The driver's own words: bounded where they were heard, and believed by nobody (spec X3)."""
    return f"{driver.pod_name} restarts the job: {report.why.strip() or 'it did not say why'}"


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


def _with_restarts(plan: Plan, report: DriverReport, seen: Observed) -> Plan:
    driver = plan.status.driver
    assert driver is not None, "the report is that of a known attempt"
    more = max(0, report.restarts - driver.restarts)
    if not more:
        return plan
    counted = driver.model_copy(update={"restarts": report.restarts})
    plan = plan.writing(driver=counted, restarts=plan.status.restarts + more)
    return plan if report.phase.is_over else _restart_told(plan, counted, report, seen)


def _restart_told(plan: Plan, driver: DriverStatus, report: DriverReport, seen: Observed) -> Plan:
    """An Event for what was restarted since the last look; in a row they are one entry."""
    history = plan.status.history
    if history and (history[-1].reason, history[-1].attempt) == (RESTARTED, driver.attempt):
        plan = plan.writing(history=history[:-1])
    return plan.telling(seen.now, RESTARTED, restart_in_words(driver, report), is_warning=True)


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


def _with_advance(plan: Plan, report: DriverReport) -> Plan:
    """A driver that was seen to run and to complete a checkpoint makes up for those before it."""
    driver = plan.status.driver
    assert driver is not None, "the report is that of a known attempt"
    if driver.running_since is None or not report.completed:
        return plan
    return plan.writing(driver=driver.model_copy(update={"failed_starts": 0}))


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
