"""Makes a snapshot object for every one that was asked for, once, and ends old ones (spec K5).

An object's name says what asked for it, so asking twice meets the same object. A wish counts as
answered when its object was seen, not when it was made: a crash between the two makes it again,
under the same name. Taking the snapshot is the object's own story (``snapshots``).
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from weir_operator.plan.cluster_actions import CreateSnapshot, DeleteSnapshot
from weir_operator.plan.drivers import Look
from weir_operator.plan.job_plan import Plan, later
from weir_operator.plan.observed_state import Observed, SeenSnapshot
from weir_operator.resource.cron import Cron
from weir_operator.resource.snapshot import (
    CheckpointedJobSnapshotSpec,
    SnapshotState,
    SnapshotType,
    Trigger,
    is_on_a_volume,
)

_LONGEST = 128
_FRUITLESS = (SnapshotState.FAILED, SnapshotState.ABANDONED)


@dataclass(frozen=True, slots=True)
class _Wish:
    """An annotation of the job."""

    type: SnapshotType
    value: str | None
    stem: str
    """Between the job's name and a digest of the value, in the name of the object."""
    field: str
    """Where the status keeps the value that was answered last."""


def serve(plan: Plan, look: Look) -> Plan:
    """Answer what a running job was asked for, and delete what retention lets go."""
    for wish in _wishes(look.seen):
        plan = _by_annotation(plan, look, wish)
    plan = _by_nonce(plan, look)
    plan = _by_schedule(plan, look)
    return plan.doing(*(DeleteSnapshot(seen.name) for seen in _outlived(look)))


def _wishes(seen: Observed) -> Iterator[_Wish]:
    yield _Wish(
        SnapshotType.SAVEPOINT, seen.savepoint_annotation, "annotation", "savepoint_annotation"
    )
    yield _Wish(
        SnapshotType.CHECKPOINT, seen.checkpoint_annotation, "checkpoint", "checkpoint_annotation"
    )


def _by_annotation(plan: Plan, look: Look, wish: _Wish) -> Plan:
    value, answered = wish.value, plan.status.answered
    if value is None or _cut(value) == getattr(answered, wish.field):
        return plan
    done = plan.writing(answered=answered.model_copy(update={wish.field: _cut(value)}))
    has_directory = look.goal.spec.checkpointing.savepoint_dir is not None
    if wish.type is SnapshotType.SAVEPOINT and not has_directory:
        return done.telling(
            look.seen.now,
            "SavepointRefused",
            "there is no directory for savepoints; set checkpointing.savepointDir",
            is_warning=True,
        )
    digest = hashlib.sha256(value.encode()).hexdigest()[:12]
    name = f"{look.seen.name}-{wish.stem}-{digest}"
    if look.seen.snapshot(name) is None:
        return plan.doing(_creation(name, Trigger.ANNOTATION, look, wish.type))
    return done


def _by_nonce(plan: Plan, look: Look) -> Plan:
    nonce, answered = look.goal.spec.savepoint_nonce, plan.status.answered
    if nonce is None or nonce == answered.savepoint_nonce:
        return plan
    name = f"{look.seen.name}-nonce-{nonce}"
    if look.seen.snapshot(name) is None:
        return plan.doing(_creation(name, Trigger.NONCE, look))
    return plan.writing(answered=answered.model_copy(update={"savepoint_nonce": nonce}))


def _by_schedule(plan: Plan, look: Look) -> Plan:
    """Times that were missed are not made up for."""
    due = _due(plan, look)
    if due is None:
        return plan
    if look.seen.now < due:
        return plan.looking(due)
    name = f"{look.seen.name}-periodic-{int(due.timestamp())}"
    if look.seen.snapshot(name) is None:
        return plan.doing(_creation(name, Trigger.PERIODIC, look))
    answered = plan.status.answered
    return plan.writing(
        answered=answered.model_copy(update={"periodic_savepoint_at": look.seen.now})
    )


def _due(plan: Plan, look: Look) -> datetime | None:
    policy, status = look.goal.spec.savepoints, plan.status
    assert status.deployed is not None, "a running job was deployed"
    last = status.answered.periodic_savepoint_at or status.deployed.deployed_at or look.seen.now
    if policy.interval is not None:
        return later(last, policy.interval)
    return None if policy.cron is None else Cron.parse(policy.cron).after(last)


def _creation(
    name: str, trigger: Trigger, look: Look, kind: SnapshotType = SnapshotType.SAVEPOINT
) -> CreateSnapshot:
    place = look.goal.spec.checkpointing.savepoint_dir
    spec = CheckpointedJobSnapshotSpec(
        job_name=look.seen.name,
        type=kind,
        trigger=trigger,
        dispose_on_delete=trigger is Trigger.PERIODIC and not is_on_a_volume(place),
    )
    return CreateSnapshot(name, spec)


def _outlived(look: Look) -> Iterator[SeenSnapshot]:
    """Periodic ones beyond the count or the age; never the newest complete one, nor one in use.

    Those that failed are counted by themselves, so that they drive out none that can be restored.
    """
    periodic = sorted(
        (seen for seen in look.seen.snapshots if seen.spec.trigger is Trigger.PERIODIC),
        key=lambda seen: (seen.created_at, seen.name),
        reverse=True,
    )
    complete = [seen for seen in periodic if seen.status.state is SnapshotState.COMPLETED]
    fruitless = [seen for seen in periodic if seen.status.state in _FRUITLESS]
    for alike in (complete, fruitless):
        for place, seen in enumerate(alike):
            is_kept = seen in complete[:1] or seen.status.in_use or seen.is_deleted
            if not is_kept and _is_outlived(place, seen, look):
                yield seen


def _is_outlived(place: int, seen: SeenSnapshot, look: Look) -> bool:
    policy = look.goal.spec.savepoints
    is_old = policy.max_age is not None and later(seen.created_at, policy.max_age) <= look.seen.now
    return is_old or place >= policy.max_count


def _cut(value: str) -> str:
    """As the status keeps it."""
    return hashlib.sha256(value.encode()).hexdigest() if len(value) > _LONGEST else value
