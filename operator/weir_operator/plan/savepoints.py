"""Makes a snapshot object for every savepoint that was asked for, once, and ends old ones (K5).

An object's name says what asked for it, so asking twice meets the same object. A wish counts as
answered when its object was seen, not when it was made: a crash between the two makes it again,
under the same name. Taking the savepoint is the object's own story (``snapshots``).
"""

import hashlib
from collections.abc import Iterator
from datetime import datetime

from weir_operator.plan.actions import CreateSnapshot, DeleteSnapshot
from weir_operator.plan.drafting import Plan, later
from weir_operator.plan.drivers import Look
from weir_operator.plan.observing import SeenSnapshot
from weir_operator.resource.cron import Cron
from weir_operator.resource.snapshot import (
    CheckpointedJobSnapshotSpec,
    SnapshotState,
    Trigger,
)

_LONGEST = 128
_OVER = (SnapshotState.COMPLETED, SnapshotState.FAILED, SnapshotState.ABANDONED)


def serve(plan: Plan, look: Look) -> Plan:
    """Answer what a running job was asked for, and delete what retention lets go."""
    plan = _by_annotation(plan, look)
    plan = _by_nonce(plan, look)
    plan = _by_schedule(plan, look)
    return plan.doing(*(DeleteSnapshot(seen.name) for seen in _outlived(look)))


def _by_annotation(plan: Plan, look: Look) -> Plan:
    value, answered = look.seen.savepoint_annotation, plan.status.answered
    if value is None or _cut(value) == answered.savepoint_annotation:
        return plan
    if look.goal.spec.checkpointing.savepoint_dir is None:
        plan = plan.writing(
            answered=answered.model_copy(update={"savepoint_annotation": _cut(value)})
        )
        return plan.telling(
            look.seen.now,
            "SavepointRefused",
            "there is no directory for savepoints; set checkpointing.savepointDir",
            is_warning=True,
        )
    digest = hashlib.sha256(value.encode()).hexdigest()[:12]
    name = f"{look.seen.name}-annotation-{digest}"
    if look.seen.snapshot(name) is None:
        return plan.doing(_creation(name, Trigger.ANNOTATION, look))
    return plan.writing(answered=answered.model_copy(update={"savepoint_annotation": _cut(value)}))


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


def _creation(name: str, trigger: Trigger, look: Look) -> CreateSnapshot:
    spec = CheckpointedJobSnapshotSpec(
        job_name=look.seen.name,
        trigger=trigger,
        dispose_on_delete=trigger is Trigger.PERIODIC,
    )
    return CreateSnapshot(name, spec)


def _outlived(look: Look) -> Iterator[SeenSnapshot]:
    """Periodic ones beyond the count or the age; never the newest complete one, nor one in use."""
    policy = look.goal.spec.savepoints
    periodic = sorted(
        (
            seen
            for seen in look.seen.snapshots
            if seen.spec.trigger is Trigger.PERIODIC and seen.status.state in _OVER
        ),
        key=lambda seen: (seen.created_at, seen.name),
        reverse=True,
    )
    complete = [seen for seen in periodic if seen.status.state is SnapshotState.COMPLETED]
    for place, seen in enumerate(periodic):
        is_old = policy.max_age is not None and (
            later(seen.created_at, policy.max_age) <= look.seen.now
        )
        is_kept = seen in complete[:1] or seen.status.in_use or seen.is_deleted
        if not is_kept and (is_old or place >= policy.max_count):
            yield seen


def _cut(value: str) -> str:
    """As the status keeps it."""
    return hashlib.sha256(value.encode()).hexdigest() if len(value) > _LONGEST else value
