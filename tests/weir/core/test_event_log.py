"""The log line of each event of the driver."""

from typing import get_args

import pytest

from coordinated_job import (
    EVERYONE,
    FIRST,
    READ,
    READ_0,
    SAVEPOINT,
    SUM_0,
    WRITE,
    a_snapshot,
)
from weir.core.action_log import Level
from weir.core.attempt import (
    AttemptFailed,
    CancelRequested,
    FailureCause,
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
    Phase,
    RestartReported,
    RestorePointRequested,
    StatusReported,
    SubtaskAcked,
    SubtaskDeclined,
    SubtaskProgressed,
    SuccessorUnknown,
    Timings,
    TransactionsResolved,
    TransactionsUnresolved,
)
from weir.core.event_log import describe_event
from weir.core.job_master import (
    Event,
    OperatorCoordinatorFailed,
    OperatorCoordinatorRecovered,
    SplitsFound,
    SplitWanted,
)
from weir.core.lifecycle import (
    JobStatus,
    ProgressMade,
    SubtaskFinished,
    SubtaskRunning,
    TimePassed,
)
from weir.core.reasons import Reason

DEBUG, INFO, WARNING = Level.DEBUG, Level.INFO, Level.WARNING
DECLINED = Reason.CHECKPOINT_DECLINED


def test_each_ack_is_logged_with_its_bytes_and_times():
    """C21: each ack, at DEBUG."""
    line = describe_event(
        SubtaskAcked(FIRST, 7, SUM_0, a_snapshot(7, SUM_0), Timings(1, 20, 3, 400)), "orders"
    )

    assert line.level is DEBUG
    assert line.text == (
        "Received acknowledge message for checkpoint 7 from task sum-0 of job orders "
        "(10 bytes, startDelay=1 ms, alignment=20 ms, sync=3 ms, async=400 ms)."
    )


def test_each_decline_is_logged_with_its_reason_and_cause():
    """C21 C10: at INFO, for it ends the checkpoint."""
    line = describe_event(SubtaskDeclined(FIRST, 7, SUM_0, DECLINED, "disk full"), "orders")

    assert line.level is INFO
    assert line.text == (
        "Decline checkpoint 7 by task sum-0 of job orders (CHECKPOINT_DECLINED: disk full)."
    )


LINES = [
    (
        SubtaskAcked(FIRST, 7, SUM_0, a_snapshot(7, SUM_0)),
        DEBUG,
        (
            "Received acknowledge message for checkpoint 7 from task sum-0 of job orders "
            "(10 bytes, startDelay=0 ms, alignment=0 ms, sync=0 ms, async=0 ms)."
        ),
    ),
    (
        SubtaskDeclined(FIRST, 7, SUM_0, DECLINED),
        INFO,
        "Decline checkpoint 7 by task sum-0 of job orders (CHECKPOINT_DECLINED).",
    ),
    (
        SubtaskProgressed(FIRST, 7, SUM_0, Phase.ALIGNING),
        DEBUG,
        "Task sum-0 is aligning at checkpoint 7.",
    ),
    (
        OperatorCoordinatorFailed("read", "OSError: no such topic", "OSError"),
        WARNING,
        "read failed in the driver: OSError: no such topic.",
    ),
    (OperatorCoordinatorRecovered("read"), INFO, "read works again in the driver."),
    (ProgressMade(), DEBUG, "Earlier failures no longer count."),
    (SlotRegistered("a", "e1"), INFO, "Slot a on e1 registered."),
    (SlotLost("a", 0.5), WARNING, "Slot a was lost."),
    (SubtaskRunning(FIRST, SUM_0), INFO, "Task sum-0 of job orders runs in attempt 1."),
    (SubtaskFinished(FIRST, SUM_0), INFO, "Task sum-0 of job orders has finished in attempt 1."),
    (
        SubtaskFailed(FIRST, SUM_0, FailureCause.USER_CODE, 0.5),
        WARNING,
        "Task sum-0 of job orders failed in attempt 1: user code failed.",
    ),
    (EndOfDataReached(FIRST, SUM_0), DEBUG, "Task sum-0 has reached the end of its data."),
    (SplitWanted(FIRST, READ_0), DEBUG, "Task read-0 requests a split."),
    (SplitsFound(READ, ("a", "b"), "b", False), DEBUG, "read has found 2 splits."),  # noqa: FBT003
    (OperatorEventSent(READ, READ_0, "secret"), DEBUG, "read has a message for task read-0."),
    (
        OperatorSnapshotted(7, READ, "secret"),
        DEBUG,
        "read has snapshotted its coordinator for checkpoint 7.",
    ),
    (
        OperatorNotSnapshotted(7, WRITE, "the hook raised"),
        WARNING,
        "write could not snapshot its coordinator for checkpoint 7: the hook raised.",
    ),
    (LocationPrepared(7), DEBUG, "The location of savepoint 7 is ready."),
    (
        LocationNotPrepared(7, "permission denied"),
        WARNING,
        "The location of savepoint 7 could not be created: permission denied.",
    ),
    (ManifestWritten(7), DEBUG, "The manifest of checkpoint 7 is durable."),
    (
        ManifestNotWritten(7, "full"),
        DEBUG,
        "The manifest of checkpoint 7 was not written: full.",
    ),
    (
        ManifestInDoubt(7),
        WARNING,
        "It is unknown whether the manifest of checkpoint 7 was written.",
    ),
    (FilesDeleted(3), DEBUG, "Deletion 3 is done."),
    (FilesNotDeleted(3), WARNING, "Deletion 3 failed."),
    (EntryCreated(4), DEBUG, "Entry 4 of the log was created by this driver."),
    (EntryTaken(4), WARNING, "Entry 4 of the log was created by another driver."),
    (EntryNotCreated(4, "full"), WARNING, "Entry 4 of the log was not created: full."),
    (EntryInDoubt(4), WARNING, "It is unknown whether entry 4 of the log was created."),
    (NoSuccessorSeen(4), DEBUG, "No other driver has taken entry 4 of the log."),
    (SuccessorUnknown(4), WARNING, "Entry 4 of the log could not be checked."),
    (CommitConfirmed(WRITE, 5), DEBUG, "write has committed number 5."),
    (CommitInDoubt(WRITE, 5), WARNING, "It is unknown whether write has committed number 5."),
    (TransactionsResolved(3), DEBUG, "Resolution 3 is done."),
    (TransactionsUnresolved(3), WARNING, "Resolution 3 failed."),
    (JobStarted(), INFO, "Job orders may start."),
    (CancelRequested(), INFO, "Job orders is to be canceled."),
    (CheckpointRequested("ada", SAVEPOINT), INFO, "Request ada asks job orders for a savepoint."),
    (TimePassed(100), DEBUG, "It is 100 ms."),
    (StatusReported(JobStatus.RUNNING, 0.5), DEBUG, "Job orders is running."),
    (
        RestartReported((SUM_0,), whole_job=False, why="it burns"),
        DEBUG,
        "Going down, because it burns: sum-0.",
    ),
    (
        RestorePointRequested(2, EVERYONE),
        DEBUG,
        "Attempt 2 of read-0, sum-0, sum-1, write-0 is about to start.",
    ),
    (RestorePointReady(2), DEBUG, "The restore point of attempt 2 is known."),
    (AttemptFailed("3 failed", 0.5), DEBUG, "The running attempt has failed: 3 failed."),
    (StopConfirmed(), DEBUG, "The savepoint that job orders ends with is complete."),
]


@pytest.mark.parametrize(("event", "level", "text"), LINES)
def test_every_event_has_a_line(event, level, text):
    """C21: the events explain the actions; user state and messages are not logged."""
    line = describe_event(event, "orders")

    assert (line.level, line.text) == (level, text)


def test_no_event_is_without_an_example():
    """C21: a new event needs a log line."""
    assert {type(event) for event, _, _ in LINES} == set(get_args(Event))
