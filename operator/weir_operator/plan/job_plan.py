"""A plan while it is being made: the status to write first, then what to do, then when to look.

Intent stands before effect by construction: whatever a plan does is written into the status that
goes before it, and the shell writes that status under its lock even when nothing in it changed. So
an operator that reads an old status, or that is no longer the leader, fails at the write and does
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
    """Write the status if it changed or if there are actions, then act in order, then wait."""

    status: CheckpointedJobStatus
    actions: tuple[Action, ...] = ()
    look_again: datetime | None = None
    """The latest moment to look again, even if nothing changes until then."""

    def writing(self, **changes: object) -> "Plan":
        return replace(self, status=self.status.model_copy(update=changes))

    def doing(self, *actions: Action) -> "Plan":
        return replace(self, actions=(*self.actions, *actions))

    def looking(self, *moments: datetime | None) -> "Plan":
        """Look again at the first of these, or earlier."""
        known = [moment for moment in (self.look_again, *moments) if moment is not None]
        return replace(self, look_again=min(known, default=None))

    def telling(
        self, at: datetime, reason: str, message: str, *, is_warning: bool = False
    ) -> "Plan":
        """Let people know, in the history and by an Event."""
        status = self.status
        entry = HistoryEntry(
            at=at,
            reason=reason,
            message=message,
            generation=status.deployed.generation if status.deployed else None,
            attempt=status.driver.attempt if status.driver else None,
        )
        history = (*status.history, entry)[-LONGEST_HISTORY:]
        told = EmitEvent(entry.reason, entry.message, is_warning)
        return self.writing(history=history).doing(told)


def later(moment: datetime, milliseconds: int) -> datetime:
    return moment + timedelta(milliseconds=milliseconds)


def with_intent(plan: Plan, seen: Observed) -> Plan:
    """Write down what the plan is about to do; what was written for it before keeps its time."""
    first = next((action for action in plan.actions if isinstance(action, Effect)), None)
    if first is None:
        return plan.writing(intent=None)
    intent = Intent(
        action=KINDS[type(first)],
        target=_target(first, seen),
        attempt=getattr(first, "attempt", None),
        generation=seen.generation,
        request_id=getattr(first, "key", None),
        written_at=seen.now,
    )
    before = plan.status.intent
    if before is not None and before == intent.model_copy(update={"written_at": before.written_at}):
        return plan
    return plan.writing(intent=intent)


def _target(effect: Effect, seen: Observed) -> str:
    return str(getattr(effect, "name", getattr(effect, "snapshot", seen.name)))


def merged(before: Iterable[Condition], now: Iterable[Condition]) -> tuple[Condition, ...]:
    """The conditions of now; one whose status did not change keeps the time of its change."""
    known = {condition.type: condition for condition in before}
    return tuple(
        condition.model_copy(update={"last_transition_time": old.last_transition_time})
        if (old := known.get(condition.type)) is not None and old.status is condition.status
        else condition
        for condition in now
    )
