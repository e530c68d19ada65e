"""How each decision reads in the job's log."""

from dataclasses import replace
from typing import get_args

import pytest

from coordinated_job import (
    CHECKPOINT,
    EVERYONE,
    FIRST,
    READ,
    READ_0,
    SAVEPOINT,
    SUM_0,
    SUM_1,
    WRITE,
    WRITE_0,
    a_manifest,
    a_running_job,
    a_transaction,
    only,
)
from weir.core.action_log import SHOWN, Level, Line, describe_action, describe_placements, listed
from weir.core.attempt import RecycleSlot, ReportRestart, ReportStatus, ResetSubtasks
from weir.core.barriers import AlignmentType, Barrier
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
    RestoreNothing,
    SendToSubtask,
    SnapshotOperators,
    Trigger,
    TruncateLog,
    WriteManifest,
)
from weir.core.enumerator import AssignSplit, NoMoreSplits, NoSplitsYet
from weir.core.job_master import Action, Launch
from weir.core.lifecycle import JobStatus
from weir.core.log_entries import CheckpointLogged, EpochTaken, IdsReserved, JobClosed
from weir.core.policy import Policy
from weir.core.reasons import Reason
from weir.core.rescale import StateAssignment
from weir.core.snapshots import Commit

DEBUG, INFO, WARNING = Level.DEBUG, Level.INFO, Level.WARNING
EXPIRED = Reason.CHECKPOINT_EXPIRED
BARRIER = Barrier(7, CHECKPOINT, AlignmentType.ALIGNED, 100, "store/orders/chk-7")
SOURCE = ((READ_0, FIRST),)


def line_of(action):
    line = describe_action(action, "orders")
    return line.level, line.text


# A checkpoint's life


def test_the_trigger_is_logged_with_type_and_time():
    """C21: triggering."""
    assert line_of(ReportTriggered(7, SAVEPOINT, 100)) == (
        INFO,
        "Triggering checkpoint 7 (type=SAVEPOINT) @ 100 for job orders.",
    )


def test_the_completion_is_logged_with_bytes_duration_and_finalization_time():
    """C21: completed with bytes, duration and finalization time."""
    assert line_of(ReportCompleted(a_manifest(7), 120, 30)) == (
        INFO,
        (
            "Completed checkpoint 7 for job orders "
            "(40 bytes, checkpointDuration=120 ms, finalizationTime=30 ms)."
        ),
    )


def test_the_abort_is_logged_with_its_reason():
    """C21 C10: aborted with reason, louder when it counts against the job."""
    assert line_of(ReportAborted(7, EXPIRED, "it took too long")) == (
        WARNING,
        "Aborted checkpoint 7 for job orders (CHECKPOINT_EXPIRED): it took too long.",
    )
    assert (
        line_of(ReportAborted(7, Reason.CHECKPOINT_SUBSUMED, "a newer one was faster"))[0] is INFO
    )


def test_a_failed_trigger_is_logged_with_its_consecutive_failures():
    """C21 C10: there is no id to name."""
    assert line_of(ReportAborted(0, Reason.NOT_ALL_REQUIRED_TASKS_RUNNING, "sum-0 is down", 3)) == (
        INFO,
        (
            "Failed to trigger checkpoint for job orders (NOT_ALL_REQUIRED_TASKS_RUNNING): "
            "sum-0 is down. (3 consecutive failed attempts so far)"
        ),
    )


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_is_logged_with_its_name_and_its_message(reason):
    """C10: every end of a checkpoint carries one reason, and the log shows which."""
    level, text = line_of(ReportAborted(7, reason, "the message"))

    assert f"({reason.name}): the message." in text
    assert level is (WARNING if reason.counts else INFO)


def test_the_line_of_an_expired_checkpoint_names_the_slowest_subtask():
    """C10: all the way from the coordinator to the log."""
    story = a_running_job(Policy(timeout_ms=300))
    checkpoint = story.trigger()
    for subtask in (READ_0, SUM_0, WRITE_0):
        story.ack(checkpoint, subtask)

    _, text = line_of(only(ReportAborted, story.at(300)))

    assert text == (
        "Aborted checkpoint 1 for job orders (CHECKPOINT_EXPIRED): the checkpoint did not complete "
        "before its timeout; slowest subtask sum-1 is waiting for the barrier after 300 ms, "
        "3 of 4 acked with 30 bytes."
    )


# A restore


def restoring(restore):
    return Launch(FIRST, restore, ((READ_0, "a", StateAssignment(READ_0)),))


def test_a_restore_is_logged_to_the_letter():
    """C15: Restoring job J from Checkpoint N @ T located at P."""
    manifest = replace(a_manifest(7), taken_at=1234)

    assert line_of(restoring(RestoreManifest(manifest, since=0))) == (
        INFO,
        "Restoring job orders from Checkpoint 7 @ 1234 located at store/orders/chk-7",
    )


def test_a_restore_from_a_savepoint_says_so():
    """C15 C13: whichever it was."""
    _, text = line_of(restoring(RestoreManifest(a_manifest(7, SAVEPOINT), since=0)))

    assert text == "Restoring job orders from Savepoint 7 @ 0 located at store/orders/chk-7"


def test_a_start_from_nothing_is_logged_to_the_letter():
    """C15: No checkpoint found during restore."""
    assert line_of(restoring(RestoreNothing())) == (INFO, "No checkpoint found during restore.")


def test_the_placements_are_logged_on_a_separate_line():
    """C15: the line about the restore has its own wording."""
    assert describe_placements(restoring(RestoreNothing())) == Line(
        DEBUG, "Launching attempt 1: read-0 in slot a."
    )


# Everything else

ENTRIES = [
    (
        EpochTaken(2, "driver-b", "s", goes_on=True, restoring="", claims=False, ids_until=17),
        "driver-b begins epoch 2",
    ),
    (CheckpointLogged(1, "d", 7, CHECKPOINT, "m", 17), "checkpoint 7 is complete"),
    (IdsReserved(1, "d", 33), "ids below 33 are reserved"),
    (JobClosed(1, "d", JobStatus.FINISHED, retains=False, ids_until=33), "the job is finished"),
]
LINES = [
    (ReportTriggered(7, CHECKPOINT, 1), INFO, "Triggering checkpoint 7 (type=CHECKPOINT) @ 1 for "),
    (ReportCompleted(a_manifest(7), 1, 1), INFO, "Completed checkpoint 7 for job orders"),
    (ReportAborted(7, EXPIRED, "late"), WARNING, "Aborted checkpoint 7 for job orders"),
    (Trigger(BARRIER, SOURCE), DEBUG, "Sending the aligned barrier of checkpoint 7 to read-0."),
    (
        Trigger(replace(BARRIER, base=5), SOURCE),
        DEBUG,
        "Sending the aligned barrier of checkpoint 7 to read-0, building on checkpoint 5.",
    ),
    (NotifyAborted(7, SOURCE), DEBUG, "Notifying read-0 that checkpoint 7 is aborted."),
    (
        NotifyCompleted(7, CHECKPOINT, SOURCE, leaving=False),
        DEBUG,
        "Notifying read-0 that checkpoint 7 is complete.",
    ),
    (
        NotifyCompleted(7, CHECKPOINT, SOURCE, leaving=True),
        DEBUG,
        "Notifying read-0 that checkpoint 7 is complete and that they may finish.",
    ),
    (
        SendToSubtask(READ, SOURCE[0], AssignSplit("a")),
        DEBUG,
        "Sending split a from read to read-0.",
    ),
    (
        SendToSubtask(READ, SOURCE[0], NoSplitsYet()),
        DEBUG,
        "Sending the notice that there are no splits yet from read to read-0.",
    ),
    (
        SendToSubtask(READ, SOURCE[0], NoMoreSplits()),
        DEBUG,
        "Sending the notice that there are no more splits from read to read-0.",
    ),
    (
        SendToSubtask(READ, SOURCE[0], {"password": "hunter2"}),
        DEBUG,
        "Sending a message from read to read-0.",
    ),
    (
        SnapshotOperators(7, (READ, WRITE)),
        DEBUG,
        "Snapshotting the coordinators of read, write for checkpoint 7.",
    ),
    (PrepareLocation(7, "store/mine"), DEBUG, "Preparing store/mine for savepoint 7."),
    (
        WriteManifest(a_manifest(7)),
        DEBUG,
        "Writing the manifest of checkpoint 7 to store/orders/chk-7/_metadata.",
    ),
    *[(CreateEntry(4, entry), DEBUG, f"Creating entry 4 of the log: {t}.") for entry, t in ENTRIES],
    (
        LookForSuccessor(4),
        DEBUG,
        "Checking whether another driver has taken entry 4 of the log.",
    ),
    (TruncateLog(8), DEBUG, "Truncating the log below entry 8."),
    (DeleteFiles(3, ("a", "b")), DEBUG, "Deletion 3: a, b."),
    (
        CommitTransactions(2, Commit(WRITE, 5, (a_transaction(7),))),
        DEBUG,
        "Committing write-0@7 of write as number 5, epoch 2.",
    ),
    (
        ResolveTransactions(3, 2, (WRITE_0,), (a_transaction(7),)),
        DEBUG,
        "Resolution 3: aborting what write-0 left open but write-0@7.",
    ),
    (
        ResolveTransactions(3, 2, (WRITE_0,), ()),
        DEBUG,
        "Resolution 3: aborting what write-0 left open.",
    ),
    (
        CompleteRequest("ada", RequestSucceeded(7, "store/mine")),
        INFO,
        "Request ada succeeded: checkpoint 7 is at store/mine.",
    ),
    (
        CompleteRequest("ada", RequestFailed(EXPIRED, "it is late")),
        INFO,
        "Request ada failed: it is late.",
    ),
    (
        FailAttempt(EXPIRED, "3 failed"),
        DEBUG,
        "Giving up the running attempt of job orders (CHECKPOINT_EXPIRED).",
    ),
    (
        EndDriver(JobStatus.RUNNING, fenced=True),
        WARNING,
        "Job orders has another driver: leaving, touching nothing.",
    ),
    (EndDriver(JobStatus.FINISHED, fenced=False), INFO, "Job orders is over: finished."),
    (restoring(RestoreNothing()), INFO, "No checkpoint found during restore."),
    (ReportStatus(JobStatus.RUNNING, 0), INFO, "Job orders switched to state RUNNING."),
    (
        ReportStatus(JobStatus.WAITING_FOR_SLOTS, 2),
        INFO,
        "Job orders switched to state WAITING_FOR_SLOTS (missing slots: 2).",
    ),
    (ResetSubtasks("a", (SUM_0, SUM_1)), DEBUG, "Ending sum-0, sum-1 in slot a."),
    (RecycleSlot("a"), INFO, "Recycling slot a."),
    (
        ReportRestart(1, EVERYONE, whole_job=True, why="slot a was lost"),
        WARNING,
        "Restarting job orders: slot a was lost.",
    ),
    (
        ReportRestart(1, (SUM_0,), whole_job=False, why="slot a was lost"),
        WARNING,
        "Restarting sum-0 of job orders: slot a was lost.",
    ),
]


@pytest.mark.parametrize(("action", "level", "text"), LINES)
def test_every_action_has_a_line(action, level, text):
    """C21: the actions are the log; the messages of a user's operator are not logged."""
    found, said = line_of(action)

    assert found is level
    assert said.startswith(text)
    assert said.endswith(text) or isinstance(
        action, ReportTriggered | ReportCompleted | ReportAborted
    )


def test_no_action_is_without_an_example():
    """C21: a new action needs a log line."""
    assert {type(action) for action, _, _ in LINES} == set(get_args(Action))


def test_a_long_list_is_cut():
    """U3: a line is to be read."""
    assert listed(range(SHOWN + 3)).endswith(f", {SHOWN - 1} and 3 more")
    assert listed([]) == "none"
