"""Ends a job in order: writes finish, commits are confirmed, nothing dangles, the log is closed.

A job ends only after all its commits are confirmed. Then transactions that will never be committed
are aborted, the log gets its last entry, and the checkpoints are deleted unless the retention
policy keeps them (spec C12); the garbage collector deletes what cannot be deleted then. If the
driver dies during shutdown, its successor finds the log open and completes the shutdown.
"""

from dataclasses import replace

from weir.core import retention
from weir.core.coordinator.abort import abort_all
from weir.core.coordinator.actions import EndDriver
from weir.core.coordinator.coordinator_state import (
    Active,
    Cleanup,
    Coordinator,
    LogClosed,
    ShuttingDown,
    Step,
    Terminated,
    Unscheduled,
)
from weir.core.coordinator.deletion import delete_checkpoints, delete_files
from weir.core.coordinator.events import StatusReported
from weir.core.coordinator.job_log import write_entry
from weir.core.coordinator.request_queue import drop_requests
from weir.core.coordinator.transactions import resolve_transactions
from weir.core.ids import AttemptId
from weir.core.lifecycle import JobStatus
from weir.core.log_entries import JobClosed
from weir.core.reasons import Reason

ALL_ATTEMPTS = AttemptId(2**62)
"""Later than any attempt: at the end of a job no attempt may keep a transaction open."""


def on_end(state: Coordinator, event: StatusReported) -> Step:
    if isinstance(state.stage, ShuttingDown) and event.status is JobStatus.FAILED:
        stage = replace(state.stage, status=event.status)
        return replace(state, status=event.status, stage=stage), ()
    if not isinstance(state.stage, Active):
        return state, ()
    state = replace(
        state,
        status=event.status,
        stage=ShuttingDown(event.status),
        requests=replace(state.requests, periodic=Unscheduled()),
        restore=replace(state.restore, requested=()),
    )
    reason = Reason.CHECKPOINT_COORDINATOR_SHUTDOWN
    state, aborted = abort_all(state, reason)
    state, dropped = drop_requests(state, state.requests.queue, reason)
    return state, aborted + dropped


def shut_down(state: Coordinator) -> Step:
    """Take the next step of the shutdown, if nothing holds it up."""
    match state.stage:
        case ShuttingDown(status, settled=False) if not _owes_commits(state):
            state = replace(state, stage=ShuttingDown(status, settled=True))
            return resolve_transactions(state, ALL_ATTEMPTS, state.job.topology.subtasks)
        case ShuttingDown(status, settled=True) if not (
            state.commits.resolving or state.log.writing
        ):
            job = state.job
            retains = not retention.discards_at_end(job.policy, status)
            entry = JobClosed(job.epoch, job.driver, status, retains, state.log.ids_until)
            return write_entry(state, entry)
        case LogClosed(status) if not state.cleanup.deletions:
            return _terminate(state, status)
        case Active() | ShuttingDown() | LogClosed() | Terminated():
            return state, ()


def _terminate(state: Coordinator, status: JobStatus) -> Step:
    return replace(state, stage=Terminated(fenced=False)), (EndDriver(status, fenced=False),)


def _owes_commits(state: Coordinator) -> bool:
    ledgers = state.commits.ledgers.values()
    return state.checkpoints.is_writing or any(ledger.unconfirmed for ledger in ledgers)


def is_failing(state: Coordinator) -> bool:
    return isinstance(state.stage, ShuttingDown) and state.stage.status is JobStatus.FAILED


def give_up(state: Coordinator) -> Step:
    """A sink's own code refuses to commit or to abort, and the job has failed: the log stays open.

    The next driver of the job repeats it, as after the death of a driver.
    """
    return _terminate(state, JobStatus.FAILED)


def on_closed(state: Coordinator, entry: JobClosed) -> Step:
    """The remaining deletions are tried again, for the last time."""
    under_way = tuple(deletion._replace(tries=1) for deletion in state.cleanup.deletions)
    left = tuple(path for deletion in state.cleanup.deferred for path in deletion.paths)
    state = replace(state, stage=LogClosed(entry.status), cleanup=Cleanup(under_way))
    state, deletions = delete_files(state, left)
    if entry.retains:
        return state, deletions
    completed = state.checkpoints.completed
    state = replace(state, checkpoints=replace(state.checkpoints, completed=()))
    state, discarded = delete_checkpoints(state, completed)
    return state, deletions + discarded
