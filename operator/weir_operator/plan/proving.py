"""Says when a version has proved itself: so many checkpoints without a restart between them (K6).

To have been seen running once proves little. A version that is stable is what a rollback goes back
to.
"""

from weir_operator.plan.drafting import Plan, later
from weir_operator.plan.drivers import Look
from weir_operator.plan.noting import is_running
from weir_operator.plan.steps import active, advance, ended
from weir_operator.resource.progress import Stability, StepName, StepState


def prove(plan: Plan, look: Look) -> Plan:
    """Count towards stability, and write down when it is reached."""
    stability = plan.status.stability
    if stability is None or stability.is_stable or not is_running(plan, look.seen):
        return plan
    if not _has_proved_itself(stability, look):
        return _on_probation(plan, stability, look)
    status, now = plan.status, look.seen.now
    proved = stability.model_copy(update={"is_stable": True})
    plan = plan.writing(stability=proved, stable=status.deployed)
    if status.upgrade is not None and active(status.upgrade) is StepName.BECOME_STABLE:
        done = ended(status.upgrade, StepName.BECOME_STABLE, StepState.DONE, now)
        plan = plan.writing(upgrade=done)
    return plan.telling(now, "Stable", "this version has proved itself")


def _has_proved_itself(stability: Stability, look: Look) -> bool:
    spec = look.goal.spec
    if spec.checkpointing.is_periodic:
        return stability.checkpoints >= spec.rollback.checkpoints
    return later(stability.since, spec.rollback.within) <= look.seen.now


def _on_probation(plan: Plan, stability: Stability, look: Look) -> Plan:
    spec, upgrade = look.goal.spec, plan.status.upgrade
    plan = plan.looking(later(stability.since, spec.rollback.within))
    if upgrade is None or active(upgrade) is not StepName.BECOME_STABLE:
        return plan
    within = spec.rollback.within if spec.checkpointing.is_periodic else None
    begun = advance(upgrade, StepName.BECOME_STABLE, look.seen.now, within)
    return plan.writing(upgrade=begun)
