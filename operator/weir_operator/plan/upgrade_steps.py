"""The steps of an upgrade in the status: which one is active, and which have ended."""

from datetime import datetime

from weir_operator.plan.job_plan import later
from weir_operator.resource.status_fields import (
    StepName,
    StepState,
    Upgrade,
    UpgradeCause,
    UpgradeStep,
)

_OVER = (StepState.DONE, StepState.SKIPPED)
_BEFORE_A_RESUMPTION = (
    StepName.TAKE_SAVEPOINT,
    StepName.STOP_DRIVER,
    StepName.RECORD_RESTORE_POINT,
)


def new_steps(cause: UpgradeCause) -> tuple[UpgradeStep, ...]:
    """All steps in order. A resumption skips the steps that the suspension has done."""
    done = _BEFORE_A_RESUMPTION if cause is UpgradeCause.RESUMED else ()
    return tuple(
        UpgradeStep(name=name, state=StepState.SKIPPED if name in done else StepState.PENDING)
        for name in StepName
    )


def active(upgrade: Upgrade | None) -> StepName | None:
    """The active step; none if the upgrade has completed or was aborted."""
    if upgrade is None:
        return None
    for step in upgrade.steps:
        if step.state is StepState.FAILED:
            return None
        if step.state not in _OVER:
            return step.name
    return None


def is_in_progress(upgrade: Upgrade | None) -> bool:
    """Whether the upgrade has not yet started its new driver."""
    return active(upgrade) not in (None, StepName.BECOME_STABLE)


def step_of(upgrade: Upgrade, name: StepName) -> UpgradeStep:
    return next(step for step in upgrade.steps if step.name is name)


def advance(
    upgrade: Upgrade,
    name: StepName,
    now: datetime,
    timeout_ms: int | None,
    *,
    anew: bool = False,
) -> Upgrade:
    """Begin a step, or begin it again; an active one stays as it is."""
    step = step_of(upgrade, name)
    if step.state is StepState.ACTIVE and not anew:
        return upgrade
    begun = step.model_copy(
        update={
            "state": StepState.ACTIVE,
            "tries": step.tries + 1,
            "started_at": now,
            "deadline": None if timeout_ms is None else later(now, timeout_ms),
        }
    )
    return _with(upgrade, begun)


def ended(
    upgrade: Upgrade,
    name: StepName,
    state: StepState,
    now: datetime,
    message: str | None = None,
) -> Upgrade:
    """A step has ended, successfully or not."""
    step = step_of(upgrade, name)
    over = UpgradeStep(
        name=name,
        state=state,
        tries=step.tries,
        started_at=step.started_at,
        ended_at=now,
        message=message,
    )
    return _with(upgrade, over)


def reopened(upgrade: Upgrade, name: StepName) -> Upgrade:
    """A step must be repeated, because its purpose has changed."""
    return _with(upgrade, UpgradeStep(name=name))


def _with(upgrade: Upgrade, step: UpgradeStep) -> Upgrade:
    steps = tuple(step if old.name is step.name else old for old in upgrade.steps)
    return upgrade.model_copy(update={"steps": steps})
