"""Starts checkpoints: the clock, the queue, the operators' snapshots, the trigger.

One rule governs the order (spec C4): an operator's snapshot, the trigger, and whatever the operator
sends to its subtasks afterwards travel in that order on one link. A message that comes between the
snapshot and the trigger is therefore held, or the split it carries would be in no checkpoint or in
two.
"""

from dataclasses import replace

from weir.core.barriers import AlignmentType, Barrier
from weir.core.coordinator.aborting import abort, abort_all, drop_requests, targets
from weir.core.coordinator.actions import (
    Action,
    PrepareLocation,
    ReportTriggered,
    SendToSubtask,
    SnapshotOperators,
    Trigger,
)
from weir.core.coordinator.events import (
    CheckpointRequested,
    LocationNotPrepared,
    LocationPrepared,
    OperatorNotSnapshotted,
    OperatorSnapshotted,
    OperatorSpoke,
    StatusReported,
)
from weir.core.coordinator.logbook import reservation, write_entry
from weir.core.coordinator.state import (
    Abortable,
    Collecting,
    Coordinator,
    Idle,
    Living,
    Preparing,
    Step,
    Ticket,
    Ticking,
)
from weir.core.ids import NO_CHECKPOINT, NOBODY_ASKED, CheckpointId, Millis, RequestId
from weir.core.journal import IdsReserved
from weir.core.lifecycle import JobStatus
from weir.core.plan import Plan, Unplannable, draw_up
from weir.core.policy import Mode
from weir.core.reasons import Reason
from weir.core.requests import Origin, PutOff, Request, Start, Traffic, choose, enqueue
from weir.core.snapshots import CheckpointKind, CoordinatorSnapshot


def follow_status(state: Coordinator, event: StatusReported) -> Step:
    """The periodic scheduler runs while the job is RUNNING, and in no other status."""
    state = replace(state, status=event.status)
    if event.status is JobStatus.RUNNING:
        return _start_clock(state, event.draw), ()
    return _stop_clock(state)


def _start_clock(state: Coordinator, draw: float) -> Coordinator:
    policy = state.policy
    if not policy.is_periodic or isinstance(state.clock, Ticking):
        return state
    spread = policy.period_ms - policy.min_pause_ms
    first = state.now + policy.min_pause_ms + int(draw * spread)
    return replace(state, clock=Ticking(Millis(first)))


def _stop_clock(state: Coordinator) -> Step:
    state = replace(state, clock=Idle())
    state, aborted = abort_all(state, Reason.CHECKPOINT_COORDINATOR_SUSPEND)
    state, dropped = drop_requests(state, state.queue, Reason.CHECKPOINT_COORDINATOR_SUSPEND)
    return replace(state, failed_triggers=0), aborted + dropped


def tick(state: Coordinator) -> Step:
    """Ask for a periodic checkpoint when it is due; a queued one absorbs the next."""
    clock = state.clock
    if not isinstance(clock, Ticking) or clock.due > state.now:
        return state, ()
    period = state.policy.period_ms
    missed = (state.now - clock.due) // period
    state = replace(state, clock=Ticking(Millis(clock.due + (missed + 1) * period)))
    if any(request.is_periodic for request in state.queue):
        return state, ()
    return ask(state, Origin.CLOCK, CheckpointKind.CHECKPOINT)


def expire(state: Coordinator) -> Step:
    actions: tuple[Action, ...] = ()
    for pending in state.pending:
        if isinstance(pending, Abortable) and pending.ticket.deadline <= state.now:
            state, more = abort(state, pending, Reason.CHECKPOINT_EXPIRED)
            actions += more
    return state, actions


def on_requested(state: Coordinator, event: CheckpointRequested) -> Step:
    return ask(state, Origin.USER, event.kind, event.request, event.location)


def ask(
    state: Coordinator,
    origin: Origin,
    kind: CheckpointKind,
    name: RequestId = NOBODY_ASKED,
    location: str = "",
) -> Step:
    number = state.asked + 1
    forced = kind.is_savepoint and not state.policy.unaligned
    request = Request(number, origin, kind, name, forced, location)
    state = replace(state, asked=number)
    if not isinstance(state.life, Living):
        return drop_requests(state, (request,), Reason.CHECKPOINT_COORDINATOR_SHUTDOWN)
    if state.status is not JobStatus.RUNNING:
        return drop_requests(state, (request,), Reason.NOT_ALL_REQUIRED_TASKS_RUNNING)
    after = enqueue(state.queue, request, state.policy.max_queued)
    state = replace(state, queue=after.queue)
    return drop_requests(state, after.dropped, Reason.TOO_MANY_CHECKPOINT_REQUESTS)


def ask_for_the_final_one(state: Coordinator) -> Step:
    """Everyone has reached the end of the data: one more checkpoint covers their last rows."""
    leaving = frozenset(state.farewell.leaving) if state.farewell else frozenset()
    wanted = (
        state.status is JobStatus.RUNNING
        and isinstance(state.life, Living)
        and state.running
        and len(state.running) + len(state.finished) == len(state.topology.subtasks)
        and len(state.at_end) == len(state.running)
        and not leaving.issuperset(state.running)
        and state.now >= state.final_due
        and not any(r.origin is Origin.END_OF_DATA for r in state.queue)
        and not any(p.ticket.request.origin is Origin.END_OF_DATA for p in state.pending)
        and not any(p.ticket.request.kind.is_synchronous for p in state.pending)
    )
    if not wanted:
        return state, ()
    return ask(state, Origin.END_OF_DATA, CheckpointKind.CHECKPOINT)


def start_next(state: Coordinator) -> Step:
    """Begin one queued request if anything may begin; nothing changed means nothing may."""
    if state.status is not JobStatus.RUNNING or not isinstance(state.life, Living):
        return state, ()
    if any(isinstance(p, Preparing) or p.ticket.request.kind.is_synchronous for p in state.pending):
        return state, ()
    if state.farewell and state.farewell.kind.is_synchronous:
        return state, ()
    match choose(state.queue, _traffic(state)):
        case Start(request):
            return _begin(state, request)
        case PutOff(request, until):
            state = replace(state, clock=Ticking(until))
            return drop_requests(state, (request,), Reason.MINIMUM_TIME_BETWEEN_CHECKPOINTS)
        case _:
            return state, ()


def _traffic(state: Coordinator) -> Traffic:
    return Traffic(
        now=state.now,
        in_flight=len(state.pending),
        cleaning=len(state.cleaning),
        max_concurrent=state.policy.max_concurrent,
        pause_over_at=state.pause_over_at,
    )


def _begin(state: Coordinator, request: Request) -> Step:
    is_final = request.origin is Origin.END_OF_DATA
    plan = draw_up(
        state.topology,
        state.running,
        state.finished,
        after_tasks_finish=state.policy.after_tasks_finish or is_final,
    )
    if isinstance(plan, Unplannable):
        return drop_requests(state, (request,), plan.reason)
    if state.next_id >= state.ids_until:
        return _reserve_ids(state)
    ticket = _ticket(state, request, plan)
    operators = tuple(o.id for o in state.topology.operators if o.is_coordinated)
    is_savepoint = request.kind.is_savepoint
    preparing = Preparing(ticket, frozenset(operators), location_ready=not is_savepoint)
    state = replace(
        state,
        next_id=CheckpointId(state.next_id + 1),
        queue=tuple(r for r in state.queue if r is not request),
        pending=(*state.pending, preparing),
        shared=state.shared.take(ticket.base_files),
    )
    actions: list[Action] = []
    if is_savepoint:
        actions.append(PrepareLocation(ticket.checkpoint, ticket.location))
    if operators:
        actions.append(SnapshotOperators(ticket.checkpoint, operators))
    state, more = _inject_when_ready(state, preparing)
    return state, (*actions, *more)


def _reserve_ids(state: Coordinator) -> Step:
    """The epoch's ids are used up without a completion: reserve more before using one."""
    if any(isinstance(entry, IdsReserved) for entry in state.journal.writing):
        return state, ()
    return write_entry(state, IdsReserved(state.epoch, state.driver, reservation(state)))


def _ticket(state: Coordinator, request: Request, plan: Plan) -> Ticket:
    checkpoint = state.next_id
    place = request.location or f"{state.directory}/savepoint-{checkpoint}"
    location = place if request.kind.is_savepoint else f"{state.directory}/chk-{checkpoint}"
    base = NO_CHECKPOINT
    base_files: tuple[str, ...] = ()
    newest = state.lineage
    if state.policy.incremental and request.kind is CheckpointKind.CHECKPOINT and newest:
        base = newest.checkpoint
        base_files = tuple(file.path for file in newest.manifest.files() if file.shared)
    return Ticket(
        checkpoint=checkpoint,
        request=request,
        plan=plan,
        started_at=state.now,
        stamp=state.stamp,
        deadline=Millis(state.now + state.policy.timeout_ms),
        location=location,
        base=base,
        base_files=base_files,
    )


def on_operator_snapshotted(state: Coordinator, event: OperatorSnapshotted) -> Step:
    pending = state.find(event.checkpoint)
    if not isinstance(pending, Preparing) or event.operator not in pending.operators:
        return state, ()
    further = replace(
        pending,
        operators=pending.operators - {event.operator},
        states=(*pending.states, CoordinatorSnapshot(event.operator, event.state)),
    )
    return _inject_when_ready(state.with_pending(further), further)


def on_operator_not_snapshotted(state: Coordinator, event: OperatorNotSnapshotted) -> Step:
    pending = state.find(event.checkpoint)
    if not isinstance(pending, Preparing):
        return state, ()
    return abort(state, pending, Reason.TRIGGER_CHECKPOINT_FAILURE, event.cause)


def on_location(state: Coordinator, event: LocationPrepared | LocationNotPrepared) -> Step:
    pending = state.find(event.checkpoint)
    if not isinstance(pending, Preparing):
        return state, ()
    if isinstance(event, LocationNotPrepared):
        return abort(state, pending, Reason.IO_EXCEPTION, event.cause)
    further = replace(pending, location_ready=True)
    return _inject_when_ready(state.with_pending(further), further)


def _inject_when_ready(state: Coordinator, pending: Preparing) -> Step:
    if pending.operators or not pending.location_ready:
        return state, ()
    ticket = pending.ticket
    gone = [str(subtask) for subtask in ticket.plan.wait_for if subtask not in state.running]
    if gone:
        cause = f"{gone[0]} finished while the checkpoint was prepared"
        return abort(state, pending, Reason.CHECKPOINT_DECLINED_TASK_CLOSING, cause)
    collecting = Collecting(ticket, pending.states, frozenset(ticket.plan.wait_for))
    held, state = state.held, replace(state.with_pending(collecting), held=(), failed_triggers=0)
    started: tuple[Action, ...] = (
        ReportTriggered(ticket.checkpoint, ticket.request.kind, state.stamp),
        Trigger(_barrier(state, ticket), targets(state, ticket.plan.trigger)),
        *held,
    )
    if not ticket.request.kind.is_synchronous:
        return state, started
    periodic = tuple(request for request in state.queue if request.is_periodic)
    state, dropped = drop_requests(
        replace(state, clock=Idle()), periodic, Reason.PERIODIC_SCHEDULER_SHUTDOWN
    )
    return state, (*started, *dropped)


def _barrier(state: Coordinator, ticket: Ticket) -> Barrier:
    policy, kind = state.policy, ticket.request.kind
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
        ticket.checkpoint, kind, alignment, state.stamp, ticket.location, timeout, ticket.base
    )


def on_operator_spoke(state: Coordinator, event: OperatorSpoke) -> Step:
    """Pass the message on, unless its operator's snapshot is waiting for the trigger."""
    if event.subtask not in state.running:
        return state, ()
    message = SendToSubtask(
        event.operator, (event.subtask, state.running[event.subtask]), event.message
    )
    for pending in state.pending:
        if isinstance(pending, Preparing) and event.operator not in pending.operators:
            return replace(state, held=(*state.held, message)), ()
    return state, (message,)
