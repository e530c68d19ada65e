"""Combines the decisions of a driver: attempts, checkpoints and split assignments.

The attempt decides where subtasks run, the coordinator decides about checkpoints, the enumerators
decide which reader gets which split; none of them knows the others. This module turns the actions
of one into events of another, within one step, so that no message between them can be lost, late
or out of order.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from weir.core import attempt as attempts
from weir.core import coordinator as checkpoints
from weir.core.coordinator import actions, events
from weir.core.coordinator.coordinator_state import Coordinator
from weir.core.enumerator import Splits
from weir.core.ids import (
    NO_CHECKPOINT,
    AttemptId,
    Millis,
    OperatorId,
    SlotId,
    SplitId,
    SubtaskId,
)
from weir.core.lifecycle import JobStatus, ProgressMade, SubtaskFinished, SubtaskRunning, TimePassed
from weir.core.phases import Ended
from weir.core.rescale import StateAssignment, assign_state
from weir.core.restarts import Kind
from weir.core.stall_detector import StallDetector


@dataclass(frozen=True, slots=True)
class SplitWanted:
    """A reader has nothing to read."""

    attempt: AttemptId
    subtask: SubtaskId


@dataclass(frozen=True, slots=True)
class Launch:
    """Start these subtasks in these slots, each from the state assigned to it."""

    attempt: AttemptId
    restore: actions.RestorePoint
    placements: tuple[tuple[SubtaskId, SlotId, StateAssignment], ...]


@dataclass(frozen=True, slots=True)
class SplitsFound:
    """A source's discovery has found new splits, or has ended."""

    operator: OperatorId
    splits: tuple[SplitId, ...]
    seen: str
    is_final: bool


@dataclass(frozen=True, slots=True)
class OperatorCoordinatorFailed:
    """An operator coordinator raised in the driver; an attempt cannot continue without it."""

    operator: OperatorId
    why: str
    error: str
    """The type of the exception; empty if a retry may succeed."""


@dataclass(frozen=True, slots=True)
class OperatorCoordinatorRecovered:
    """An operator coordinator works again."""

    operator: OperatorId


CoordinatorHealth = OperatorCoordinatorFailed | OperatorCoordinatorRecovered
FromDriver = SplitsFound | CoordinatorHealth
Event = attempts.AttemptEvent | events.Event | SplitWanted | FromDriver

DriverAction = (
    Launch
    | attempts.ReportStatus
    | attempts.ResetSubtasks
    | attempts.RecycleSlot
    | attempts.ReportRestart
    | actions.DriverAction
)
"""What the driver carries out while it runs."""

Action = DriverAction | actions.EndDriver


@dataclass(frozen=True, slots=True)
class Job:
    """Everything a driver has to remember about its job."""

    attempt: attempts.Attempt
    coordinator: Coordinator
    splits: Mapping[OperatorId, Splits] = field(default_factory=dict)
    without_in_flight: bool = False
    health: StallDetector = StallDetector()
    draw: float = 0.5
    restores: Mapping[AttemptId, actions.RestorePoint] = field(default_factory=dict)
    """Restore points that were found for attempts not yet launched."""


Step = tuple[Job, tuple[Action, ...]]


def step(job: Job, event: Event) -> Step:
    """The only way a job changes. Internal events are processed within the same step."""
    leaving: list[Action] = []
    todo: deque[Event] = deque([event])
    while todo:
        job, decided = _dispatch(job, todo.popleft())
        for action in decided:
            job, caused, out = _route(job, action)
            todo.extend(caused)
            leaving.extend(out)
        if not todo and job.health.is_overdue(job.coordinator.clock.now):
            todo.append(attempts.AttemptFailed(_stuck(job.health), job.draw))
            job = replace(job, health=job.health.pause())
    return job, tuple(leaving)


def _stuck(health: StallDetector) -> str:
    return f"no checkpoint was completed for {health.window_ms} ms"


def next_deadline(job: Job) -> Millis | None:
    """When time alone will next change something."""
    deadlines = (
        attempts.next_deadline(job.attempt),
        checkpoints.next_deadline(job.coordinator),
        job.health.deadline,
    )
    return min((d for d in deadlines if d is not None), default=None)


Decision = attempts.AttemptAction | actions.Action


def _dispatch(job: Job, event: Event) -> tuple[Job, tuple[Decision, ...]]:
    match event:
        case TimePassed():
            job = replace(job, draw=event.draw)
            return _both(job, event)
        case SubtaskRunning() | SubtaskFinished():
            return _subtask(job, event)
        case SplitWanted():
            return _give_split(job, event)
        case SplitsFound():
            return _find_splits(job, event)
        case OperatorCoordinatorFailed() | OperatorCoordinatorRecovered():
            return _judge_coordinator(job, event)
        case events.CommitInDoubt() | events.CommitConfirmed() | events.TransactionsUnresolved():
            return _on_sink_event(job, event)
        case (
            attempts.JobStarted()
            | attempts.SlotRegistered()
            | attempts.SlotLost()
            | attempts.SubtaskFailed()
            | attempts.AttemptFailed()
            | ProgressMade()
            | attempts.RestorePointReady()
            | attempts.StopConfirmed()
            | attempts.CancelRequested()
        ):
            after, decided = attempts.step(job.attempt, event)
            return replace(job, attempt=after), decided
        case _:
            return _coordinate(job, event)


def _judge_coordinator(job: Job, event: CoordinatorHealth) -> tuple[Job, tuple[Decision, ...]]:
    if isinstance(event, OperatorCoordinatorRecovered):
        judged: attempts.JobEvent = ProgressMade(event.operator)
    else:
        kind = Kind(event.operator, event.error, in_driver=True)
        judged = attempts.AttemptFailed(f"{event.operator}: {event.why}", job.draw, kind)
    after, decided = attempts.step(job.attempt, judged)
    return replace(job, attempt=after), decided


def _on_sink_event(
    job: Job, event: events.CommitInDoubt | events.CommitConfirmed | events.TransactionsUnresolved
) -> tuple[Job, tuple[Decision, ...]]:
    """If the sink's own code raised, the action is retried; a failed commit also fails the attempt.

    An attempt can go on while old transactions are not aborted, but a job cannot end.
    """
    job, decided = _coordinate(job, event)
    match event:
        case events.CommitConfirmed():
            judged: CoordinatorHealth = OperatorCoordinatorRecovered(event.sink)
        case events.CommitInDoubt(why=why) if why:
            judged = OperatorCoordinatorFailed(event.sink, why, event.error)
        case events.TransactionsUnresolved(sink=sink) if sink and isinstance(
            job.attempt.phase, Ended
        ):
            judged = OperatorCoordinatorFailed(sink, event.why, event.error)
        case _:
            return job, decided
    job, more = _judge_coordinator(job, judged)
    return job, (*decided, *more)


def _coordinate(job: Job, event: events.Event) -> tuple[Job, tuple[Decision, ...]]:
    after, decided = checkpoints.step(job.coordinator, event)
    return replace(job, coordinator=after), decided


def _both(
    job: Job, event: TimePassed | SubtaskRunning | SubtaskFinished
) -> tuple[Job, tuple[Decision, ...]]:
    """Both get the event, the coordinator first: it must know it before a status that follows."""
    job, first = _coordinate(job, event)
    after, second = attempts.step(job.attempt, event)
    return replace(job, attempt=after), (*first, *second)


def _subtask(job: Job, event: SubtaskRunning | SubtaskFinished) -> tuple[Job, tuple[Decision, ...]]:
    """An event of an earlier attempt is ignored."""
    execution = job.attempt.graph.executions[event.subtask]
    if execution.attempt != event.attempt or not execution.stage.is_live:
        return job, ()
    return _both(job, event)


def _give_split(job: Job, event: SplitWanted) -> tuple[Job, tuple[Decision, ...]]:
    if not job.coordinator.subtasks.runs(event.subtask, event.attempt):
        return job, ()
    operator = event.subtask.operator
    splits, given = job.splits[operator].give(event.subtask)
    job = replace(job, splits={**job.splits, operator: splits})
    return _coordinate(job, events.OperatorEventSent(operator, event.subtask, given))


def _find_splits(job: Job, event: SplitsFound) -> tuple[Job, tuple[Decision, ...]]:
    operator = event.operator
    splits, messages = job.splits[operator].find(event.splits, event.seen, is_final=event.is_final)
    job = replace(job, splits={**job.splits, operator: splits})
    decided: list[Decision] = []
    for reader, message in messages:
        job, sent = _coordinate(job, events.OperatorEventSent(operator, reader, message))
        decided.extend(sent)
    return job, tuple(decided)


def _route(  # noqa: C901 - one case for each action that another part gets
    job: Job, action: Decision
) -> tuple[Job, list[Event], list[Action]]:
    """The events for other parts that it causes, and the actions that leave the job."""
    match action:
        case attempts.ReportStatus():
            is_running = action.status is JobStatus.RUNNING
            now = job.coordinator.clock.now
            health = job.health.begin(now) if is_running else job.health.pause()
            job = replace(job, health=health)
            return job, [events.StatusReported(action.status, job.draw)], [action]
        case actions.ReportCompleted() if job.health.deadline is not None:
            return replace(job, health=job.health.begin(job.coordinator.clock.now)), [], [action]
        case attempts.ReportRestart():
            return (
                job,
                [events.RestartReported(action.subtasks, action.whole_job, action.why)],
                [action],
            )
        case attempts.FindRestorePoint():
            return job, [events.RestorePointRequested(action.attempt, action.subtasks)], []
        case attempts.Deploy():
            job, launch = _launch(job, action)
            return job, [], [launch]
        case actions.OfferRestorePoint():
            found = {**job.restores, action.attempt: action.restore}
            ready = attempts.RestorePointReady(action.attempt)
            return replace(job, restores=found), [ready], []
        case actions.FailAttempt():
            return job, [attempts.AttemptFailed(action.why, job.draw)], [action]
        case actions.ConfirmStop():
            return job, [attempts.StopConfirmed()], []
        case actions.SnapshotOperators():
            return _snapshot_enumerators(job, action)
        case actions.NotifyCompleted() if action.kind.commits:
            return _forget_assigned(job, action), [ProgressMade()], [action]
        case _:
            return job, [], [action]


def _launch(job: Job, deploy: attempts.Deploy) -> tuple[Job, Launch]:
    restore = job.restores[deploy.attempt]
    job = replace(job, restores={})
    launched = tuple(subtask for subtask, _ in deploy.placements)
    if isinstance(restore, actions.RestoreManifest):
        since = restore.since
        topology = job.coordinator.job.topology
        without = job.without_in_flight and not since
        restored_state = assign_state(restore.manifest, topology, without_in_flight=without)
    else:
        since = NO_CHECKPOINT
        restored_state = {subtask: StateAssignment(subtask) for subtask in launched}
    splits = {
        operator: pool.reset(frozenset(launched), since) for operator, pool in job.splits.items()
    }
    placements = tuple((s, slot, restored_state[s]) for s, slot in deploy.placements)
    return replace(job, splits=splits), Launch(deploy.attempt, restore, placements)


def _snapshot_enumerators(
    job: Job, action: actions.SnapshotOperators
) -> tuple[Job, list[Event], list[Action]]:
    """Enumerators answer within the step; only other operator coordinators are asked outside."""
    own = [operator for operator in action.operators if operator in job.splits]
    caused: list[Event] = [
        events.OperatorSnapshotted(action.checkpoint, operator, job.splits[operator].pool)
        for operator in own
    ]
    marked = {operator: job.splits[operator].snapshot(action.checkpoint) for operator in own}
    job = replace(job, splits={**job.splits, **marked})
    others = tuple(operator for operator in action.operators if operator not in job.splits)
    asked: list[Action] = [actions.SnapshotOperators(action.checkpoint, others)] if others else []
    return job, caused, asked


def _forget_assigned(job: Job, action: actions.NotifyCompleted) -> Job:
    splits = {o: pool.completed(action.checkpoint) for o, pool in job.splits.items()}
    return replace(job, splits=splits)
