"""Starts checkpoints: the clock, the queue, the operators' snapshots, the trigger.

One rule governs the order (spec C4): an operator's snapshot, the trigger, and the operator's later
messages to its subtasks are sent in that order on one link. A message between the snapshot and the
trigger is therefore held, or the split it carries would be in no checkpoint or in two.
"""

from dataclasses import replace

from weir.core.barriers import AlignmentType, Barrier
from weir.core.checkpoint_paths import checkpoint_location, savepoint_location
from weir.core.checkpoint_plan import CheckpointPlan, Unplannable, plan_checkpoint
from weir.core.coordinator.abort import abort, abort_all
from weir.core.coordinator.actions import (
    Action,
    PrepareLocation,
    ReportTriggered,
    SendToSubtask,
    SnapshotOperators,
    Trigger,
)
from weir.core.coordinator.coordinator_state import (
    Active,
    Coordinator,
    Scheduled,
    Step,
    Unscheduled,
)
from weir.core.coordinator.events import (
    LocationNotPrepared,
    LocationPrepared,
    OperatorEventSent,
    OperatorNotSnapshotted,
    OperatorSnapshotted,
    StatusReported,
)
from weir.core.coordinator.job_log import reservation, write_entry
from weir.core.coordinator.pending_checkpoint import (
    Abortable,
    CheckpointProperties,
    Collecting,
    Preparing,
)
from weir.core.coordinator.request_queue import drop_requests, request_checkpoint
from weir.core.ids import NO_CHECKPOINT, CheckpointId, Millis
from weir.core.lifecycle import JobStatus
from weir.core.log_entries import IdsReserved
from weir.core.policy import Mode
from weir.core.reasons import Reason
from weir.core.request_decider import Origin, PutOff, Request, Start, Traffic, Wait, choose
from weir.core.snapshots import CheckpointKind, CoordinatorSnapshot


def follow_status(state: Coordinator, event: StatusReported) -> Step:
    """The periodic scheduler runs while the job is RUNNING, and in no other status."""
    state = replace(state, status=event.status)
    if event.status is JobStatus.RUNNING:
        return _start_scheduler(state, event.draw), ()
    return _stop_scheduler(state)


def _start_scheduler(state: Coordinator, draw: float) -> Coordinator:
    policy = state.job.policy
    if not policy.is_periodic or isinstance(state.requests.periodic, Scheduled):
        return state
    spread = policy.period_ms - policy.min_pause_ms
    first = state.clock.after(policy.min_pause_ms + int(draw * spread))
    return replace(state, requests=replace(state.requests, periodic=Scheduled(first)))


def _stop_scheduler(state: Coordinator) -> Step:
    state = _without_schedule(state)
    reason = Reason.CHECKPOINT_COORDINATOR_SUSPEND
    state, aborted = abort_all(state, reason)
    state, dropped = drop_requests(state, state.requests.queue, reason)
    return _without_failed_triggers(state), aborted + dropped


def _without_schedule(state: Coordinator) -> Coordinator:
    return replace(state, requests=replace(state.requests, periodic=Unscheduled()))


def _without_failed_triggers(state: Coordinator) -> Coordinator:
    return replace(state, requests=replace(state.requests, failed_triggers=0))


def request_periodic(state: Coordinator) -> Step:
    """Request a periodic checkpoint when it is due; a queued one absorbs the next."""
    scheduled, now = state.requests.periodic, state.clock.now
    if not isinstance(scheduled, Scheduled) or scheduled.due > now:
        return state, ()
    period = state.job.policy.period_ms
    missed = (now - scheduled.due) // period
    following = Scheduled(Millis(scheduled.due + (missed + 1) * period))
    state = replace(state, requests=replace(state.requests, periodic=following))
    if any(request.is_periodic for request in state.requests.queue):
        return state, ()
    return request_checkpoint(state, Origin.CLOCK, CheckpointKind.CHECKPOINT)


def expire(state: Coordinator) -> Step:
    actions: tuple[Action, ...] = ()
    for pending in state.checkpoints.pending:
        if isinstance(pending, Abortable) and pending.properties.deadline <= state.clock.now:
            state, more = abort(state, pending, Reason.CHECKPOINT_EXPIRED)
            actions += more
    return state, actions


def start_next(state: Coordinator) -> Step:
    """Begin one queued request if anything may begin; nothing changed means nothing may."""
    if not _may_start(state):
        return state, ()
    match choose(state.requests.queue, _traffic(state)):
        case Start(request):
            return _begin(state, request)
        case PutOff(request, until):
            state = replace(state, requests=replace(state.requests, periodic=Scheduled(until)))
            return drop_requests(state, (request,), Reason.MINIMUM_TIME_BETWEEN_CHECKPOINTS)
        case Wait():
            return state, ()


def _may_start(state: Coordinator) -> bool:
    if state.status is not JobStatus.RUNNING or not isinstance(state.stage, Active):
        return False
    for pending in state.checkpoints.pending:
        if isinstance(pending, Preparing) or pending.properties.request.kind.is_synchronous:
            return False
    notice = state.subtasks.final_notice
    return notice is None or not notice.kind.is_synchronous


def _traffic(state: Coordinator) -> Traffic:
    return Traffic(
        now=state.clock.now,
        in_flight=len(state.checkpoints.pending),
        cleaning=len(state.cleanup.deletions),
        max_concurrent=state.job.policy.max_concurrent,
        pause_over_at=state.requests.pause_over_at,
    )


def _begin(state: Coordinator, request: Request) -> Step:
    job, subtasks = state.job, state.subtasks
    is_final = request.origin is Origin.END_OF_DATA
    plan = plan_checkpoint(
        job.topology,
        subtasks.running,
        subtasks.finished,
        after_tasks_finish=job.policy.after_tasks_finish or is_final,
    )
    if isinstance(plan, Unplannable):
        return drop_requests(state, (request,), plan.reason)
    if state.log.next_id >= state.log.ids_until:
        return _reserve_ids(state)
    properties = _properties(state, request, plan)
    operators = tuple(o.id for o in job.topology.operators if o.is_coordinated)
    is_savepoint = request.kind.is_savepoint
    preparing = Preparing(properties, frozenset(operators), location_ready=not is_savepoint)
    checkpoints = replace(
        state.checkpoints,
        pending=(*state.checkpoints.pending, preparing),
        shared=state.checkpoints.shared.take(properties.base_files),
    )
    state = replace(
        state,
        log=replace(state.log, next_id=CheckpointId(state.log.next_id + 1)),
        requests=state.requests.without((request,)),
        checkpoints=checkpoints,
    )
    actions: list[Action] = []
    if is_savepoint:
        actions.append(PrepareLocation(properties.checkpoint, properties.location))
    if operators:
        actions.append(SnapshotOperators(properties.checkpoint, operators))
    state, more = _trigger_when_ready(state, preparing)
    return state, (*actions, *more)


def _reserve_ids(state: Coordinator) -> Step:
    """The epoch's ids are used up without a completion: reserve more before using one."""
    if any(isinstance(entry, IdsReserved) for entry in state.log.writing):
        return state, ()
    return write_entry(state, IdsReserved(state.job.epoch, state.job.driver, reservation(state)))


def _properties(state: Coordinator, request: Request, plan: CheckpointPlan) -> CheckpointProperties:
    checkpoint, directory, policy = state.log.next_id, state.job.directory, state.job.policy
    location = checkpoint_location(directory, checkpoint)
    if request.kind.is_savepoint:
        location = request.location or savepoint_location(directory, checkpoint)
    base = NO_CHECKPOINT
    base_files: tuple[str, ...] = ()
    newest = state.lineage
    if policy.incremental and request.kind is CheckpointKind.CHECKPOINT and newest:
        base = newest.checkpoint
        base_files = tuple(file.path for file in newest.manifest.files() if file.shared)
    return CheckpointProperties(
        checkpoint=checkpoint,
        request=request,
        plan=plan,
        started_at=state.clock.now,
        stamp=state.clock.stamp,
        deadline=state.clock.after(policy.timeout_ms),
        location=location,
        base=base,
        base_files=base_files,
    )


def on_operator_snapshotted(state: Coordinator, event: OperatorSnapshotted) -> Step:
    pending = state.checkpoints.find(event.checkpoint)
    if not isinstance(pending, Preparing) or event.operator not in pending.operators:
        return state, ()
    further = replace(
        pending,
        operators=pending.operators - {event.operator},
        states=(*pending.states, CoordinatorSnapshot(event.operator, event.state)),
    )
    return _trigger_when_ready(state.with_pending(further), further)


def on_operator_not_snapshotted(state: Coordinator, event: OperatorNotSnapshotted) -> Step:
    pending = state.checkpoints.find(event.checkpoint)
    if not isinstance(pending, Preparing):
        return state, ()
    return abort(state, pending, Reason.TRIGGER_CHECKPOINT_FAILURE, event.cause)


def on_location(state: Coordinator, event: LocationPrepared | LocationNotPrepared) -> Step:
    pending = state.checkpoints.find(event.checkpoint)
    if not isinstance(pending, Preparing):
        return state, ()
    if isinstance(event, LocationNotPrepared):
        return abort(state, pending, Reason.IO_EXCEPTION, event.cause)
    further = replace(pending, location_ready=True)
    return _trigger_when_ready(state.with_pending(further), further)


def _trigger_when_ready(state: Coordinator, pending: Preparing) -> Step:
    if pending.operators or not pending.location_ready:
        return state, ()
    properties, subtasks = pending.properties, state.subtasks
    awaited = properties.plan.wait_for
    gone = [str(subtask) for subtask in awaited if subtask not in subtasks.running]
    if gone:
        cause = f"{gone[0]} finished while the checkpoint was prepared"
        return abort(state, pending, Reason.CHECKPOINT_DECLINED_TASK_CLOSING, cause)
    collecting = Collecting(properties, pending.states, frozenset(awaited))
    state = _without_failed_triggers(state.with_pending(collecting))
    kind, triggered = properties.request.kind, subtasks.targets(properties.plan.trigger)
    started: tuple[Action, ...] = (
        ReportTriggered(properties.checkpoint, kind, state.clock.stamp),
        Trigger(_barrier(state, properties), triggered),
        *pending.held,
    )
    if not kind.is_synchronous:
        return state, started
    periodic = tuple(request for request in state.requests.queue if request.is_periodic)
    state, dropped = drop_requests(
        _without_schedule(state), periodic, Reason.PERIODIC_SCHEDULER_SHUTDOWN
    )
    return state, (*started, *dropped)


def _barrier(state: Coordinator, properties: CheckpointProperties) -> Barrier:
    policy, kind = state.job.policy, properties.request.kind
    alignment, timeout = AlignmentType.ALIGNED, 0
    if policy.mode is Mode.AT_LEAST_ONCE:
        alignment = AlignmentType.AT_LEAST_ONCE
    elif policy.unaligned and kind.is_savepoint:
        alignment = AlignmentType.FORCED_ALIGNED
    elif policy.unaligned and policy.aligned_timeout_ms:
        timeout = policy.aligned_timeout_ms
    elif policy.unaligned:
        alignment = AlignmentType.UNALIGNED
    return Barrier(
        properties.checkpoint,
        kind,
        alignment,
        state.clock.stamp,
        properties.location,
        timeout,
        properties.base,
    )


def on_operator_event(state: Coordinator, event: OperatorEventSent) -> Step:
    """Pass the message on, unless its operator's snapshot is waiting for the trigger."""
    attempt = state.subtasks.running.get(event.subtask)
    if attempt is None:
        return state, ()
    message = SendToSubtask(event.operator, (event.subtask, attempt), event.message)
    for pending in state.checkpoints.pending:
        if isinstance(pending, Preparing) and event.operator not in pending.operators:
            return state.with_pending(replace(pending, held=(*pending.held, message))), ()
    return state, (message,)
