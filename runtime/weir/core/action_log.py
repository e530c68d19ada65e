"""Describes each action of the driver in one log line, in the wording of Flink's logs.

The core does not log: its actions are the log, and this module gives their text. The lines about a
checkpoint have Flink's wording (spec C21), and so have the two about a restore (spec C15). The
caller writes, shows or compares the lines.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from weir.core.attempt import RecycleSlot, ReportRestart, ReportStatus, ResetSubtasks
from weir.core.checkpoint_paths import manifest_path
from weir.core.coordinator.actions import (
    CommitTransactions,
    CompleteRequest,
    CreateEntry,
    DeleteFiles,
    EndDriver,
    FailAttempt,
    LookForSuccessor,
    NotifyAborted,
    NotifyCompleted,
    PrepareLocation,
    ReportAborted,
    ReportCompleted,
    ReportTriggered,
    RequestFailed,
    RequestSucceeded,
    ResolveTransactions,
    RestoreManifest,
    RestorePoint,
    SendToSubtask,
    SnapshotOperators,
    Target,
    Trigger,
    TruncateLog,
    WriteManifest,
)
from weir.core.enumerator import AssignSplit, NoMoreSplits, NoSplitsYet, shown
from weir.core.ids import NO_CHECKPOINT
from weir.core.job_master import Action, Launch
from weir.core.log_entries import CheckpointLogged, Entry, EpochTaken, IdsReserved, JobClosed

SHOWN = 12
"""A longer list is cut to this many members."""


class Level(StrEnum):
    """The severity of a line."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a job's log."""

    level: Level
    text: str


def describe_action(action: Action, job: str) -> Line:
    match action:
        case ReportTriggered() | ReportCompleted() | ReportAborted():
            return _life(action, job)
        case Trigger() | NotifyAborted() | NotifyCompleted() | SendToSubtask():
            return Line(Level.DEBUG, _message(action))
        case SnapshotOperators() | PrepareLocation():
            return Line(Level.DEBUG, _preparation(action))
        case WriteManifest() | CreateEntry() | LookForSuccessor() | TruncateLog() | DeleteFiles():
            return Line(Level.DEBUG, _storage(action))
        case CommitTransactions() | ResolveTransactions():
            return Line(Level.DEBUG, _transactions(action))
        case CompleteRequest() | FailAttempt() | EndDriver():
            return _outcome(action, job)
        case Launch() | ReportStatus() | ResetSubtasks() | RecycleSlot() | ReportRestart():
            return _attempt(action, job)
        case _:
            assert_never(action)


def describe_placements(launch: Launch) -> Line:
    """The slots of the subtasks, which the line about the restore does not name."""
    places = [f"{subtask} in slot {slot}" for subtask, slot, _ in launch.placements]
    return Line(Level.DEBUG, f"Launching attempt {launch.attempt}: {listed(places)}.")


def listed(things: Iterable[object]) -> str:
    """A list in a sentence."""
    words = [str(thing) for thing in things]
    if not words:
        return "none"
    more = len(words) - SHOWN
    return ", ".join(words[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _life(report: ReportTriggered | ReportCompleted | ReportAborted, job: str) -> Line:
    match report:
        case ReportTriggered(checkpoint, kind, at):
            text = f"Triggering checkpoint {checkpoint} (type={kind.name}) @ {at} for job {job}."
            return Line(Level.INFO, text)
        case ReportCompleted(manifest, duration_ms, finalization_ms):
            text = (
                f"Completed checkpoint {manifest.checkpoint} for job {job} "
                f"({manifest.bytes} bytes, checkpointDuration={duration_ms} ms, "
                f"finalizationTime={finalization_ms} ms)."
            )
            return Line(Level.INFO, text)
        case ReportAborted():
            return _aborted(report, job)
        case _:
            assert_never(report)


def _aborted(report: ReportAborted, job: str) -> Line:
    level = Level.WARNING if report.reason.counts else Level.INFO
    why = f"({report.reason.name}): {report.message}."
    if report.checkpoint != NO_CHECKPOINT:
        return Line(level, f"Aborted checkpoint {report.checkpoint} for job {job} {why}")
    so_far = f"({report.failed_triggers} consecutive failed attempts so far)"
    return Line(level, f"Failed to trigger checkpoint for job {job} {why} {so_far}")


def _message(message: Trigger | NotifyAborted | NotifyCompleted | SendToSubtask) -> str:
    match message:
        case Trigger(barrier, targets):
            base = f", building on checkpoint {barrier.base}" if barrier.base else ""
            return (
                f"Sending the {barrier.alignment} barrier of checkpoint {barrier.checkpoint} "
                f"to {_subtasks(targets)}{base}."
            )
        case NotifyAborted(checkpoint, targets):
            return f"Notifying {_subtasks(targets)} that checkpoint {checkpoint} is aborted."
        case NotifyCompleted(checkpoint, _, targets, leaving):
            leave = " and that they may finish" if leaving else ""
            notified = _subtasks(targets)
            return f"Notifying {notified} that checkpoint {checkpoint} is complete{leave}."
        case SendToSubtask(operator, (subtask, _), sent):
            return f"Sending {_operator_event(sent)} from {operator} to {subtask}."
        case _:
            assert_never(message)


def _operator_event(message: object) -> str:
    match message:
        case AssignSplit(split):
            return f"split {shown(split)}"
        case NoSplitsYet():
            return "the notice that there are no splits yet"
        case NoMoreSplits():
            return "the notice that there are no more splits"
        case _:
            return "a message"


def _preparation(preparation: SnapshotOperators | PrepareLocation) -> str:
    match preparation:
        case SnapshotOperators(checkpoint, operators):
            asked = listed(operators)
            return f"Snapshotting the coordinators of {asked} for checkpoint {checkpoint}."
        case PrepareLocation(checkpoint, location):
            return f"Preparing {location} for savepoint {checkpoint}."
        case _:
            assert_never(preparation)


def _storage(
    action: WriteManifest | CreateEntry | LookForSuccessor | TruncateLog | DeleteFiles,
) -> str:
    match action:
        case WriteManifest(manifest):
            path = manifest_path(manifest.location)
            return f"Writing the manifest of checkpoint {manifest.checkpoint} to {path}."
        case CreateEntry(index, entry):
            return f"Creating entry {index} of the log: {_entry(entry)}."
        case LookForSuccessor(index):
            return f"Checking whether another driver has taken entry {index} of the log."
        case TruncateLog(below):
            return f"Truncating the log below entry {below}."
        case DeleteFiles(operation, paths):
            return f"Deletion {operation}: {listed(paths)}."
        case _:
            assert_never(action)


def _entry(entry: Entry) -> str:
    match entry:
        case EpochTaken(epoch, driver):
            return f"{driver} begins epoch {epoch}"
        case CheckpointLogged(checkpoint=checkpoint):
            return f"checkpoint {checkpoint} is complete"
        case IdsReserved(ids_until=until):
            return f"ids below {until} are reserved"
        case JobClosed(status=status):
            return f"the job is {status}"
        case _:
            assert_never(entry)


def _transactions(action: CommitTransactions | ResolveTransactions) -> str:
    match action:
        case CommitTransactions(epoch, commit):
            names = (
                listed(t.name for t in commit.transactions) if commit.transactions else "nothing"
            )
            return (
                f"Committing {names} of {commit.sink} as number {commit.sequence}, epoch {epoch}."
            )
        case ResolveTransactions(operation, _, subtasks, keep):
            spared = f" but {listed(t.name for t in keep)}" if keep else ""
            return f"Resolution {operation}: aborting what {listed(subtasks)} left open{spared}."
        case _:
            assert_never(action)


def _outcome(action: CompleteRequest | FailAttempt | EndDriver, job: str) -> Line:
    match action:
        case CompleteRequest(request, outcome):
            return Line(Level.INFO, f"Request {request} {describe_outcome(outcome)}.")
        case FailAttempt(reason):  # the restart or the end that follows has the reason
            return Line(Level.DEBUG, f"Giving up the running attempt of job {job} ({reason.name}).")
        case EndDriver(_, fenced=True):
            return Line(Level.WARNING, f"Job {job} has another driver: leaving, touching nothing.")
        case EndDriver(status):
            return Line(Level.INFO, f"Job {job} is over: {status}.")
        case _:
            assert_never(action)


def describe_outcome(outcome: RequestSucceeded | RequestFailed) -> str:
    match outcome:
        case RequestSucceeded(checkpoint, location):
            return f"succeeded: checkpoint {checkpoint} is at {location}"
        case RequestFailed(_, message):
            return f"failed: {message}"
        case _:
            assert_never(outcome)


def _attempt(
    action: Launch | ReportStatus | ResetSubtasks | RecycleSlot | ReportRestart, job: str
) -> Line:
    match action:
        case Launch(restore=restore):
            return Line(Level.INFO, _restore(restore, job))
        case ReportStatus(status, missing):
            slots = f" (missing slots: {missing})" if missing else ""
            return Line(Level.INFO, f"Job {job} switched to state {status.name}{slots}.")
        case ResetSubtasks(slot, subtasks):
            return Line(Level.DEBUG, f"Ending {listed(subtasks)} in slot {slot}.")
        case RecycleSlot(slot):
            return Line(Level.INFO, f"Recycling slot {slot}.")
        case ReportRestart(whole_job=True, why=why):
            return Line(Level.WARNING, f"Restarting job {job}: {why}.")
        case ReportRestart(subtasks=subtasks, why=why):
            return Line(Level.WARNING, f"Restarting {listed(subtasks)} of job {job}: {why}.")
        case _:
            assert_never(action)


def _restore(restore: RestorePoint, job: str) -> str:
    if not isinstance(restore, RestoreManifest):
        return "No checkpoint found during restore."
    manifest = restore.manifest
    kind = "Savepoint" if manifest.kind.is_savepoint else "Checkpoint"
    return (
        f"Restoring job {job} from {kind} {manifest.checkpoint} @ {manifest.taken_at} "
        f"located at {manifest.location}"
    )


def _subtasks(targets: Iterable[Target]) -> str:
    return listed(subtask for subtask, _ in targets)
