"""Decides the next step for a job: what was asked and what was seen become a plan.

The same function serves a new job, one in the middle of an upgrade and one whose operator died a
moment ago. It looks at facts, never at what it meant to do a moment before, unless that was written
down. So doing it again changes nothing.
"""

from weir_operator.manifests.object_names import Role, selector
from weir_operator.plan import drivers, restore_points, rollback, savepoint_requests, upgrade
from weir_operator.plan.cluster_actions import DeleteJob, ForceDelete
from weir_operator.plan.driver_recovery import keep_alive
from weir_operator.plan.drivers import Look
from weir_operator.plan.job_deletion import delete
from weir_operator.plan.job_plan import Plan, later, with_intent
from weir_operator.plan.observed_state import Observed
from weir_operator.plan.pod_problems import tell_troubles
from weir_operator.plan.snapshot_outcomes import tell_outcomes
from weir_operator.plan.spec_versions import (
    cause_of,
    deployed_spec,
    goal_of,
    is_given_up,
    is_suspended,
    needs_driver,
)
from weir_operator.plan.stability import prove
from weir_operator.plan.status_conditions import with_words
from weir_operator.plan.status_update import is_running, note, note_local_recovery, note_refusal
from weir_operator.plan.stuck_drivers import without_stuck
from weir_operator.plan.upgrade_steps import is_moving
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.status import CheckpointedJobStatus
from weir_operator.resource.status_fields import UpgradeCause
from weir_operator.resource.validation import Refused


def plan(
    spec: CheckpointedJobSpec | Refused, status: CheckpointedJobStatus, observed: Observed
) -> Plan:
    """The status to write, then what to do, then when to look again."""
    drafted = note_refusal(note(Plan(status), observed), observed)
    observed = without_stuck(observed)
    drafted = tell_troubles(drafted, observed)
    goal = goal_of(spec, status, observed.generation)
    asked = None if isinstance(spec, Refused) else spec
    refused = spec if isinstance(spec, Refused) else None
    if observed.deleted_at is not None:
        drafted = delete(drafted, None if goal is None else goal.spec, observed)
    elif goal is not None:
        look = Look(goal, observed, asked)
        drafted = _next(tell_outcomes(drafted, observed), look)
        drafted = note_local_recovery(drafted, goal, observed)
        drafted = _counted(drafted, observed)
    lost = (ForceDelete(pod.name, pod.uid) for pod in observed.lost_executors)
    return with_intent(with_words(drafted.doing(*lost), observed, refused), observed)


def _next(drafted: Plan, look: Look) -> Plan:
    """The first of these that has something to do."""
    status = drafted.status
    if status.deployed is None:
        return _first(drafted, look)
    if is_moving(status.upgrade):
        return upgrade.go_on(drafted, look)
    cause = _cause(drafted, look)
    if cause is not None:
        return upgrade.begin(drafted, look, cause)
    if is_suspended(status):
        return drivers.end_all(drafted, look.seen)
    back = rollback.roll_back(drafted, look)
    if back is not None:
        return back
    if status.ended_at is not None:
        return _after_the_end(drafted, look)
    return _run(_with_newer_policies(drafted, look), look)


def _cause(drafted: Plan, look: Look) -> UpgradeCause | None:
    """Why to upgrade; what was given up for this very specification is not begun again."""
    upgrade = drafted.status.upgrade
    if not look.is_as_asked:
        # An older version goes on as it is; what it once asked for was answered long ago.
        return None
    if (
        upgrade is not None
        and is_given_up(upgrade)
        and upgrade.to_generation == look.goal.version.generation
    ):
        return None
    return cause_of(look.goal, drafted.status)


def _first(drafted: Plan, look: Look) -> Plan:
    """Deploy a job for the first time, once it is not suspended."""
    seen, spec, status = look.seen, look.goal.spec, drafted.status
    point = restore_points.first(spec.recovery, spec.upgrade.mode, seen.now)
    point = restore_points.as_recorded(point, status.restore_point)
    answered = status.answered.model_copy(
        update={
            "savepoint_nonce": spec.savepoint_nonce,
            "restart_nonce": spec.restart_nonce,
            "redeploy_nonce": spec.redeploy_nonce,
        }
    )
    drafted = drafted.writing(
        job_id=status.job_id or f"{seen.name}-{seen.uid}", restore_point=point, answered=answered
    )
    if spec.suspend:
        return drivers.end_all(drafted, seen)
    return drivers.start(drafted, look.goal.version, look)


def _with_newer_policies(drafted: Plan, look: Look) -> Plan:
    """What only the operator reads takes effect at once, and so does an edit back to what runs."""
    deployed, version = drafted.status.deployed, look.goal.version
    assert deployed is not None, "the job was deployed"
    if deployed.generation == version.generation or needs_driver(deployed, look.goal.spec):
        return drafted
    newer = version.model_copy(update={"deployed_at": deployed.deployed_at})
    stable = drafted.status.stable
    if stable is not None and stable.hash == deployed.hash:
        drafted = drafted.writing(stable=newer)
    return drafted.writing(deployed=newer, rollback=None)


def _run(drafted: Plan, look: Look) -> Plan:
    drafted = keep_alive(drafted, look)
    if drafted.status.ended_at is not None or not is_running(drafted, look.seen):
        return drafted
    return savepoint_requests.serve(prove(drafted, look), look)


def _after_the_end(drafted: Plan, look: Look) -> Plan:
    ended, ttl = drafted.status.ended_at, look.goal.spec.ttl_after_end
    assert ended is not None, "the job has ended"
    if ttl is None:
        return drafted
    due = later(ended, ttl)
    if look.seen.now < due:
        return drafted.looking(due)
    return drafted.doing(DeleteJob(look.seen.name))


def _counted(drafted: Plan, seen: Observed) -> Plan:
    """What a HorizontalPodAutoscaler reads."""
    spec = deployed_spec(drafted.status)
    if spec is None:
        return drafted
    labels = selector(seen.name, Role.EXECUTOR).items()
    found_by = ",".join(f"{name}={value}" for name, value in labels)
    return drafted.writing(parallelism=spec.parallelism, selector=found_by)
