"""Says when a version has proved itself: so many checkpoints without a restart between (spec K6).

To have been seen running once proves little. A job without periodic checkpoints proves itself by
running for as long as others have for theirs; so that one restart does not decide, it has twice
that time. A version that is stable is what a rollback goes back to.
"""

from weir_operator.plan.drivers import Look
from weir_operator.plan.job_plan import Plan, later
from weir_operator.plan.status_update import is_running
from weir_operator.plan.upgrade_steps import active, advance, ended, step_of
from weir_operator.resource.status_fields import Stability, StepName, StepState


def prove(plan: Plan, look: Look) -> Plan:
    """Count towards stability, and write down when it is reached."""
    stability = plan.status.stability
    if stability is None or stability.is_stable or not is_running(plan, look.seen):
        return plan
    if not has_proved_itself(plan, look):
        return _on_probation(plan, stability, look)
    status, now = plan.status, look.seen.now
    proved = stability.model_copy(update={"is_stable": True})
    plan = plan.writing(stability=proved, stable=status.deployed)
    if status.upgrade is not None and active(status.upgrade) is StepName.BECOME_STABLE:
        done = ended(status.upgrade, StepName.BECOME_STABLE, StepState.DONE, now)
        plan = plan.writing(upgrade=done)
    assert status.deployed is not None, "what runs was deployed"
    generation = status.deployed.generation
    return plan.telling(now, "Stable", f"generation {generation} has proved itself")


def has_proved_itself(plan: Plan, look: Look) -> bool:
    """Whether it runs and has done enough, even if nobody was there to write that down."""
    spec, stability = look.goal.spec, plan.status.stability
    if stability is None or not is_running(plan, look.seen):
        return False
    if spec.checkpointing.is_periodic:
        return stability.checkpoints >= spec.rollback.checkpoints
    return later(stability.since, spec.rollback.within) <= look.seen.now


def _on_probation(plan: Plan, stability: Stability, look: Look) -> Plan:
    spec, upgrade = look.goal.spec, plan.status.upgrade
    plan = plan.looking(later(stability.since, spec.rollback.within))
    if upgrade is None or active(upgrade) is not StepName.BECOME_STABLE:
        return plan
    patience = spec.rollback.within * (1 if spec.checkpointing.is_periodic else 2)
    begun = advance(upgrade, StepName.BECOME_STABLE, look.seen.now, patience)
    deadline = step_of(begun, StepName.BECOME_STABLE).deadline
    return plan.writing(upgrade=begun).looking(deadline)
