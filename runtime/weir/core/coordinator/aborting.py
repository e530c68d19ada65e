"""Ends checkpoints that will not complete, and sees to everything they leave behind.

An abort has to do six things, and forgetting any one of them is a leak or a hang: release the
shared files, delete its own, tell every subtask, answer whoever asked, count the failure, and let
go of the operators' messages that waited for its trigger. They are all here, in one place.
"""

from collections.abc import Iterable
from dataclasses import replace

from weir.core.coordinator.actions import (
    Action,
    Answer,
    DeleteFiles,
    Denied,
    DoomAttempt,
    NotifyAborted,
    ReportAborted,
    Target,
)
from weir.core.coordinator.diagnosis import explain
from weir.core.coordinator.events import SubtaskAcked
from weir.core.coordinator.state import (
    Abortable,
    Cleaning,
    Collected,
    Collecting,
    Coordinator,
    Logging,
    Pending,
    Persisting,
    Preparing,
    Retry,
    Step,
)
from weir.core.failures import Failures
from weir.core.ids import NO_CHECKPOINT, Millis, SubtaskId
from weir.core.reasons import Reason
from weir.core.requests import Origin, Request

RETRY_MS = 200
"""How long a failed try of anything rests before the next."""

DELETE_TRIES = 8
"""After so many failures a deletion is put off."""

MOST_PUT_OFF = 10_000
"""Files; what is beyond that is left to the garbage collector, the oldest first."""

WHOLE_JOB_GOES_DOWN = frozenset(
    {
        Reason.CHECKPOINT_COORDINATOR_SUSPEND,
        Reason.CHECKPOINT_COORDINATOR_SHUTDOWN,
        Reason.TASK_FAILURE,
    }
)


def abort(state: Coordinator, pending: Pending, reason: Reason, cause: str = "") -> Step:
    ticket, acks = pending.ticket, acks_of(pending)
    message = explain(pending, reason, cause, state.now)
    files = [file for ack in acks for file in ack.snapshot.files()]
    shared, freed = state.shared.release(
        (*ticket.base_files, *(file.path for file in files if file.shared))
    )
    own = tuple(file.path for file in files if not file.shared)
    has_manifest = isinstance(pending, Persisting | Logging)
    manifest = (manifest_path(ticket.location),) if has_manifest else ()
    state = replace(
        state,
        pending=tuple(p for p in state.pending if p is not pending),
        shared=shared,
        final_due=_final_due(state, ticket.request),
    )
    state, cleaning = clean(state, (*own, *freed, *manifest))
    state, released = _release_held(state, pending)
    notices = () if isinstance(pending, Preparing) else _notices(state, pending)
    report = ReportAborted(ticket.checkpoint, reason, message, state.failed_triggers)
    state, consequences = _count(state, pending, reason, message)
    return state, (
        report,
        *released,
        *notices,
        *cleaning,
        *_answer(ticket.request, reason, message),
        *consequences,
    )


def abort_all(state: Coordinator, reason: Reason, cause: str = "") -> Step:
    """Everything that can still be aborted; what is being written ends by storage's answer."""
    actions: tuple[Action, ...] = ()
    for pending in state.pending:
        if isinstance(pending, Abortable):
            state, more = abort(state, pending, reason, cause)
            actions += more
    return state, actions


def drop_requests(state: Coordinator, dropped: Iterable[Request], reason: Reason) -> Step:
    """Requests end that never became a checkpoint."""
    gone = tuple(dropped)
    state = replace(
        state,
        queue=tuple(r for r in state.queue if r not in gone),
        failed_triggers=state.failed_triggers + len(gone),
        final_due=max((_final_due(state, r) for r in gone), default=state.final_due),
    )
    actions: list[Action] = []
    for request in gone:
        actions.append(ReportAborted(NO_CHECKPOINT, reason, reason.value, state.failed_triggers))
        actions += _answer(request, reason, reason.value)
    return state, tuple(actions)


def clean(state: Coordinator, paths: Iterable[str]) -> Step:
    """Delete these files in this order, and remember it as one checkpoint being cleaned up.

    A manifest comes last: while it is there, an interrupted deletion can be taken up again.
    """
    doomed = tuple(paths)
    if not doomed:
        return state, ()
    ticket = state.tickets + 1
    state = replace(
        state, tickets=ticket, cleaning=(*state.cleaning, Cleaning(ticket, doomed, tries=1))
    )
    return state, (DeleteFiles(ticket, doomed),)


def put_off(state: Coordinator, cleaning: Cleaning) -> Coordinator:
    """Nobody waits for this deletion any more, but it is not forgotten (spec C5, S4).

    It may come much later, so it is for files only whose names are never used again (spec C19).
    Where people chose the place they may choose it again, for a savepoint that is theirs.
    """
    ours = (f"{state.directory}/chk-", f"{state.directory}/shared/")
    paths = tuple(path for path in cleaning.paths if path.startswith(ours))
    waiting = (*state.put_off, cleaning._replace(paths=paths)) if paths else state.put_off
    while sum(len(other.paths) for other in waiting) > MOST_PUT_OFF:
        waiting = waiting[1:]
    return replace(state, put_off=waiting)


def take_up(state: Coordinator) -> Step:
    """Try the first deletion that was put off once more; if that fails, it comes after the others.

    One at a time: where nothing can be deleted, that costs one request for each checkpoint.
    """
    if not state.put_off:
        return state, ()
    last_try = state.put_off[0]._replace(tries=DELETE_TRIES)
    state = replace(state, put_off=state.put_off[1:], cleaning=(*state.cleaning, last_try))
    return state, (DeleteFiles(last_try.ticket, last_try.paths),)


def retry_later(state: Coordinator, action: Action) -> Coordinator:
    retry = Retry(Millis(state.now + RETRY_MS), action)
    return replace(state, retries=(*state.retries, retry))


def acks_of(pending: Pending) -> tuple[SubtaskAcked, ...]:
    match pending:
        case Collecting() | Collected() | Persisting() | Logging():
            return tuple(pending.acks[subtask] for subtask in sorted(pending.acks))
        case Preparing():
            return ()


def targets(state: Coordinator, subtasks: Iterable[SubtaskId]) -> tuple[Target, ...]:
    """Those of them that run, each with the attempt that it runs in."""
    return tuple((s, state.running[s]) for s in subtasks if s in state.running)


def manifest_path(location: str) -> str:
    return f"{location}/_metadata"


def _notices(state: Coordinator, pending: Pending) -> tuple[Action, ...]:
    told = targets(state, pending.ticket.plan.notify)
    return (NotifyAborted(pending.ticket.checkpoint, told),) if told else ()


def _release_held(state: Coordinator, pending: Pending) -> Step:
    """Messages that waited behind a trigger that will not come may go."""
    if not isinstance(pending, Preparing):
        return state, ()
    return replace(state, held=()), state.held


def _answer(request: Request, reason: Reason, message: str) -> tuple[Action, ...]:
    if request.origin is not Origin.USER:
        return ()
    return (Answer(request.id, Denied(reason, message)),)


def _final_due(state: Coordinator, request: Request) -> Millis:
    if request.origin is not Origin.END_OF_DATA:
        return state.final_due
    return Millis(state.now + max(state.policy.min_pause_ms, RETRY_MS))


def _count(state: Coordinator, pending: Pending, reason: Reason, message: str) -> Step:
    """What the failure means for the attempt."""
    kind, checkpoint = pending.ticket.request.kind, pending.ticket.checkpoint
    sources_wait = kind.is_synchronous and not isinstance(pending, Preparing)
    if reason is Reason.TASK_CHECKPOINT_FAILURE or (
        sources_wait and reason not in WHOLE_JOB_GOES_DOWN
    ):
        why = f"checkpoint {checkpoint} failed with {reason.name}"
        return replace(state, failures=Failures()), (DoomAttempt(reason, why, message),)
    if kind.is_savepoint:
        return state, ()
    failures = state.failures.after_failure(checkpoint, reason)
    if failures.in_a_row <= state.policy.tolerable_failures:
        return replace(state, failures=failures), ()
    forgiven = Failures(forgiven=failures.counted)
    why = (
        f"{failures.in_a_row} checkpoints failed in a row, the last one, checkpoint {checkpoint},"
        f" with {reason.name}"
    )
    return replace(state, failures=forgiven), (DoomAttempt(reason, why, message),)
