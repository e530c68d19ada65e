"""Tells what became of each snapshot of the job, once, and shows the newest savepoint (spec K5).

Which ones were told stands in the status, the youngest of them by name; whatever is older than all
of these was told before. Savepoints of upgrades and deletions are told by those themselves, and one
that was adopted was not taken by this job. While an upgrade is on its way to a new driver, the last
savepoint is the upgrade's own, whatever else completes meanwhile.
"""

from collections.abc import Iterable

from weir_operator.plan.job_plan import Plan
from weir_operator.plan.observed_state import Observed, SeenSnapshot
from weir_operator.plan.upgrade_steps import is_moving
from weir_operator.resource.snapshot import SnapshotState, SnapshotType, Trigger
from weir_operator.resource.status_fields import MOST_TOLD, LastSavepoint, ToldSnapshot

_OVER = (SnapshotState.COMPLETED, SnapshotState.FAILED, SnapshotState.ABANDONED)
_TOLD_ELSEWHERE = (Trigger.UPGRADE, Trigger.DELETION)
_WORDS = {SnapshotType.SAVEPOINT: "Savepoint", SnapshotType.CHECKPOINT: "Checkpoint"}


def tell_outcomes(plan: Plan, seen: Observed) -> Plan:
    """An Event and an entry of the history for every snapshot that is over and was not told."""
    over = sorted((one for one in seen.snapshots if _is_ours(one)), key=_age)
    news = [one for one in over if not _was_told(plan.status.answered.snapshots, one)]
    for snapshot in news:
        plan = _told(plan, snapshot, seen)
    return _with_last_savepoint(_remembering(plan, news), over)


def _is_ours(snapshot: SeenSnapshot) -> bool:
    spec = snapshot.spec
    is_told_here = spec.trigger not in _TOLD_ELSEWHERE and not spec.is_adopted
    return is_told_here and snapshot.status.state in _OVER


def _age(snapshot: SeenSnapshot) -> tuple[float, str]:
    return snapshot.created_at.timestamp(), snapshot.name


def _was_told(told: tuple[ToldSnapshot, ...], snapshot: SeenSnapshot) -> bool:
    keys = [(one.created_at.timestamp(), one.name) for one in told]
    is_older = len(keys) == MOST_TOLD and _age(snapshot) < keys[0]
    return is_older or _age(snapshot) in keys


def _remembering(plan: Plan, news: Iterable[SeenSnapshot]) -> Plan:
    answered = plan.status.answered
    added = [ToldSnapshot(name=one.name, created_at=one.created_at) for one in news]
    if not added:
        return plan
    told = sorted((*answered.snapshots, *added), key=lambda one: (one.created_at, one.name))
    youngest = tuple(told[-MOST_TOLD:])
    return plan.writing(answered=answered.model_copy(update={"snapshots": youngest}))


def _told(plan: Plan, snapshot: SeenSnapshot, seen: Observed) -> Plan:
    word, status = _WORDS[snapshot.spec.type], snapshot.status
    if status.state is SnapshotState.COMPLETED:
        message = f"{snapshot.name} lies at {status.path}"
        return plan.telling(seen.now, f"{word}Completed", message)
    message = f"{snapshot.name}: {status.message or 'nobody said why'}"
    return plan.telling(seen.now, f"{word}Failed", message, is_warning=True)


def _with_last_savepoint(plan: Plan, over: Iterable[SeenSnapshot]) -> Plan:
    taken = [
        LastSavepoint(
            path=one.status.path,
            snapshot=one.name,
            checkpoint_id=one.status.checkpoint_id,
            completed_at=one.status.completed_at,
        )
        for one in over
        if one.spec.type is SnapshotType.SAVEPOINT
        and one.status.path is not None
        and one.status.completed_at is not None
    ]
    newest = max(taken, key=lambda one: one.completed_at, default=None)
    last = plan.status.last_savepoint
    if newest is None or is_moving(plan.status.upgrade):
        return plan
    if last is not None and last.completed_at >= newest.completed_at:
        return plan
    return plan.writing(last_savepoint=newest)
