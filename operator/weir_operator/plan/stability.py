"""Decides when a version is stable: after so many checkpoints without a restart (spec K6).

A version that was once seen running is not yet stable. A job without periodic checkpoints becomes
stable by running for ``rollback.within``; so that one restart does not decide, it has twice that
time. A rollback returns to the last stable version.
"""

from weir_operator.plan.drivers import PlanInputs
from weir_operator.plan.job_plan import Plan, later
from weir_operator.plan.status_update import is_running
from weir_operator.plan.upgrade_steps import active, advance, ended, step_of
from weir_operator.resource.status_fields import Stability, StepName, StepState


def update_stability(plan: Plan, inputs: PlanInputs) -> Plan:
    """Count towards stability, and record when it is reached."""
    stability = plan.status.stability
    if stability is None or stability.is_stable or not is_running(plan, inputs.observed):
        return plan
    if not has_become_stable(plan, inputs):
        return _await_stability(plan, stability, inputs)
    status, now = plan.status, inputs.observed.now
    proved = stability.model_copy(update={"is_stable": True})
    plan = plan.with_status(stability=proved, stable=status.deployed)
    if status.upgrade is not None and active(status.upgrade) is StepName.BECOME_STABLE:
        done = ended(status.upgrade, StepName.BECOME_STABLE, StepState.DONE, now)
        plan = plan.with_status(upgrade=done)
    assert status.deployed is not None, "what runs was deployed"
    generation = status.deployed.generation
    return plan.with_event(now, "Stable", f"Generation {generation} is stable")


def has_become_stable(plan: Plan, inputs: PlanInputs) -> bool:
    """Whether it runs and meets the criteria, even if that was not recorded yet."""
    spec, stability = inputs.desired.spec, plan.status.stability
    if stability is None or not is_running(plan, inputs.observed):
        return False
    if spec.checkpointing.is_periodic:
        return stability.checkpoints >= spec.rollback.checkpoints
    return later(stability.since, spec.rollback.within) <= inputs.observed.now


def _await_stability(plan: Plan, stability: Stability, inputs: PlanInputs) -> Plan:
    spec, upgrade = inputs.desired.spec, plan.status.upgrade
    plan = plan.requeue_by(later(stability.since, spec.rollback.within))
    if upgrade is None or active(upgrade) is not StepName.BECOME_STABLE:
        return plan
    timeout_ms = spec.rollback.within * (1 if spec.checkpointing.is_periodic else 2)
    begun = advance(upgrade, StepName.BECOME_STABLE, inputs.observed.now, timeout_ms)
    deadline = step_of(begun, StepName.BECOME_STABLE).deadline
    return plan.with_status(upgrade=begun).requeue_by(deadline)
