"""The plan for a job: the status to write, the actions to execute, the time of the next reconcile.

Intent precedes effect by construction: every effect of a plan is recorded in the status that is
written before it, and that status is written under its lock even if nothing in it changed. So an
operator that read a stale status, or that is no longer the leader, fails at the write and does
nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from weir_operator.plan.cluster_actions import KINDS, Action, Effect, EmitEvent
from weir_operator.plan.observed_state import Observed
from weir_operator.resource.conditions import Condition
from weir_operator.resource.status import LONGEST_HISTORY, CheckpointedJobStatus
from weir_operator.resource.status_fields import HistoryEntry, Intent


@dataclass(frozen=True, slots=True)
class Plan:
    """Write the status if it changed or if there are actions, then execute them in order."""

    status: CheckpointedJobStatus
    actions: tuple[Action, ...] = ()
    requeue_at: datetime | None = None
    """The latest time of the next reconcile, even if nothing changes until then."""

    def with_status(self, **changes: object) -> "Plan":
        return replace(self, status=self.status.model_copy(update=changes))

    def with_actions(self, *actions: Action) -> "Plan":
        return replace(self, actions=(*self.actions, *actions))

    def requeue_by(self, *moments: datetime | None) -> "Plan":
        """Reconcile again at the first of these times, or earlier."""
        known = [moment for moment in (self.requeue_at, *moments) if moment is not None]
        return replace(self, requeue_at=min(known, default=None))

    def with_event(
        self, at: datetime, reason: str, message: str, *, is_warning: bool = False
    ) -> "Plan":
        """Add an entry to the history and an Event."""
        status = self.status
        entry = HistoryEntry(
            at=at,
            reason=reason,
            message=message,
            generation=status.deployed.generation if status.deployed else None,
            attempt=status.driver.attempt if status.driver else None,
        )
        history = (*status.history, entry)[-LONGEST_HISTORY:]
        reported = EmitEvent(entry.reason, entry.message, is_warning)
        return self.with_status(history=history).with_actions(reported)


def later(moment: datetime, milliseconds: int) -> datetime:
    return moment + timedelta(milliseconds=milliseconds)


def with_intent(plan: Plan, observed: Observed) -> Plan:
    """Record what the plan is about to do; a repeated intent keeps its time."""
    first = next((action for action in plan.actions if isinstance(action, Effect)), None)
    if first is None:
        return plan.with_status(intent=None)
    intent = Intent(
        action=KINDS[type(first)],
        target=_target(first, observed),
        attempt=getattr(first, "attempt", None),
        generation=observed.generation,
        request_id=getattr(first, "key", None),
        written_at=observed.now,
    )
    before = plan.status.intent
    if before is not None and before == intent.model_copy(update={"written_at": before.written_at}):
        return plan
    return plan.with_status(intent=intent)


def _target(effect: Effect, observed: Observed) -> str:
    return str(getattr(effect, "name", getattr(effect, "snapshot", observed.name)))


def merged(before: Iterable[Condition], now: Iterable[Condition]) -> tuple[Condition, ...]:
    """The new conditions; one whose status did not change keeps its transition time."""
    known = {condition.type: condition for condition in before}
    return tuple(
        condition.model_copy(update={"last_transition_time": old.last_transition_time})
        if (old := known.get(condition.type)) is not None and old.status is condition.status
        else condition
        for condition in now
    )
