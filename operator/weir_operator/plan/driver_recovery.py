"""Keeps a driver of the deployed version running: creates it, replaces a lost one, detects its end.

Whether the job inside a running driver is healthy is decided by the driver, with its restart
strategy and its health window. Here only drivers are created and deleted. A lost driver that has
made progress is replaced at once, however many were lost before it. If drivers are lost in a row
without progress, each replacement waits longer, and the status says why.
"""

from datetime import datetime, timedelta

from weir.api.report import JobPhase
from weir_operator.plan import drivers, stuck_drivers
from weir_operator.plan.cluster_actions import EnsureDependent, ReadLive
from weir_operator.plan.drivers import PlanInputs
from weir_operator.plan.job_plan import Plan, later
from weir_operator.plan.observed_state import (
    Dependent,
    DriverPod,
    DriverReport,
    Running,
    Terminated,
)
from weir_operator.plan.pod_problems import is_reason, start_delay_reason
from weir_operator.plan.spec_versions import readable
from weir_operator.resource.status_fields import DriverStatus, Failure, RestorePoint, RestoreType

BACKOFF_BASE_MS = 10_000
BACKOFF_LIMIT_MS = 300_000
REQUEUE_MS = 30_000
"""While nothing happens; events of the job enqueue it earlier."""
REQUEUE_DURING_START_MS = 1_000


def reconcile_driver(plan: Plan, inputs: PlanInputs) -> Plan:
    """What the driver's pod needs now."""
    observed, driver = inputs.observed, plan.status.driver
    assert driver is not None, "only what was started is kept alive"
    pod = drivers.current(plan, observed)
    if any(other is not pod for other in observed.drivers):
        return _delete_strays(plan, pod, inputs)
    if pod is None:
        return _driver_gone(plan, driver, inputs)
    if pod.is_node_lost:
        plan = failed(plan, inputs, "NodeLost", f"the node of {pod.name} is lost")
        return drivers.delete_drivers(plan, observed)
    if pod.is_terminating:
        return plan.requeue_by(later(observed.now, REQUEUE_DURING_START_MS))
    if _is_outdated(plan):
        return drivers.delete_drivers(plan, observed)
    report = drivers.report_of(plan, observed)
    if isinstance(pod.stage, Terminated) or (report is not None and report.phase.is_over):
        return _driver_ended(plan, pod, report, inputs)
    return _driver_alive(plan, pod, inputs)


def failed(plan: Plan, inputs: PlanInputs, reason: str, message: str) -> Plan:
    """Record a failure and report it, once for each driver and reason."""
    before = plan.status.last_failure
    failure = Failure(at=inputs.observed.now, reason=reason, message=message)
    if before is not None and (before.reason, before.message) == (reason, failure.message):
        return plan
    plan = plan.with_status(last_failure=failure)
    return plan.with_event(inputs.observed.now, reason, message, is_warning=True)


def start_overdue(plan: Plan, inputs: PlanInputs) -> str | None:
    """Why the start has failed, if its phase exceeds its deadline."""
    driver, observed = plan.status.driver, inputs.observed
    if driver is None or driver.phase is None or driver.phase_since is None:
        return None
    most = inputs.desired.spec.start_deadlines.of(driver.phase)
    if later(driver.phase_since, most) > observed.now:
        return None
    why = start_delay_reason(plan, observed)
    hint = f" ({why})" if why else ""
    return f"{driver.pod_name} exceeded the deadline of its start phase {driver.phase}{hint}"


def _is_outdated(plan: Plan) -> bool:
    """Whether a later deployment was decided, so that the end of this driver is irrelevant."""
    driver, point = plan.status.driver, plan.status.restore_point
    return driver is not None and point is not None and driver.deployment != point.deployment


def _delete_strays(plan: Plan, pod: DriverPod | None, inputs: PlanInputs) -> Plan:
    """Delete other drivers of this job."""
    observed = inputs.observed
    strays = tuple(other for other in observed.drivers if other is not pod)
    for_strays = drivers.delete_pods(plan, strays)
    return for_strays.requeue_by(later(observed.now, REQUEUE_DURING_START_MS))


def _driver_gone(plan: Plan, driver: DriverStatus, inputs: PlanInputs) -> Plan:
    deployed = plan.status.deployed
    assert deployed is not None, "what has a driver was deployed"
    if readable(deployed) is None:
        return failed(
            plan,
            inputs,
            "VersionUnreadable",
            f"{driver.pod_name} is gone, and this release of the operator cannot read the version"
            " that it ran; edit the specification, or downgrade the operator",
        )
    if driver.pod_uid is None:
        return drivers.create(plan).requeue_by(later(inputs.observed.now, REQUEUE_DURING_START_MS))
    if not inputs.observed.is_live:
        return plan.with_actions(ReadLive())
    return _replace_driver(plan, driver, inputs)


def _replace_driver(plan: Plan, driver: DriverStatus, inputs: PlanInputs) -> Plan:
    """The driver is gone: create the next one, after its backoff."""
    observed, last = inputs.observed, plan.status.last_failure
    stuck = next((pod for pod in observed.stuck if pod.attempt == driver.attempt), None)
    if stuck is not None:
        plan = failed(plan, inputs, stuck_drivers.STUCK, stuck_drivers.describe(stuck))
    elif last is None or driver.pod_name not in last.message.split():
        plan = failed(plan, inputs, "DriverLost", f"{driver.pod_name} is gone")
    last = plan.status.last_failure
    assert last is not None, "a loss was written down"
    in_a_row = _lost_in_a_row(driver, last.at)
    due = later(last.at, backoff_ms(in_a_row))
    if observed.now < due:
        return plan.requeue_by(due)
    deployed = plan.status.deployed
    assert deployed is not None, "a driver that was lost ran a version"
    started = drivers.start(plan, deployed, inputs, in_a_row)
    return started.with_status(restarts=plan.status.restarts + 1)


def _lost_in_a_row(driver: DriverStatus, lost_at: datetime) -> int:
    """This driver, and those before it unless it ran for long enough."""
    since = driver.running_since
    has_run = since is not None and lost_at - since >= timedelta(milliseconds=BACKOFF_LIMIT_MS)
    return 1 if has_run else driver.failed_starts + 1


def backoff_ms(in_a_row: int) -> int:
    """The backoff after so many losses in a row: none at first, then exponential."""
    doublings = min(in_a_row - 2, 16)
    return 0 if doublings < 0 else min(BACKOFF_BASE_MS << doublings, BACKOFF_LIMIT_MS)


def _driver_ended(
    plan: Plan, pod: DriverPod, report: DriverReport | None, inputs: PlanInputs
) -> Plan:
    """The job has ended, or only its driver; the report tells which."""
    match None if report is None else report.phase:
        case JobPhase.FINISHED:
            return finished(plan, inputs.observed.now)
        case JobPhase.FAILED | JobPhase.CANCELED:
            return given_up(plan, report, inputs)
        case JobPhase.STOPPED:
            return drivers.delete_drivers(_new_deployment(plan, report, inputs), inputs.observed)
        case _:
            assert isinstance(pod.stage, Terminated), "a job that is not over has a lost driver"
            message = _exit_message(pod.name, pod.stage, report)
            reason = _exit_reason(pod.stage.why)
            return drivers.delete_drivers(failed(plan, inputs, reason, message), inputs.observed)


def _exit_message(name: str, stage: Terminated, report: DriverReport | None) -> str:
    """The exit code of a driver, and its last report."""
    why = f" ({stage.why})" if stage.why else ""
    message = f": {report.why}" if report is not None and report.why else ""
    return f"{name} ended with code {stage.exit_code}{why}{message}"


def finished(plan: Plan, now: datetime) -> Plan:
    """The job has finished: all its sources ended."""
    return plan.with_status(ended_at=now).with_event(
        now, "Finished", "All sources reached their end"
    )


def given_up(plan: Plan, report: DriverReport | None, inputs: PlanInputs) -> Plan:
    """The job failed or was canceled: a person must act."""
    driver = plan.status.driver
    assert driver is not None, "a driver has reported"
    message = report.why if report is not None and report.why else "it gave no reason"
    canceled = report is not None and report.phase is JobPhase.CANCELED
    reason = "JobCanceled" if canceled else "JobFailed"
    plan = plan.with_status(ended_at=inputs.observed.now)
    return failed(plan, inputs, reason, f"the job of {driver.pod_name}: {message}")


def _new_deployment(plan: Plan, report: DriverReport | None, inputs: PlanInputs) -> Plan:
    """Another client stopped the job with a savepoint; only a new deployment continues from it."""
    point, driver = plan.status.restore_point, plan.status.driver
    assert point is not None, "a driver that ran started from something"
    assert driver is not None, "a driver has reported"
    if point.deployment != driver.deployment:
        return plan
    newest = None if report is None else report.newest
    anew = RestorePoint(
        type=RestoreType.LAST_STATE,
        lowest_checkpoint=max(point.lowest_checkpoint, 0 if newest is None else newest.id),
        deployment=point.deployment + 1,
        recorded_at=inputs.observed.now,
    )
    plan = plan.with_status(restore_point=anew)
    return failed(
        plan,
        inputs,
        "StoppedExternally",
        f"{driver.pod_name} was stopped through its API; use suspend",
    )


def _driver_alive(plan: Plan, pod: DriverPod, inputs: PlanInputs) -> Plan:
    """A driver that runs, or is starting."""
    observed = inputs.observed
    overdue = start_overdue(plan, inputs)
    if overdue is not None:
        return drivers.delete_drivers(failed(plan, inputs, "StartTimedOut", overdue), observed)
    if Dependent.KEYS not in observed.dependents and isinstance(pod.stage, Running):
        return _keys_lost(plan, pod, inputs)
    plan = _with_missing_dependents(plan, pod, inputs)
    driver = plan.status.driver
    if driver is None or driver.phase is None or driver.phase_since is None:
        return plan.requeue_by(later(observed.now, REQUEUE_MS))
    most = inputs.desired.spec.start_deadlines.of(driver.phase)
    return plan.requeue_by(
        later(observed.now, REQUEUE_DURING_START_MS), later(driver.phase_since, most)
    )


def _with_missing_dependents(plan: Plan, pod: DriverPod, inputs: PlanInputs) -> Plan:
    """Create deleted dependents of the driver again."""
    deployed, observed = plan.status.deployed, inputs.observed
    missing = [part for part in Dependent if part not in observed.dependents]
    if deployed is None or not missing or readable(deployed) is None:
        return plan
    copies = drivers.keeps_local_copies(plan)
    return plan.with_actions(
        *(EnsureDependent(part, pod.attempt, deployed, copies) for part in missing)
    )


def _keys_lost(plan: Plan, pod: DriverPod, inputs: PlanInputs) -> Plan:
    """New keys would not match those of the driver: only a new driver can be reached with them."""
    if not inputs.observed.is_live:
        return plan.with_actions(ReadLive())
    message = f"the Secret with the keys of {pod.name} was deleted, so the operator cannot reach it"
    return drivers.delete_drivers(failed(plan, inputs, "KeysLost", message), inputs.observed)


def _exit_reason(why: str) -> str:
    """The reason of Kubernetes, if it is specific."""
    says_nothing = why in ("", "Error", "Completed")
    return "DriverExited" if says_nothing or not is_reason(why) else why
