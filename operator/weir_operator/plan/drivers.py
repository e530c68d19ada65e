"""Starts and ends drivers, never two at a time as far as anybody can see.

A driver is made only when the API server itself shows no other, or only such as were told to end
and do not, and under a number that was written down before. If two lived all the same, because a
node was cut off, the log in the checkpoint storage lets only one of them go on (spec C17).
"""

from dataclasses import dataclass

from weir_operator.manifests.object_names import driver_name
from weir_operator.plan.cluster_actions import CreateDriver, DeleteDriver, Ensure, ReadLive
from weir_operator.plan.job_plan import Plan, later
from weir_operator.plan.local_recovery import decide
from weir_operator.plan.observed_state import DriverPod, DriverReport, Observed, Part
from weir_operator.plan.spec_versions import Goal, read
from weir_operator.resource.deadlines import StartPhase
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.status_fields import DriverStatus, LocalRecoveryStatus, SpecVersion

LOOK_MS = 1_000
"""How soon to look again at a pod that was told to end."""


@dataclass(frozen=True, slots=True)
class Look:
    """What is wanted and what was seen."""

    goal: Goal
    seen: Observed
    asked: CheckpointedJobSpec | None = None
    """The specification as it stands now, if it can be run; after a rollback it is not the goal."""

    @property
    def is_as_asked(self) -> bool:
        """Whether the goal is what the user wants now, and not an older version that goes on."""
        return self.goal.spec is self.asked


def current(plan: Plan, seen: Observed) -> DriverPod | None:
    """The pod of the current attempt, if it is the one that was seen before."""
    driver = plan.status.driver
    pod = None if driver is None else seen.driver(driver.attempt)
    if driver is None or pod is None or driver.pod_uid not in (None, pod.uid):
        return None
    return pod


def report_of(plan: Plan, seen: Observed) -> DriverReport | None:
    """What the driver of the current attempt said."""
    driver, report = plan.status.driver, seen.report
    return report if driver and report and report.attempt == driver.attempt else None


def end_all(plan: Plan, seen: Observed) -> Plan:
    """Delete every driver that was seen; those on lost nodes are not waited for."""
    if not seen.drivers:
        return plan
    return end_pods(plan, seen.drivers).looking(later(seen.now, LOOK_MS))


def end_pods(plan: Plan, pods: tuple[DriverPod, ...]) -> Plan:
    for pod in pods:
        is_forced = pod.leaving is not None and pod.leaving.is_forced
        if not pod.is_leaving or (pod.node_is_lost and not is_forced):
            plan = plan.doing(DeleteDriver(pod.name, pod.uid, pod.attempt, force=pod.node_is_lost))
    return plan


def start(plan: Plan, version: SpecVersion, look: Look, failed_starts: int = 0) -> Plan:
    """Make the next attempt's driver, once the API server shows none that is waited for."""
    seen = look.seen
    if seen.drivers:
        return end_all(plan, seen)
    if not seen.is_live:
        return plan.doing(ReadLive())
    before = plan.status.driver
    attempt = 1 if before is None else before.attempt + 1
    point = plan.status.restore_point
    assert point is not None, "what a driver starts from is written before it starts"
    driver = DriverStatus(
        attempt=attempt,
        deployment=point.deployment,
        pod_name=driver_name(seen.name, attempt),
        created_at=seen.now,
        phase=StartPhase.POD,
        phase_since=seen.now,
        failed_starts=failed_starts,
    )
    deployed = version.model_copy(update={"deployed_at": version.deployed_at or seen.now})
    copies = _copies(plan, version, look)
    started = plan.writing(driver=driver, deployed=deployed, local_recovery=copies, ended_at=None)
    return create(started)


def create(plan: Plan) -> Plan:
    """Make what was written down, or adopt what of it exists already."""
    status = plan.status
    assert status.driver is not None, "the attempt is written before its pod is made"
    assert status.deployed is not None, "and so is the version"
    assert status.restore_point is not None, "and what it starts from"
    assert status.job_id is not None, "and where its state lies"
    attempt, version = status.driver.attempt, status.deployed
    copies = keeps_local_copies(plan)
    return plan.doing(
        *(Ensure(part, attempt, version, copies) for part in Part),
        CreateDriver(
            status.driver.pod_name,
            attempt,
            version,
            status.restore_point,
            status.job_id,
            local_recovery=copies,
        ),
    )


def _copies(plan: Plan, version: SpecVersion, look: Look) -> LocalRecoveryStatus | None:
    """Whether its executors keep local copies; only the volume of the goal was looked at."""
    if not read(version).state.local_recovery:
        return None
    is_goal = version.hash == look.goal.version.hash
    return decide(look.seen.local_volume) if is_goal else plan.status.local_recovery


def keeps_local_copies(plan: Plan) -> bool:
    """Whether executors keep local copies of state, as was decided when their driver was."""
    decided = plan.status.local_recovery
    return decided is not None and decided.enabled
