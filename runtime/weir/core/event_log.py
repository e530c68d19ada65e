"""Describes each event of the driver in one log line, in the wording of Flink's logs.

It is one half of a job's log: the events explain the actions. The acks of subtasks are events, so
the history of a checkpoint cannot be read from the actions alone (spec C21).
"""

from typing import assert_never

from weir.core.action_log import Level, Line, listed
from weir.core.attempt import (
    AttemptFailed,
    CancelRequested,
    JobStarted,
    RestorePointReady,
    SlotLost,
    SlotRegistered,
    StopConfirmed,
    SubtaskFailed,
)
from weir.core.coordinator.events import (
    CheckpointRequested,
    CommitConfirmed,
    CommitInDoubt,
    EndOfDataReached,
    EntryCreated,
    EntryInDoubt,
    EntryNotCreated,
    EntryTaken,
    FilesDeleted,
    FilesNotDeleted,
    LocationNotPrepared,
    LocationPrepared,
    ManifestInDoubt,
    ManifestNotWritten,
    ManifestWritten,
    NoSuccessorSeen,
    OperatorEventSent,
    OperatorNotSnapshotted,
    OperatorSnapshotted,
    RestartReported,
    RestorePointRequested,
    StatusReported,
    SubtaskAcked,
    SubtaskDeclined,
    SubtaskProgressed,
    SuccessorUnknown,
    TransactionsResolved,
    TransactionsUnresolved,
)
from weir.core.job_master import (
    CoordinatorHealth,
    Event,
    OperatorCoordinatorFailed,
    SplitsFound,
    SplitWanted,
)
from weir.core.lifecycle import ProgressMade, SubtaskFinished, SubtaskRunning, TimePassed

FromSlot = (
    SlotRegistered
    | SlotLost
    | SubtaskRunning
    | SubtaskFinished
    | SubtaskFailed
    | EndOfDataReached
    | SplitWanted
)
FromCheckpoint = SubtaskAcked | SubtaskDeclined | SubtaskProgressed
FromOperator = (
    CoordinatorHealth
    | SplitsFound
    | OperatorEventSent
    | OperatorSnapshotted
    | OperatorNotSnapshotted
    | LocationPrepared
    | LocationNotPrepared
)
FromStorage = (
    ManifestWritten | ManifestNotWritten | ManifestInDoubt | FilesDeleted | FilesNotDeleted
)
FromLog = (
    EntryCreated | EntryTaken | EntryNotCreated | EntryInDoubt | NoSuccessorSeen | SuccessorUnknown
)
FromSinks = CommitConfirmed | CommitInDoubt | TransactionsResolved | TransactionsUnresolved
FromUsers = JobStarted | CancelRequested | CheckpointRequested | TimePassed
Internal = (
    StatusReported
    | RestartReported
    | RestorePointRequested
    | RestorePointReady
    | AttemptFailed
    | ProgressMade
    | StopConfirmed
)


def describe_event(event: Event, job: str) -> Line:
    match event:
        case SubtaskAcked() | SubtaskDeclined() | SubtaskProgressed():
            return _of_a_checkpoint(event, job)
        case _ if isinstance(event, FromSlot):
            return _from_a_slot(event, job)
        case _ if isinstance(event, FromOperator):
            return _from_an_operator(event)
        case _ if isinstance(event, FromStorage):
            return _from_storage(event)
        case _ if isinstance(event, FromLog):
            return _from_the_log(event)
        case _ if isinstance(event, FromSinks):
            return _from_sinks(event)
        case _ if isinstance(event, FromUsers):
            return _from_people(event, job)
        case _:
            return _from_within(event, job)


def _of_a_checkpoint(event: FromCheckpoint, job: str) -> Line:
    match event:
        case SubtaskAcked(_, checkpoint, subtask, snapshot, timings):
            text = (
                f"Received acknowledge message for checkpoint {checkpoint} from task {subtask} "
                f"of job {job} ({snapshot.bytes} bytes, startDelay={timings.start_delay_ms} ms, "
                f"alignment={timings.alignment_ms} ms, sync={timings.sync_ms} ms, "
                f"async={timings.async_ms} ms)."
            )
            return Line(Level.DEBUG, text)
        case SubtaskDeclined(_, checkpoint, subtask, reason, cause):
            why = f"{reason.name}: {cause}" if cause else reason.name
            text = f"Decline checkpoint {checkpoint} by task {subtask} of job {job} ({why})."
            return Line(Level.INFO, text)
        case SubtaskProgressed(_, checkpoint, subtask, phase):
            return Line(Level.DEBUG, f"Task {subtask} is {phase} at checkpoint {checkpoint}.")
        case _:
            assert_never(event)


def _from_a_slot(event: FromSlot, job: str) -> Line:
    match event:
        case SlotRegistered(slot, executor):
            return Line(Level.INFO, f"Slot {slot} on {executor} registered.")
        case SlotLost(slot):
            return Line(Level.WARNING, f"Slot {slot} was lost.")
        case SubtaskRunning(attempt, subtask):
            return Line(Level.INFO, f"Task {subtask} of job {job} runs in attempt {attempt}.")
        case SubtaskFinished(attempt, subtask):
            text = f"Task {subtask} of job {job} has finished in attempt {attempt}."
            return Line(Level.INFO, text)
        case SubtaskFailed(attempt, subtask, cause):
            text = f"Task {subtask} of job {job} failed in attempt {attempt}: {cause}."
            return Line(Level.WARNING, text)
        case EndOfDataReached(_, subtask):
            return Line(Level.DEBUG, f"Task {subtask} has reached the end of its data.")
        case SplitWanted(_, subtask):
            return Line(Level.DEBUG, f"Task {subtask} requests a split.")
        case _:
            assert_never(event)


def _from_an_operator(event: FromOperator) -> Line:
    if isinstance(event, CoordinatorHealth):
        return _of_a_coordinator(event)
    match event:
        case SplitsFound(operator, splits, _, is_final):
            end = ", and there will be no more" if is_final else ""
            return Line(Level.DEBUG, f"{operator} has found {len(splits)} splits{end}.")
        case OperatorEventSent(operator, subtask):
            return Line(Level.DEBUG, f"{operator} has a message for task {subtask}.")
        case OperatorSnapshotted(checkpoint, operator):
            return Line(
                Level.DEBUG,
                f"{operator} has snapshotted its coordinator for checkpoint {checkpoint}.",
            )
        case OperatorNotSnapshotted(checkpoint, operator, cause):
            failed = f"{operator} could not snapshot its coordinator for checkpoint {checkpoint}"
            text = f"{failed}: {cause}."
            return Line(Level.WARNING, text)
        case LocationPrepared(checkpoint):
            return Line(Level.DEBUG, f"The location of savepoint {checkpoint} is ready.")
        case LocationNotPrepared(checkpoint, cause):
            text = f"The location of savepoint {checkpoint} could not be created: {cause}."
            return Line(Level.WARNING, text)
        case _:
            assert_never(event)


def _of_a_coordinator(event: CoordinatorHealth) -> Line:
    if isinstance(event, OperatorCoordinatorFailed):
        return Line(Level.WARNING, f"{event.operator} failed in the driver: {event.why}.")
    return Line(Level.INFO, f"{event.operator} works again in the driver.")


def _from_storage(event: FromStorage) -> Line:
    match event:
        case ManifestWritten(checkpoint):
            return Line(Level.DEBUG, f"The manifest of checkpoint {checkpoint} is durable.")
        case ManifestNotWritten(checkpoint, cause):
            text = f"The manifest of checkpoint {checkpoint} was not written: {cause}."
            return Line(Level.DEBUG, text)  # the abort is a warning, with the same cause
        case ManifestInDoubt(checkpoint):
            text = f"It is unknown whether the manifest of checkpoint {checkpoint} was written."
            return Line(Level.WARNING, text)
        case FilesDeleted(operation):
            return Line(Level.DEBUG, f"Deletion {operation} is done.")
        case FilesNotDeleted(operation):
            return Line(Level.WARNING, f"Deletion {operation} failed.")
        case _:
            assert_never(event)


def _from_the_log(event: FromLog) -> Line:
    match event:
        case EntryCreated(index):
            return Line(Level.DEBUG, f"Entry {index} of the log was created by this driver.")
        case EntryTaken(index):
            return Line(Level.WARNING, f"Entry {index} of the log was created by another driver.")
        case EntryNotCreated(index, cause):
            return Line(Level.WARNING, f"Entry {index} of the log was not created: {cause}.")
        case EntryInDoubt(index):
            text = f"It is unknown whether entry {index} of the log was created."
            return Line(Level.WARNING, text)
        case NoSuccessorSeen(index):
            return Line(Level.DEBUG, f"No other driver has taken entry {index} of the log.")
        case SuccessorUnknown(index):
            return Line(Level.WARNING, f"Entry {index} of the log could not be checked.")
        case _:
            assert_never(event)


def _from_sinks(event: FromSinks) -> Line:
    match event:
        case CommitConfirmed(sink, sequence):
            return Line(Level.DEBUG, f"{sink} has committed number {sequence}.")
        case CommitInDoubt(sink, sequence):
            text = f"It is unknown whether {sink} has committed number {sequence}."
            return Line(Level.WARNING, text)
        case TransactionsResolved(operation):
            return Line(Level.DEBUG, f"Resolution {operation} is done.")
        case TransactionsUnresolved(operation):
            return Line(Level.WARNING, f"Resolution {operation} failed.")
        case _:
            assert_never(event)


def _from_people(event: FromUsers, job: str) -> Line:
    match event:
        case JobStarted():
            return Line(Level.INFO, f"Job {job} may start.")
        case CancelRequested():
            return Line(Level.INFO, f"Job {job} is to be canceled.")
        case CheckpointRequested(request, kind):
            return Line(Level.INFO, f"Request {request} asks job {job} for a {kind}.")
        case TimePassed(now):
            return Line(Level.DEBUG, f"It is {now} ms.")
        case _:
            assert_never(event)


def _from_within(event: Internal, job: str) -> Line:
    """Events that the parts of the job master send to each other."""
    match event:
        case StatusReported(status):
            return Line(Level.DEBUG, f"Job {job} is {status}.")
        case RestartReported(subtasks, _, why):
            return Line(Level.DEBUG, f"Going down, because {why}: {listed(subtasks)}.")
        case RestorePointRequested(attempt, subtasks):
            return Line(Level.DEBUG, f"Attempt {attempt} of {listed(subtasks)} is about to start.")
        case RestorePointReady(attempt):
            return Line(Level.DEBUG, f"The restore point of attempt {attempt} is known.")
        case AttemptFailed(why):
            return Line(Level.DEBUG, f"The running attempt has failed: {why}.")
        case ProgressMade():
            return Line(Level.DEBUG, "Earlier failures no longer count.")
        case StopConfirmed():
            return Line(Level.DEBUG, f"The savepoint that job {job} ends with is complete.")
        case _:
            assert_never(event)
