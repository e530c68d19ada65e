"""Keeps the deployed version alive: makes its driver, replaces a lost one, notices its end.

Whether the job inside a living driver is well is the driver's own business, with its restart
strategy and its health window. Here only drivers come and go. One that was lost is replaced at
once, however many were before it, if it has brought the job forward: waiting would help nobody. If
one after the other is lost before it has, each waits a little longer, and the status says why.
"""

from datetime import datetime, timedelta

from weir.api.report import JobPhase
from weir_operator.plan import drivers, stuck_drivers
from weir_operator.plan.cluster_actions import Ensure, ReadLive
from weir_operator.plan.drivers import Look
from weir_operator.plan.job_plan import Plan, later
from weir_operator.plan.observed_state import DriverPod, DriverReport, Part, Terminated, Up
from weir_operator.plan.pod_problems import is_reason, why_late
from weir_operator.plan.spec_versions import readable
from weir_operator.resource.status_fields import DriverStatus, Failure, RestorePoint, RestoreType

FIRST_WAIT_MS = 10_000
LONGEST_WAIT_MS = 300_000
LOOK_MS = 30_000
"""While nothing happens; whoever has news of the job rings before."""
LOOK_AT_A_START_MS = 1_000


def keep_alive(plan: Plan, look: Look) -> Plan:
    """What the driver's pod needs now."""
    seen, driver = look.seen, plan.status.driver
    assert driver is not None, "only what was started is kept alive"
    pod = drivers.current(plan, seen)
    if any(other is not pod for other in seen.drivers):
        return _without_strays(plan, pod, look)
    if pod is None:
        return _without_pod(plan, driver, look)
    if pod.node_is_lost:
        plan = failed(plan, look, "NodeLost", f"the node of {pod.name} is lost")
        return drivers.end_all(plan, seen)
    if pod.is_leaving:
        return plan.looking(later(seen.now, LOOK_AT_A_START_MS))
    if _is_outdated(plan):
        return drivers.end_all(plan, seen)
    report = drivers.report_of(plan, seen)
    if isinstance(pod.stage, Terminated) or (report is not None and report.phase.is_over):
        return _ended(plan, pod, report, look)
    return _tended(plan, pod, look)


def failed(plan: Plan, look: Look, reason: str, message: str) -> Plan:
    """Write a failure down and tell of it, once for each driver and reason."""
    before = plan.status.last_failure
    failure = Failure(at=look.seen.now, reason=reason, message=message)
    if before is not None and (before.reason, before.message) == (reason, failure.message):
        return plan
    plan = plan.writing(last_failure=failure)
    return plan.telling(look.seen.now, reason, message, is_warning=True)


def start_overdue(plan: Plan, look: Look) -> str | None:
    """Why the start has failed, if its phase takes longer than allowed."""
    driver, seen = plan.status.driver, look.seen
    if driver is None or driver.phase is None or driver.phase_since is None:
        return None
    most = look.goal.spec.start_deadlines.of(driver.phase)
    if later(driver.phase_since, most) > seen.now:
        return None
    why = why_late(plan, seen)
    hint = f" ({why})" if why else ""
    return f"{driver.pod_name} was too long in the phase {driver.phase} of its start{hint}"


def _is_outdated(plan: Plan) -> bool:
    """Whether another beginning was decided after this driver's, so that its end is no news."""
    driver, point = plan.status.driver, plan.status.restore_point
    return driver is not None and point is not None and driver.deployment != point.deployment


def _without_strays(plan: Plan, pod: DriverPod | None, look: Look) -> Plan:
    """Other drivers of this job have no business here."""
    seen = look.seen
    strays = tuple(other for other in seen.drivers if other is not pod)
    for_strays = drivers.end_pods(plan, strays)
    return for_strays.looking(later(seen.now, LOOK_AT_A_START_MS))


def _without_pod(plan: Plan, driver: DriverStatus, look: Look) -> Plan:
    deployed = plan.status.deployed
    assert deployed is not None, "what has a driver was deployed"
    if readable(deployed) is None:
        return failed(
            plan,
            look,
            "VersionUnreadable",
            f"{driver.pod_name} is gone, and this release of the operator cannot read the version"
            " that it ran; edit the specification, or take the operator back",
        )
    if driver.pod_uid is None:
        return drivers.create(plan).looking(later(look.seen.now, LOOK_AT_A_START_MS))
    if not look.seen.is_live:
        return plan.doing(ReadLive())
    return _replace(plan, driver, look)


def _replace(plan: Plan, driver: DriverStatus, look: Look) -> Plan:
    """The driver is gone: make the next one, not too soon."""
    seen, last = look.seen, plan.status.last_failure
    stuck = next((pod for pod in seen.stuck if pod.attempt == driver.attempt), None)
    if stuck is not None:
        plan = failed(plan, look, stuck_drivers.STUCK, stuck_drivers.in_words(stuck))
    elif last is None or driver.pod_name not in last.message.split():
        plan = failed(plan, look, "DriverLost", f"{driver.pod_name} is gone")
    last = plan.status.last_failure
    assert last is not None, "a loss was written down"
    in_a_row = _lost_in_a_row(driver, last.at)
    due = later(last.at, wait_ms(in_a_row))
    if seen.now < due:
        return plan.looking(due)
    deployed = plan.status.deployed
    assert deployed is not None, "a driver that was lost ran a version"
    started = drivers.start(plan, deployed, look, in_a_row)
    return started.writing(restarts=plan.status.restarts + 1)


def _lost_in_a_row(driver: DriverStatus, lost_at: datetime) -> int:
    """This one, and those before it unless it ran for long; checkpoints are noted as they come."""
    since = driver.running_since
    has_run = since is not None and lost_at - since >= timedelta(milliseconds=LONGEST_WAIT_MS)
    return 1 if has_run else driver.failed_starts + 1


def wait_ms(in_a_row: int) -> int:
    """How long to wait after so many losses in a row: first not at all, then ever longer."""
    doublings = min(in_a_row - 2, 16)
    return 0 if doublings < 0 else min(FIRST_WAIT_MS << doublings, LONGEST_WAIT_MS)


def _ended(plan: Plan, pod: DriverPod, report: DriverReport | None, look: Look) -> Plan:
    """The job is over, or its driver is; only the driver can say which."""
    match None if report is None else report.phase:
        case JobPhase.FINISHED:
            return finished(plan, look.seen.now)
        case JobPhase.FAILED | JobPhase.CANCELED:
            return given_up(plan, report, look)
        case JobPhase.STOPPED:
            return drivers.end_all(_begun_anew(plan, report, look), look.seen)
        case _:
            assert isinstance(pod.stage, Terminated), "a job that is not over has a lost driver"
            message = _last_words(pod.name, pod.stage, report)
            reason = _one_word(pod.stage.why)
            return drivers.end_all(failed(plan, look, reason, message), look.seen)


def _last_words(name: str, stage: Terminated, report: DriverReport | None) -> str:
    """How a driver ended, and what it said last."""
    why = f" ({stage.why})" if stage.why else ""
    said = f": {report.why}" if report is not None and report.why else ""
    return f"{name} ended with code {stage.exit_code}{why}{said}"


def finished(plan: Plan, now: datetime) -> Plan:
    """The job has come to its end by itself."""
    return plan.writing(ended_at=now).telling(now, "Finished", "all sources came to their end")


def given_up(plan: Plan, report: DriverReport | None, look: Look) -> Plan:
    """The job itself has failed or was canceled: a person must look."""
    driver = plan.status.driver
    assert driver is not None, "a driver has reported"
    said = report.why if report is not None and report.why else "it did not say why"
    canceled = report is not None and report.phase is JobPhase.CANCELED
    reason = "JobCanceled" if canceled else "JobFailed"
    plan = plan.writing(ended_at=look.seen.now)
    return failed(plan, look, reason, f"the job of {driver.pod_name}: {said}")


def _begun_anew(plan: Plan, report: DriverReport | None, look: Look) -> Plan:
    """Somebody else stopped the job with a savepoint; only a new deployment goes on from it."""
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
        recorded_at=look.seen.now,
    )
    plan = plan.writing(restore_point=anew)
    return failed(
        plan, look, "StoppedElsewhere", f"{driver.pod_name} was told to stop; use suspend"
    )


def _tended(plan: Plan, pod: DriverPod, look: Look) -> Plan:
    """A driver that lives, or is about to."""
    seen = look.seen
    overdue = start_overdue(plan, look)
    if overdue is not None:
        return drivers.end_all(failed(plan, look, "StartTimedOut", overdue), seen)
    if Part.KEYS not in seen.parts and isinstance(pod.stage, Up):
        return _without_keys(plan, pod, look)
    plan = _with_parts(plan, pod, look)
    driver = plan.status.driver
    if driver is None or driver.phase is None or driver.phase_since is None:
        return plan.looking(later(seen.now, LOOK_MS))
    most = look.goal.spec.start_deadlines.of(driver.phase)
    return plan.looking(later(seen.now, LOOK_AT_A_START_MS), later(driver.phase_since, most))


def _with_parts(plan: Plan, pod: DriverPod, look: Look) -> Plan:
    """What was deleted beside the driver is made again."""
    deployed, seen = plan.status.deployed, look.seen
    missing = [part for part in Part if part not in seen.parts]
    if deployed is None or not missing or readable(deployed) is None:
        return plan
    copies = drivers.keeps_local_copies(plan)
    return plan.doing(*(Ensure(part, pod.attempt, deployed, copies) for part in missing))


def _without_keys(plan: Plan, pod: DriverPod, look: Look) -> Plan:
    """New keys would not be those that the driver holds: only another driver can be spoken with."""
    if not look.seen.is_live:
        return plan.doing(ReadLive())
    message = f"the Secret with the keys of {pod.name} was deleted, so that nobody can reach it"
    return drivers.end_all(failed(plan, look, "KeysLost", message), look.seen)


def _one_word(why: str) -> str:
    """A word of Kubernetes as a reason, if it is one that says something."""
    says_nothing = why in ("", "Error", "Completed")
    return "DriverExited" if says_nothing or not is_reason(why) else why
