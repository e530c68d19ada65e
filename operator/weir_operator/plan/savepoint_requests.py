"""Creates one snapshot object for each request, and deletes expired ones (spec K5).

The name of the object is derived from the request, so a repeated request finds the same object. A
request counts as handled when its object was observed, not when it was created: a crash between the
two creates it again, under the same name. ``snapshot_plan`` takes the snapshot.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from weir_operator.plan.cluster_actions import CreateSnapshot, DeleteSnapshot
from weir_operator.plan.drivers import PlanInputs
from weir_operator.plan.job_plan import Plan, later
from weir_operator.plan.observed_state import Observed, ObservedSnapshot
from weir_operator.resource.cron import Cron
from weir_operator.resource.snapshot import (
    CheckpointedJobSnapshotSpec,
    SnapshotState,
    SnapshotType,
    Trigger,
    is_on_a_volume,
)

_LONGEST = 128
_FAILED = (SnapshotState.FAILED, SnapshotState.ABANDONED)


@dataclass(frozen=True, slots=True)
class _AnnotationRequest:
    """A request by an annotation of the job."""

    type: SnapshotType
    value: str | None
    stem: str
    """Between the job's name and a digest of the value, in the name of the object."""
    field: str
    """The field of the status with the value that was handled last."""


def request_snapshots(plan: Plan, inputs: PlanInputs) -> Plan:
    """Handle the requests of a running job, and delete snapshots by their retention."""
    for request in _annotation_requests(inputs.observed):
        plan = _by_annotation(plan, inputs, request)
    plan = _by_nonce(plan, inputs)
    plan = _by_schedule(plan, inputs)
    return plan.with_actions(*(DeleteSnapshot(snapshot.name) for snapshot in _expired(inputs)))


def _annotation_requests(snapshot: Observed) -> Iterator[_AnnotationRequest]:
    yield _AnnotationRequest(
        SnapshotType.SAVEPOINT, snapshot.savepoint_annotation, "annotation", "savepoint_annotation"
    )
    yield _AnnotationRequest(
        SnapshotType.CHECKPOINT,
        snapshot.checkpoint_annotation,
        "checkpoint",
        "checkpoint_annotation",
    )


def _by_annotation(plan: Plan, inputs: PlanInputs, request: _AnnotationRequest) -> Plan:
    value, answered = request.value, plan.status.answered
    if value is None or _shortened(value) == getattr(answered, request.field):
        return plan
    done = plan.with_status(answered=answered.model_copy(update={request.field: _shortened(value)}))
    has_directory = inputs.desired.spec.checkpointing.savepoint_dir is not None
    if request.type is SnapshotType.SAVEPOINT and not has_directory:
        return done.with_event(
            inputs.observed.now,
            "SavepointRejected",
            "there is no directory for savepoints; set checkpointing.savepointDir",
            is_warning=True,
        )
    digest = hashlib.sha256(value.encode()).hexdigest()[:12]
    name = f"{inputs.observed.name}-{request.stem}-{digest}"
    if inputs.observed.snapshot(name) is None:
        return plan.with_actions(_creation(name, Trigger.ANNOTATION, inputs, request.type))
    return done


def _by_nonce(plan: Plan, inputs: PlanInputs) -> Plan:
    nonce, answered = inputs.desired.spec.savepoint_nonce, plan.status.answered
    if nonce is None or nonce == answered.savepoint_nonce:
        return plan
    name = f"{inputs.observed.name}-nonce-{nonce}"
    if inputs.observed.snapshot(name) is None:
        return plan.with_actions(_creation(name, Trigger.NONCE, inputs))
    return plan.with_status(answered=answered.model_copy(update={"savepoint_nonce": nonce}))


def _by_schedule(plan: Plan, inputs: PlanInputs) -> Plan:
    """Missed times are not made up for."""
    due = _due(plan, inputs)
    if due is None:
        return plan
    if inputs.observed.now < due:
        return plan.requeue_by(due)
    name = f"{inputs.observed.name}-periodic-{int(due.timestamp())}"
    if inputs.observed.snapshot(name) is None:
        return plan.with_actions(_creation(name, Trigger.PERIODIC, inputs))
    answered = plan.status.answered
    return plan.with_status(
        answered=answered.model_copy(update={"periodic_savepoint_at": inputs.observed.now})
    )


def _due(plan: Plan, inputs: PlanInputs) -> datetime | None:
    policy, status = inputs.desired.spec.savepoints, plan.status
    assert status.deployed is not None, "a running job was deployed"
    last = (
        status.answered.periodic_savepoint_at or status.deployed.deployed_at or inputs.observed.now
    )
    if policy.interval is not None:
        return later(last, policy.interval)
    return None if policy.cron is None else Cron.parse(policy.cron).after(last)


def _creation(
    name: str, trigger: Trigger, inputs: PlanInputs, kind: SnapshotType = SnapshotType.SAVEPOINT
) -> CreateSnapshot:
    directory = inputs.desired.spec.checkpointing.savepoint_dir
    spec = CheckpointedJobSnapshotSpec(
        job_name=inputs.observed.name,
        type=kind,
        trigger=trigger,
        dispose_on_delete=trigger is Trigger.PERIODIC and not is_on_a_volume(directory),
    )
    return CreateSnapshot(name, spec)


def _expired(inputs: PlanInputs) -> Iterator[ObservedSnapshot]:
    """Periodic snapshots beyond the count or the age.

    Never the newest complete one, nor one in use. Failed ones are counted separately, so that they
    do not displace restorable ones.
    """
    periodic = sorted(
        (
            snapshot
            for snapshot in inputs.observed.snapshots
            if snapshot.spec.trigger is Trigger.PERIODIC
        ),
        key=lambda snapshot: (snapshot.created_at, snapshot.name),
        reverse=True,
    )
    complete = [
        snapshot for snapshot in periodic if snapshot.status.state is SnapshotState.COMPLETED
    ]
    failed = [snapshot for snapshot in periodic if snapshot.status.state in _FAILED]
    for group in (complete, failed):
        for index, snapshot in enumerate(group):
            is_kept = snapshot in complete[:1] or snapshot.status.in_use or snapshot.is_deleted
            if not is_kept and _is_expired(index, snapshot, inputs):
                yield snapshot


def _is_expired(index: int, snapshot: ObservedSnapshot, inputs: PlanInputs) -> bool:
    policy = inputs.desired.spec.savepoints
    is_old = (
        policy.max_age is not None
        and later(snapshot.created_at, policy.max_age) <= inputs.observed.now
    )
    return is_old or index >= policy.max_count


def _shortened(value: str) -> str:
    """As the status stores it."""
    return hashlib.sha256(value.encode()).hexdigest() if len(value) > _LONGEST else value
