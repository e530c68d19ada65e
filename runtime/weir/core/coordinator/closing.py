"""Ends a job in order: writes finish, commits are confirmed, nothing dangles, the log is closed.

A job may say that it is over only when every commit it owes has happened. Then what will never be
committed is aborted, the log gets its last entry, and the retained checkpoints stay or go as the
retention says (spec C12); what cannot be deleted even then is left to the garbage collector. A
driver that dies on this way is followed by one that finds the log unclosed and goes the rest of it.
"""

from dataclasses import replace

from weir.core import retention
from weir.core.coordinator.aborting import (
    DELETE_TRIES,
    abort_all,
    clean,
    drop_requests,
    put_off,
    retry_later,
    take_up,
)
from weir.core.coordinator.actions import DeleteFiles, EndDriver
from weir.core.coordinator.completing import discard
from weir.core.coordinator.events import FilesDeleted, FilesNotDeleted, StatusReported
from weir.core.coordinator.logbook import write_entry
from weir.core.coordinator.restarting import resolve_transactions
from weir.core.coordinator.state import Closed, Closing, Coordinator, Gone, Idle, Living, Step
from weir.core.ids import AttemptId
from weir.core.journal import JobClosed
from weir.core.lifecycle import JobStatus
from weir.core.reasons import Reason

ALL_ATTEMPTS = AttemptId(2**62)
"""Later than any attempt: at the end of a job no attempt may keep a transaction open."""


def on_end(state: Coordinator, event: StatusReported) -> Step:
    if isinstance(state.life, Closing) and event.status is JobStatus.FAILED:
        life = replace(state.life, status=event.status)
        return replace(state, status=event.status, life=life), ()
    if not isinstance(state.life, Living):
        return state, ()
    state = replace(state, status=event.status, clock=Idle(), wanted=(), life=Closing(event.status))
    state, aborted = abort_all(state, Reason.CHECKPOINT_COORDINATOR_SHUTDOWN)
    state, dropped = drop_requests(state, state.queue, Reason.CHECKPOINT_COORDINATOR_SHUTDOWN)
    return state, aborted + dropped


def go_on_closing(state: Coordinator) -> Step:
    match state.life:
        case Closing(status, settled=False) if not _owes_commits(state):
            state = replace(state, life=Closing(status, settled=True))
            return resolve_transactions(state, ALL_ATTEMPTS, state.topology.subtasks)
        case Closing(status, settled=True) if not state.resolving and not state.journal.writing:
            retains = not retention.discards_at_end(state.policy, status)
            entry = JobClosed(state.epoch, state.driver, status, retains, state.ids_until)
            return write_entry(state, entry)
        case Closed(status) if not state.cleaning:
            return replace(state, life=Gone(fenced=False)), (EndDriver(status, fenced=False),)
        case _:
            return state, ()


def _owes_commits(state: Coordinator) -> bool:
    return state.is_writing or any(ledger.unconfirmed for ledger in state.ledgers.values())


def is_failing(state: Coordinator) -> bool:
    return isinstance(state.life, Closing) and state.life.status is JobStatus.FAILED


def give_up(state: Coordinator) -> Step:
    """A sink's own code refuses to commit or to abort, and the job has failed: the log stays open.

    Whoever starts the job again repeats it, as after the death of a driver.
    """
    return replace(state, life=Gone(fenced=False)), (EndDriver(JobStatus.FAILED, fenced=False),)


def on_closed(state: Coordinator, entry: JobClosed) -> Step:
    """Whatever is not deleted yet gets its tries anew, for they are the last."""
    under_way = tuple(cleaning._replace(tries=1) for cleaning in state.cleaning)
    left = tuple(path for cleaning in state.put_off for path in cleaning.paths)
    state = replace(state, life=Closed(entry.status), cleaning=under_way, put_off=())
    state, cleaning = clean(state, left)
    if entry.retains:
        return state, cleaning
    doomed = state.completed
    state, discarded = discard(replace(state, completed=()), doomed)
    return state, cleaning + discarded


def on_deleted(state: Coordinator, event: FilesDeleted | FilesNotDeleted) -> Step:
    """Storage that deletes again may be asked for what it refused before."""
    for cleaning in state.cleaning:
        if cleaning.ticket != event.ticket:
            continue
        others = tuple(c for c in state.cleaning if c is not cleaning)
        if isinstance(event, FilesDeleted):
            return take_up(replace(state, cleaning=others))
        if cleaning.tries < DELETE_TRIES:
            again = cleaning._replace(tries=cleaning.tries + 1)
            state = replace(state, cleaning=(*others, again))
            return retry_later(state, DeleteFiles(cleaning.ticket, cleaning.paths)), ()
        state = replace(state, cleaning=others)
        return (state if isinstance(state.life, Closed) else put_off(state, cleaning)), ()
    return state, ()
