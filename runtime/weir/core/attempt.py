"""Decides where and when the subtasks of a job run: deploy, fail, wait, restart, end.

Slots outlive attempts. A failure takes down the regions it reaches and nothing else, survivors are
reset in place, and the next attempt starts once the restart strategy, the slots and a restore point
allow it. Every event of a subtask carries its attempt, so an event of an older attempt changes
nothing, and a repeated event changes nothing more.

This module does not know what a restore point is, how a checkpoint proceeds or how a slot is
reached; it never waits, draws or reads a clock. A slot id names one process: a new one has another.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from weir.core.execution_graph import Execution, ExecutionGraph, ExecutionState, empty_graph
from weir.core.ids import AttemptId, CheckpointId, Millis, SlotId, SubtaskId
from weir.core.lifecycle import JobStatus, ProgressMade, SubtaskFinished, SubtaskRunning, TimePassed
from weir.core.phases import (
    BackingOff,
    Created,
    Deploying,
    Ended,
    Phase,
    Restoring,
    Running,
    Stopping,
    WaitingForSlots,
    status_of,
)
from weir.core.placement import SlotAddress, TooFewSlots
from weir.core.restarts import NO_FAILURES, GiveUp, History, Kind, Restart, Strategy, restart
from weir.core.topology import Topology


class FailureCause(StrEnum):
    """What went wrong in a subtask, as far as it changes what has to restart."""

    USER_CODE = "user code failed"
    OPERATOR = "its operator failed"  # of ours, as at an input file that is broken
    """After these two its process may hold anything, and is not used again."""
    CONNECTION = "a connection broke"
    CHECKPOINT = "its part of a checkpoint failed"


@dataclass(frozen=True, slots=True)
class JobStarted:
    """The job may begin."""


@dataclass(frozen=True, slots=True)
class SlotRegistered:
    """A process is ready for work."""

    slot: SlotId
    executor: str
    disk: str = ""
    """Where it keeps local copies of state; empty: nowhere."""
    copies: tuple[tuple[int, CheckpointId], ...] = ()
    """The indexes with copies there, and the newest checkpoint that each can restore."""


@dataclass(frozen=True, slots=True)
class SlotLost:
    """A process is gone, with all that ran in it."""

    slot: SlotId
    draw: float


@dataclass(frozen=True, slots=True)
class SubtaskFailed:
    """A subtask cannot go on, in a process that lives."""

    attempt: AttemptId
    subtask: SubtaskId
    cause: FailureCause
    draw: float
    error: str = ""
    """The type of what was raised; empty if time may heal it."""


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """A coordinator in the driver fails the running attempt: everything restarts."""

    why: str
    draw: float
    kind: Kind | None = None


@dataclass(frozen=True, slots=True)
class RestorePointReady:
    """It is known what the attempt starts from."""

    attempt: AttemptId


@dataclass(frozen=True, slots=True)
class StopConfirmed:
    """The savepoint that the job ends with is complete; a later failure loses nothing."""


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """A user cancels the job."""


SlotEvent = SlotRegistered | SlotLost
SubtaskEvent = SubtaskRunning | SubtaskFinished | SubtaskFailed
JobEvent = JobStarted | AttemptFailed | ProgressMade | StopConfirmed | CancelRequested
AttemptEvent = TimePassed | SlotEvent | SubtaskEvent | RestorePointReady | JobEvent


@dataclass(frozen=True, slots=True)
class ReportStatus:
    """The job's status has changed."""

    status: JobStatus
    missing_slots: int


@dataclass(frozen=True, slots=True)
class FindRestorePoint:
    """Find what these subtasks start from, and answer with RestorePointReady."""

    attempt: AttemptId
    subtasks: tuple[SubtaskId, ...]


@dataclass(frozen=True, slots=True)
class Deploy:
    """Start these subtasks in these slots."""

    attempt: AttemptId
    placements: tuple[tuple[SubtaskId, SlotId], ...]


@dataclass(frozen=True, slots=True)
class ResetSubtasks:
    """End these subtasks in place; the slot lives on."""

    slot: SlotId
    subtasks: tuple[SubtaskId, ...]


@dataclass(frozen=True, slots=True)
class RecycleSlot:
    """End the process."""

    slot: SlotId


@dataclass(frozen=True, slots=True)
class ReportRestart:
    """These subtasks go down now, to come back together in a later attempt."""

    attempt: AttemptId
    """The newest attempt that ends with this."""
    subtasks: tuple[SubtaskId, ...]
    whole_job: bool
    why: str


AttemptAction = (
    ReportStatus | FindRestorePoint | Deploy | ResetSubtasks | RecycleSlot | ReportRestart
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """Where the job's subtasks run, and what is being done about those that do not."""

    graph: ExecutionGraph
    strategy: Strategy
    history: History
    phase: Phase
    next_attempt: AttemptId
    now: Millis
    reported: ReportStatus


@dataclass(frozen=True, slots=True)
class Failure:
    """What a failure takes down: whole regions, and processes that must not be used again."""

    hit: tuple[SubtaskId, ...]
    why: str
    draw: float
    recycled: tuple[RecycleSlot, ...] = ()
    kind: Kind | None = None


Step = tuple[Attempt, tuple[AttemptAction, ...]]


def initial(topology: Topology, strategy: Strategy) -> Attempt:
    return Attempt(
        graph=empty_graph(topology),
        strategy=strategy,
        history=NO_FAILURES,
        phase=Created(),
        next_attempt=AttemptId(1),
        now=Millis(0),
        reported=ReportStatus(JobStatus.CREATED, 0),
    )


def next_deadline(state: Attempt) -> Millis | None:
    """When TimePassed will matter next, if nothing else happens."""
    return state.phase.until if isinstance(state.phase, BackingOff) else None


def step(state: Attempt, event: AttemptEvent) -> Step:
    """The only way an attempt changes. Every event is legal in every state; most change nothing."""
    decided, actions = _decide(state, event)
    status = ReportStatus(*status_of(decided.phase, decided.graph))
    if status == state.reported:
        return decided, actions
    return replace(decided, reported=status), (*actions, status)


def _decide(state: Attempt, event: AttemptEvent) -> Step:
    match event:
        case SlotRegistered(slot=slot, executor=executor, disk=disk, copies=copies):
            graph = state.graph.register(slot, SlotAddress(executor, disk), copies)
            return _look_again(replace(state, graph=graph))
        case SlotLost():
            return _on_slot_lost(state, event)
        case _ if isinstance(state.phase, Ended):
            return _at_end(state, state.phase, event)
        case SubtaskRunning() | SubtaskFinished() | SubtaskFailed():
            return _on_subtask(state, event)
        case TimePassed():
            return _on_time_passed(state, event)
        case RestorePointReady():
            return _on_restore_point_ready(state, event)
        case JobStarted() | AttemptFailed() | ProgressMade() | StopConfirmed() | CancelRequested():
            return _on_job(state, event)
        case _:
            assert_never(event)


def _on_subtask(state: Attempt, event: SubtaskEvent) -> Step:
    """Only events of the subtask's current attempt count, and none after its last."""
    execution = state.graph.executions[event.subtask]
    if event.attempt != execution.attempt or execution.stage is ExecutionState.FINISHED:
        return state, ()
    match event:
        case SubtaskRunning():
            return _on_subtask_running(state, event)
        case SubtaskFinished():
            return _on_subtask_finished(state, event)
        case SubtaskFailed():
            return _on_subtask_failed(state, event)
        case _:
            assert_never(event)


def _on_job(state: Attempt, event: JobEvent) -> Step:
    match event:
        case JobStarted():
            is_first = isinstance(state.phase, Created)
            return _begin(state, state.graph.topology.subtasks) if is_first else (state, ())
        case AttemptFailed(why=why, draw=draw, kind=kind):
            return _fail(state, Failure(state.graph.topology.subtasks, why, draw, kind=kind))
        case ProgressMade(operator=operator):
            return replace(state, history=state.history.after_progress(operator)), ()
        case StopConfirmed():
            return _on_stop_confirmed(state)
        case CancelRequested():
            return _end(state, Ended(JobStatus.CANCELED, "it was canceled"))
        case _:
            assert_never(event)


# Starting: slots, then a restore point, then the subtasks.


def _on_time_passed(state: Attempt, event: TimePassed) -> Step:
    state = replace(state, now=max(state.now, event.now))
    match state.phase:
        case BackingOff(until=until, subtasks=subtasks) if until <= state.now:
            return _begin(state, subtasks)
        case _:
            return state, ()


def _begin(state: Attempt, subtasks: tuple[SubtaskId, ...]) -> Step:
    attempt = state.next_attempt
    begun = replace(state, next_attempt=AttemptId(attempt + 1))
    return _seek_slots(begun, attempt, subtasks)


def _seek_slots(state: Attempt, attempt: AttemptId, subtasks: tuple[SubtaskId, ...]) -> Step:
    down = Execution(attempt, ExecutionState.DOWN)
    state = replace(state, graph=state.graph.move(subtasks, down))
    match state.graph.assign_slots(subtasks):
        case TooFewSlots(missing=missing):
            return replace(state, phase=WaitingForSlots(attempt, subtasks, missing)), ()
        case _:
            restoring = replace(state, phase=Restoring(attempt, subtasks))
            return restoring, (FindRestorePoint(attempt, subtasks),)


def _look_again(state: Attempt) -> Step:
    """The slots have changed, which only affects an attempt that waits for slots."""
    match state.phase:
        case WaitingForSlots(attempt=attempt, subtasks=subtasks):
            return _seek_slots(state, attempt, subtasks)
        case _:
            return state, ()


def _on_restore_point_ready(state: Attempt, event: RestorePointReady) -> Step:
    match state.phase:
        case Restoring(attempt=attempt, subtasks=subtasks) if attempt == event.attempt:
            return _deploy(state, attempt, subtasks)
        case _:
            return state, ()


def _deploy(state: Attempt, attempt: AttemptId, subtasks: tuple[SubtaskId, ...]) -> Step:
    """If a slot was lost since the search began, a new attempt replaces this one.

    Other regions may join it while it waits, and an answer about the smaller set of subtasks must
    not be mistaken for one about the larger.
    """
    graph = state.graph.assign_slots(subtasks)
    if isinstance(graph, TooFewSlots):
        return _begin(state, subtasks)
    placements = tuple((subtask, graph.slot_of(subtask)) for subtask in subtasks)
    assert all(graph.stage(s) is ExecutionState.DOWN for s in subtasks), "one attempt at a time"
    assert all(slot in graph.slots for _, slot in placements), "nothing goes to a lost slot"
    deployed = replace(
        state,
        graph=graph.move(subtasks, Execution(attempt, ExecutionState.DEPLOYING)),
        phase=Deploying(attempt, frozenset(subtasks), subtasks),
    )
    return deployed, (Deploy(attempt, placements),)


def _on_subtask_running(state: Attempt, event: SubtaskRunning) -> Step:
    if state.graph.stage(event.subtask) is not ExecutionState.DEPLOYING:
        return state, ()
    return _arrive(state, event.subtask, Execution(event.attempt, ExecutionState.RUNNING)), ()


def _arrive(state: Attempt, subtask: SubtaskId, execution: Execution) -> Attempt:
    state = replace(state, graph=state.graph.move((subtask,), execution))
    match state.phase:
        case Deploying(awaiting=awaiting) as deploying:
            left = awaiting - {subtask}
            return replace(state, phase=replace(deploying, awaiting=left) if left else Running())
        case _:
            return state


# Failing: the affected subtasks go down, and the strategy decides when they restart.


def _on_slot_lost(state: Attempt, event: SlotLost) -> Step:
    graph = state.graph
    if event.slot not in graph.slots:
        return state, ()
    why = f"slot {event.slot} on {graph.slots[event.slot].executor} was lost"
    failure = Failure(graph.hosted_by(event.slot), why, event.draw)
    return _fail(replace(state, graph=graph.remove_slot(event.slot)), failure)


def _on_subtask_failed(state: Attempt, event: SubtaskFailed) -> Step:
    why = f"{event.subtask}: {event.cause}"
    match event.cause:
        case FailureCause.USER_CODE | FailureCause.OPERATOR:
            return _recycle(state, event, why)
        case FailureCause.CONNECTION | FailureCause.CHECKPOINT:
            if not state.graph.stage(event.subtask).is_live:
                return state, ()
            region = state.graph.regions_of((event.subtask,))
            kind = Kind(event.subtask.operator, event.error)
            return _fail(state, Failure(region, why, event.draw, kind=kind))
        case _:
            assert_never(event.cause)


def _recycle(state: Attempt, event: SubtaskFailed, why: str) -> Step:
    """Even a subtask that was already taken down leaves a process that must not be used again."""
    graph, placement = state.graph, state.graph.placements.get(event.subtask.index)
    if placement is None or placement.slot not in graph.slots:
        return state, ()
    recycled, kind = (RecycleSlot(placement.slot),), Kind(event.subtask.operator, event.error)
    failure = Failure(graph.hosted_by(placement.slot), why, event.draw, recycled, kind)
    return _fail(replace(state, graph=graph.remove_slot(placement.slot)), failure)


def _fail(state: Attempt, failure: Failure) -> Step:
    if isinstance(state.phase, Created | Ended):
        return state, ()
    if not failure.hit:
        unharmed, actions = _look_again(state)
        return unharmed, (*failure.recycled, *actions)
    match state.phase:
        case Stopping():
            return _end(state, Ended(JobStatus.STOPPED, failure.why), failure.recycled)
        case BackingOff() | WaitingForSlots():
            return _join(state, state.phase, failure)
        case Restoring(subtasks=pending):
            return _restart(state, pending, failure)
        case Deploying(awaiting=awaiting):
            return _restart(state, state.graph.regions_of(awaiting), failure)
        case Running():
            return _restart(state, (), failure)
        case _:
            assert_never(state.phase)


def _restart(state: Attempt, pending: tuple[SubtaskId, ...], failure: Failure) -> Step:
    history, verdict = restart(state.strategy, state.history, state.now, failure.draw, failure.kind)
    state = replace(state, history=history)
    match verdict:
        case GiveUp(reason=reason):
            ended = Ended(JobStatus.FAILED, f"{failure.why}; {reason}")
            return _end(state, ended, failure.recycled)
        case Restart(delay_ms=delay_ms):
            subtasks = state.graph.union(pending, failure.hit)
            down, actions = _take_down(state, subtasks, failure)
            until = Millis(state.now + delay_ms)
            return replace(down, phase=BackingOff(until, subtasks)), actions
        case _:
            assert_never(verdict)


def _join(state: Attempt, phase: BackingOff | WaitingForSlots, failure: Failure) -> Step:
    """A restart is under way already: what failed now comes back with it, at its time."""
    subtasks = state.graph.union(phase.subtasks, failure.hit)
    if subtasks == phase.subtasks:
        return state, failure.recycled
    down, taken = _take_down(state, subtasks, failure)
    joined, sought = _look_again(replace(down, phase=replace(phase, subtasks=subtasks)))
    return joined, (*taken, *sought)


def _take_down(state: Attempt, subtasks: tuple[SubtaskId, ...], failure: Failure) -> Step:
    """Report first, so that pending checkpoints are aborted before their subtasks go."""
    report = ReportRestart(
        attempt=max(state.graph.executions[subtask].attempt for subtask in subtasks),
        subtasks=subtasks,
        whole_job=state.graph.is_whole_job(subtasks),
        why=failure.why,
    )
    resets = _resets(state.graph, subtasks)
    down = replace(state, graph=state.graph.take_down(subtasks))
    return down, (report, *failure.recycled, *resets)


def _resets(graph: ExecutionGraph, subtasks: tuple[SubtaskId, ...]) -> tuple[ResetSubtasks, ...]:
    return tuple(ResetSubtasks(slot, live) for slot, live in graph.live_by_slot(subtasks))


# Ending.


def _on_subtask_finished(state: Attempt, event: SubtaskFinished) -> Step:
    if not state.graph.stage(event.subtask).is_live:
        return state, ()
    state = _arrive(state, event.subtask, Execution(event.attempt, ExecutionState.FINISHED))
    if state.graph.unfinished():
        return state, ()
    if isinstance(state.phase, Stopping):
        return _end(state, Ended(JobStatus.STOPPED, "its savepoint is complete"))
    return _end(state, Ended(JobStatus.FINISHED, "every subtask has finished"))


def _on_stop_confirmed(state: Attempt) -> Step:
    """A subtask that is not running has failed since the savepoint was taken, and stays down."""
    match state.phase:
        case Created() | Stopping():
            return state, ()
        case Running():
            return replace(state, phase=Stopping()), ()
        case _:
            return _end(state, Ended(JobStatus.STOPPED, "its savepoint is complete"))


def _at_end(state: Attempt, ended: Ended, event: AttemptEvent) -> Step:
    """What a sink does not commit is tried again, as often as a failing job would be restarted."""
    if not isinstance(event, AttemptFailed) or event.kind is None:
        return state, ()
    history, verdict = restart(state.strategy, state.history, state.now, event.draw, event.kind)
    state = replace(state, history=history)
    if ended.status is JobStatus.FAILED or isinstance(verdict, Restart):
        return state, ()
    return replace(state, phase=Ended(JobStatus.FAILED, f"{event.why}; {verdict.reason}")), ()


def _end(state: Attempt, ended: Ended, recycled: tuple[RecycleSlot, ...] = ()) -> Step:
    unfinished = state.graph.unfinished()
    resets = _resets(state.graph, unfinished)
    down = state.graph.take_down(unfinished)
    return replace(state, graph=down, phase=ended), (*recycled, *resets)
