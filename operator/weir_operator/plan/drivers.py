"""Starts and deletes drivers, never two at a time as far as the API server shows.

A driver is created only when the API server itself shows no other, or only pods that do not
terminate, and under an attempt number that was stored before. If two ran nevertheless, because a
node was partitioned, the log in the checkpoint storage lets only one of them continue (spec C17).
"""

from dataclasses import dataclass

from weir_operator.manifests.object_names import driver_name
from weir_operator.plan.cluster_actions import CreateDriver, DeleteDriver, EnsureDependent, ReadLive
from weir_operator.plan.job_plan import Plan, later
from weir_operator.plan.local_recovery import decide
from weir_operator.plan.observed_state import Dependent, DriverPod, DriverReport, Observed
from weir_operator.plan.spec_versions import DesiredVersion, read
from weir_operator.resource.deadlines import StartPhase
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.status_fields import DriverStatus, LocalRecoveryStatus, SpecVersion

REQUEUE_MS = 1_000
"""When to reconcile again while a pod terminates."""


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """The desired version and the observed state."""

    desired: DesiredVersion
    observed: Observed
    requested_spec: CheckpointedJobSpec | None = None
    """The current specification, if it is valid; after a rollback it is not the desired version."""

    @property
    def is_requested(self) -> bool:
        """Whether the desired version is the current specification, and not an older one."""
        return self.desired.spec is self.requested_spec


def current(plan: Plan, observed: Observed) -> DriverPod | None:
    """The pod of the current attempt, if it is the one that was observed before."""
    driver = plan.status.driver
    pod = None if driver is None else observed.driver(driver.attempt)
    if driver is None or pod is None or driver.pod_uid not in (None, pod.uid):
        return None
    return pod


def report_of(plan: Plan, observed: Observed) -> DriverReport | None:
    """The report of the current attempt's driver."""
    driver, report = plan.status.driver, observed.report
    return report if driver and report and report.attempt == driver.attempt else None


def delete_drivers(plan: Plan, observed: Observed) -> Plan:
    """Delete every observed driver; those on lost nodes by force."""
    if not observed.drivers:
        return plan
    return delete_pods(plan, observed.drivers).requeue_by(later(observed.now, REQUEUE_MS))


def delete_pods(plan: Plan, pods: tuple[DriverPod, ...]) -> Plan:
    for pod in pods:
        is_forced = pod.terminating is not None and pod.terminating.is_forced
        if not pod.is_terminating or (pod.is_node_lost and not is_forced):
            plan = plan.with_actions(
                DeleteDriver(pod.name, pod.uid, pod.attempt, force=pod.is_node_lost)
            )
    return plan


def start(plan: Plan, version: SpecVersion, inputs: PlanInputs, failed_starts: int = 0) -> Plan:
    """Create the driver of the next attempt, once the API server shows no other."""
    observed = inputs.observed
    if observed.drivers:
        return delete_drivers(plan, observed)
    if not observed.is_live:
        return plan.with_actions(ReadLive())
    before = plan.status.driver
    attempt = 1 if before is None else before.attempt + 1
    point = plan.status.restore_point
    assert point is not None, "what a driver starts from is written before it starts"
    driver = DriverStatus(
        attempt=attempt,
        deployment=point.deployment,
        pod_name=driver_name(observed.name, attempt),
        created_at=observed.now,
        phase=StartPhase.POD,
        phase_since=observed.now,
        failed_starts=failed_starts,
    )
    deployed = version.model_copy(update={"deployed_at": version.deployed_at or observed.now})
    copies = _copies(plan, version, inputs)
    started = plan.with_status(
        driver=driver, deployed=deployed, local_recovery=copies, ended_at=None
    )
    return create(started)


def create(plan: Plan) -> Plan:
    """Create what the status records, or adopt what exists of it."""
    status = plan.status
    assert status.driver is not None, "the attempt is written before its pod is made"
    assert status.deployed is not None, "and so is the version"
    assert status.restore_point is not None, "and what it starts from"
    assert status.job_id is not None, "and the location of its state"
    attempt, version = status.driver.attempt, status.deployed
    copies = keeps_local_copies(plan)
    return plan.with_actions(
        *(EnsureDependent(part, attempt, version, copies) for part in Dependent),
        CreateDriver(
            status.driver.pod_name,
            attempt,
            version,
            status.restore_point,
            status.job_id,
            local_recovery=copies,
        ),
    )


def _copies(plan: Plan, version: SpecVersion, inputs: PlanInputs) -> LocalRecoveryStatus | None:
    """Whether its executors keep local copies; only the volume of the desired version was read."""
    if not read(version).state.local_recovery:
        return None
    is_goal = version.hash == inputs.desired.version.hash
    return decide(inputs.observed.local_volume) if is_goal else plan.status.local_recovery


def keeps_local_copies(plan: Plan) -> bool:
    """Whether executors keep local copies of state, as decided when their driver was created."""
    decided = plan.status.local_recovery
    return decided is not None and decided.enabled
