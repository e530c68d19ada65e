"""Reports the outcome of each snapshot of the job once, and records the newest savepoint (spec K5).

The status holds the youngest reported snapshots by name; whatever is older than all of these was
reported before. Upgrades and deletions report their savepoints themselves, and an adopted snapshot
was not taken by this job. During an upgrade the last savepoint is the upgrade's own, even if others
complete in the meantime.
"""

from collections.abc import Iterable

from weir_operator.plan.job_plan import Plan
from weir_operator.plan.observed_state import Observed, ObservedSnapshot
from weir_operator.plan.upgrade_steps import is_in_progress
from weir_operator.resource.snapshot import SnapshotState, SnapshotType, Trigger
from weir_operator.resource.status_fields import MOST_REPORTED, LastSavepoint, ReportedSnapshot

_OVER = (SnapshotState.COMPLETED, SnapshotState.FAILED, SnapshotState.ABANDONED)
_REPORTED_ELSEWHERE = (Trigger.UPGRADE, Trigger.DELETION)
_WORDS = {SnapshotType.SAVEPOINT: "Savepoint", SnapshotType.CHECKPOINT: "Checkpoint"}


def report_outcomes(plan: Plan, observed: Observed) -> Plan:
    """An Event and a history entry for every snapshot that has ended and was not reported."""
    over = sorted((one for one in observed.snapshots if _is_ours(one)), key=_age)
    new = [one for one in over if not _was_reported(plan.status.answered.snapshots, one)]
    for snapshot in new:
        plan = _with_event_for(plan, snapshot, observed)
    return _with_last_savepoint(_with_reported(plan, new), over)


def _is_ours(snapshot: ObservedSnapshot) -> bool:
    spec = snapshot.spec
    is_reported_here = spec.trigger not in _REPORTED_ELSEWHERE and not spec.is_adopted
    return is_reported_here and snapshot.status.state in _OVER


def _age(snapshot: ObservedSnapshot) -> tuple[float, str]:
    return snapshot.created_at.timestamp(), snapshot.name


def _was_reported(reported: tuple[ReportedSnapshot, ...], snapshot: ObservedSnapshot) -> bool:
    keys = [(one.created_at.timestamp(), one.name) for one in reported]
    is_older = len(keys) == MOST_REPORTED and _age(snapshot) < keys[0]
    return is_older or _age(snapshot) in keys


def _with_reported(plan: Plan, new: Iterable[ObservedSnapshot]) -> Plan:
    answered = plan.status.answered
    added = [ReportedSnapshot(name=one.name, created_at=one.created_at) for one in new]
    if not added:
        return plan
    reported = sorted((*answered.snapshots, *added), key=lambda one: (one.created_at, one.name))
    youngest = tuple(reported[-MOST_REPORTED:])
    return plan.with_status(answered=answered.model_copy(update={"snapshots": youngest}))


def _with_event_for(plan: Plan, snapshot: ObservedSnapshot, observed: Observed) -> Plan:
    word, status = _WORDS[snapshot.spec.type], snapshot.status
    if status.state is SnapshotState.COMPLETED:
        message = f"{word} {snapshot.name} completed: {status.path}"
        return plan.with_event(observed.now, f"{word}Completed", message)
    message = f"{snapshot.name}: {status.message or 'no reason was given'}"
    return plan.with_event(observed.now, f"{word}Failed", message, is_warning=True)


def _with_last_savepoint(plan: Plan, over: Iterable[ObservedSnapshot]) -> Plan:
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
    if newest is None or is_in_progress(plan.status.upgrade):
        return plan
    if last is not None and last.completed_at >= newest.completed_at:
        return plan
    return plan.with_status(last_savepoint=newest)
