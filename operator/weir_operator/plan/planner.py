"""Plans the next step for a job from its specification, its status and the observed state.

The same function serves a new job, a job during an upgrade and a job whose operator has just
crashed. It reads facts and the stored status, never earlier intentions that were not stored. So
repeating it changes nothing.
"""

from weir_operator.manifests.object_names import Role, selector
from weir_operator.plan import drivers, restore_points, rollback, savepoint_requests
from weir_operator.plan.cluster_actions import DeleteJob, ForceDeletePod
from weir_operator.plan.driver_recovery import reconcile_driver
from weir_operator.plan.drivers import PlanInputs
from weir_operator.plan.job_deletion import delete
from weir_operator.plan.job_plan import Plan, later, with_intent
from weir_operator.plan.observed_state import Observed
from weir_operator.plan.pod_problems import report_pod_problems
from weir_operator.plan.snapshot_outcomes import report_outcomes
from weir_operator.plan.spec_versions import (
    deployed_spec,
    desired_version,
    is_aborted,
    is_suspended,
    needs_driver,
    upgrade_cause,
)
from weir_operator.plan.stability import update_stability
from weir_operator.plan.status_conditions import with_conditions
from weir_operator.plan.status_update import (
    is_running,
    record_local_recovery,
    record_observed,
    record_rejection,
)
from weir_operator.plan.stuck_drivers import without_stuck
from weir_operator.plan.upgrade import begin_upgrade, continue_upgrade
from weir_operator.plan.upgrade_steps import is_in_progress
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.status import CheckpointedJobStatus
from weir_operator.resource.status_fields import UpgradeCause
from weir_operator.resource.validation import Rejected


def plan(
    spec: CheckpointedJobSpec | Rejected, status: CheckpointedJobStatus, observed: Observed
) -> Plan:
    """The status to write, the actions to execute then, and the time of the next reconcile."""
    drafted = record_rejection(record_observed(Plan(status), observed), observed)
    observed = without_stuck(observed)
    drafted = report_pod_problems(drafted, observed)
    desired = desired_version(spec, status, observed.generation)
    requested_spec = None if isinstance(spec, Rejected) else spec
    refused = spec if isinstance(spec, Rejected) else None
    if observed.deleted_at is not None:
        drafted = delete(drafted, None if desired is None else desired.spec, observed)
    elif desired is not None:
        inputs = PlanInputs(desired, observed, requested_spec)
        drafted = _next(report_outcomes(drafted, observed), inputs)
        drafted = record_local_recovery(drafted, desired, observed)
        drafted = _with_scale(drafted, observed)
    lost = (ForceDeletePod(pod.name, pod.uid) for pod in observed.lost_executors)
    return with_intent(with_conditions(drafted.with_actions(*lost), observed, refused), observed)


def _next(drafted: Plan, inputs: PlanInputs) -> Plan:
    """The first of these that has something to do."""
    status = drafted.status
    if status.deployed is None:
        return _first_deployment(drafted, inputs)
    if is_in_progress(status.upgrade):
        return continue_upgrade(drafted, inputs)
    cause = _cause(drafted, inputs)
    if cause is not None:
        return begin_upgrade(drafted, inputs, cause)
    if is_suspended(status):
        return drivers.delete_drivers(drafted, inputs.observed)
    back = rollback.roll_back(drafted, inputs)
    if back is not None:
        return back
    if status.ended_at is not None:
        return _after_end(drafted, inputs)
    return _run(_with_new_policies(drafted, inputs), inputs)


def _cause(drafted: Plan, inputs: PlanInputs) -> UpgradeCause | None:
    """Why to upgrade; an aborted upgrade to the same generation is not started again."""
    upgrade = drafted.status.upgrade
    if not inputs.is_requested:
        # An older version keeps running; its nonces were handled long ago.
        return None
    if (
        upgrade is not None
        and is_aborted(upgrade)
        and upgrade.to_generation == inputs.desired.version.generation
    ):
        return None
    return upgrade_cause(inputs.desired, drafted.status)


def _first_deployment(drafted: Plan, inputs: PlanInputs) -> Plan:
    """Deploy a job for the first time, once it is not suspended."""
    observed, spec, status = inputs.observed, inputs.desired.spec, drafted.status
    point = restore_points.first(spec.recovery, spec.upgrade.mode, observed.now)
    point = restore_points.as_recorded(point, status.restore_point)
    answered = status.answered.model_copy(
        update={
            "savepoint_nonce": spec.savepoint_nonce,
            "restart_nonce": spec.restart_nonce,
            "redeploy_nonce": spec.redeploy_nonce,
        }
    )
    drafted = drafted.with_status(
        job_id=status.job_id or f"{observed.name}-{observed.uid}",
        restore_point=point,
        answered=answered,
    )
    if spec.suspend:
        return drivers.delete_drivers(drafted, observed)
    return drivers.start(drafted, inputs.desired.version, inputs)


def _with_new_policies(drafted: Plan, inputs: PlanInputs) -> Plan:
    """Fields that only the operator reads take effect at once; so does reverting an edit."""
    deployed, version = drafted.status.deployed, inputs.desired.version
    assert deployed is not None, "the job was deployed"
    if deployed.generation == version.generation or needs_driver(deployed, inputs.desired.spec):
        return drafted
    newer = version.model_copy(update={"deployed_at": deployed.deployed_at})
    stable = drafted.status.stable
    if stable is not None and stable.hash == deployed.hash:
        drafted = drafted.with_status(stable=newer)
    return drafted.with_status(deployed=newer, rollback=None)


def _run(drafted: Plan, inputs: PlanInputs) -> Plan:
    drafted = reconcile_driver(drafted, inputs)
    if drafted.status.ended_at is not None or not is_running(drafted, inputs.observed):
        return drafted
    return savepoint_requests.request_snapshots(update_stability(drafted, inputs), inputs)


def _after_end(drafted: Plan, inputs: PlanInputs) -> Plan:
    ended, ttl = drafted.status.ended_at, inputs.desired.spec.ttl_after_end
    assert ended is not None, "the job has ended"
    if ttl is None:
        return drafted
    due = later(ended, ttl)
    if inputs.observed.now < due:
        return drafted.requeue_by(due)
    return drafted.with_actions(DeleteJob(inputs.observed.name))


def _with_scale(drafted: Plan, observed: Observed) -> Plan:
    """What a HorizontalPodAutoscaler reads."""
    spec = deployed_spec(drafted.status)
    if spec is None:
        return drafted
    labels = selector(observed.name, Role.EXECUTOR).items()
    found_by = ",".join(f"{name}={value}" for name, value in labels)
    return drafted.with_status(parallelism=spec.parallelism, selector=found_by)
