"""How a job ends: writes finish, commits are confirmed, nothing dangles, then the log is closed."""

import pytest

from coordinated_job import (
    EVERYONE,
    READ,
    STOP,
    SUM_0,
    USUAL,
    WRITE,
    WRITE_0,
    a_manifest,
    a_running_job,
    a_topology,
    an_epoch,
    each,
    only,
    usual_path,
)
from weir.core.coordinator.actions import (
    CommitTransactions,
    CompleteRequest,
    CreateEntry,
    DeleteFiles,
    EndDriver,
    ReportAborted,
    ResolveTransactions,
    WriteManifest,
)
from weir.core.coordinator.coordinator_state import Unclaimed
from weir.core.coordinator.events import (
    CommitConfirmed,
    EntryInDoubt,
    EntryNotCreated,
    EntryTaken,
    FilesDeleted,
    RestorePointRequested,
    SuccessorUnknown,
    TransactionsResolved,
    TransactionsUnresolved,
)
from weir.core.lifecycle import JobStatus
from weir.core.log_entries import JobClosed
from weir.core.policy import Policy, Retention
from weir.core.reasons import Reason

FINISHED, STOPPED, CANCELED, FAILED = (
    JobStatus.FINISHED,
    JobStatus.STOPPED,
    JobStatus.CANCELED,
    JobStatus.FAILED,
)
ENDS = [FINISHED, STOPPED, CANCELED, FAILED]


def resolved(story):
    return story.hear(*(TransactionsResolved(r.operation) for r in story.state.commits.resolving))


def closed(status, policy=USUAL):
    """A job with two completed checkpoints ends; what the log's last entry leads to."""
    story = a_running_job(policy)
    story.checkpoint()
    story.checkpoint()
    story.status(status)
    resolved(story)
    return story, story.logged()


# In order


@pytest.mark.parametrize("status", ENDS)
def test_a_job_ends_by_closing_its_log(status):
    """C12 C17: the last entry records the status, so that a later driver finds no work."""
    story = a_running_job()
    story.status(status)

    entry = JobClosed(1, "driver-a", status, retains=status is not FINISHED, ids_until=1000)
    assert resolved(story) == [CreateEntry(1, entry)]
    assert story.logged() == [EndDriver(status, fenced=False)]


@pytest.mark.parametrize("status", ENDS)
def test_what_is_pending_or_queued_ends_with_the_job(status):
    """C9: CHECKPOINT_COORDINATOR_SHUTDOWN, and the request is answered."""
    story = a_running_job(Policy(unaligned=True))
    checkpoint = story.trigger(name="ada")
    story.ack(checkpoint, SUM_0)
    story.ask(STOP, name="bob")

    said = story.status(status)

    shutdown = Reason.CHECKPOINT_COORDINATOR_SHUTDOWN
    assert [report.reason for report in each(ReportAborted, said)] == [shutdown, shutdown]
    assert [answer.request for answer in each(CompleteRequest, said)] == ["ada", "bob"]
    assert only(DeleteFiles, said).paths == (usual_path(checkpoint, SUM_0),)


def test_a_checkpoint_that_is_being_written_is_brought_to_its_end():
    """C8 R6: its entry may exist, and then its output must be committed."""
    story = a_running_job()
    checkpoint = story.trigger()
    story.ack_rest(checkpoint)

    assert story.status(FINISHED) == []
    assert only(CommitTransactions, story.complete(checkpoint)).commit.sequence == 1


def test_the_job_is_not_over_before_every_commit_is_confirmed():
    """R6 R5: a bounded job ends with every result committed."""
    story = a_running_job()
    story.complete(story.trigger())

    assert story.status(FINISHED) == []
    assert each(ResolveTransactions, story.hear(CommitConfirmed(WRITE, 1))) != []


def test_what_will_never_be_committed_is_aborted_before_the_log_is_closed():
    """R5: transactions are committed or aborted, never left dangling, of whatever attempt."""
    story = a_running_job()

    resolve = only(ResolveTransactions, story.status(CANCELED))

    assert resolve.subtasks == (WRITE_0,)
    assert resolve.attempt > 1_000_000
    assert resolve.keep == ()
    assert each(CreateEntry, story.hear(TransactionsUnresolved(resolve.operation))) == []
    assert story.later(200) == [resolve]


def test_a_request_after_the_end_is_refused():
    """C5 C10: CHECKPOINT_COORDINATOR_SHUTDOWN."""
    story = a_running_job()
    story.status(CANCELED)

    answer = only(CompleteRequest, story.ask(name="ada"))

    assert answer.outcome.reason is Reason.CHECKPOINT_COORDINATOR_SHUTDOWN


def test_no_restart_is_offered_after_the_end():
    """C12: an end is an end."""
    story = a_running_job()
    story.status(CANCELED)

    assert story.restore() == []


def test_a_driver_that_ends_no_longer_looks_for_a_successor():
    """C17: it would find its own last entry there, and take it for another's."""
    story = a_running_job()
    story.hear(RestorePointRequested(2, EVERYONE), SuccessorUnknown(1))
    story.status(CANCELED)

    assert story.later(200) == []


def test_a_second_end_changes_nothing():
    """C12: it ended as it ended first."""
    story = a_running_job()
    story.status(FINISHED)

    assert story.status(CANCELED) == []
    assert only(CreateEntry, resolved(story)).entry.status is FINISHED


@pytest.mark.parametrize("trouble", [EntryInDoubt(1), EntryNotCreated(1, "no connection")])
def test_the_last_entry_is_tried_until_it_is_there(trouble):
    """C18: a job that is over must be known to be."""
    story = a_running_job()
    story.status(CANCELED)
    resolved(story)

    assert story.hear(trouble) == []
    assert isinstance(only(CreateEntry, story.later(200)).entry, JobClosed)


def test_a_driver_that_loses_the_race_for_the_last_entry_deletes_nothing():
    """C17 C12: another driver has the job, and may be running it from there."""
    story = a_running_job(Policy(retention=Retention.NEVER_RETAIN_AFTER_TERMINATION))
    story.checkpoint()
    story.status(CANCELED)
    resolved(story)

    said = story.hear(EntryTaken(2))

    assert said == [EndDriver(CANCELED, fenced=True)]


# What is kept

ALL_FILES = [
    f"store/orders/chk-{checkpoint}/{name}"
    for checkpoint in (1, 2)
    for name in (*EVERYONE, "_metadata")
]


@pytest.mark.parametrize("retention", Retention)
@pytest.mark.parametrize("status", ENDS)
@pytest.mark.parametrize("managed", [True, False])
def test_the_retained_checkpoints_stay_or_go_as_the_retention_says(retention, status, managed):
    """C12 C13: a discard decision for each of finished, cancelled, failed, suspended."""
    _, said = closed(status, Policy(retention=retention, managed=managed))

    spared = managed and status in (CANCELED, STOPPED)
    doomed = {
        Retention.RETAIN_ON_CANCELLATION: [FINISHED],
        Retention.RETAIN_ON_FAILURE: [FINISHED, CANCELED, STOPPED],
        Retention.NEVER_RETAIN_AFTER_TERMINATION: ENDS,
    }[retention]
    paths = [path for deletion in each(DeleteFiles, said) for path in deletion.paths]
    assert paths == (ALL_FILES if status in doomed and not spared else [])


def test_nothing_is_deleted_before_the_log_is_closed():
    """C12 C17: until then another driver may go on with the job."""
    story = a_running_job(Policy(retention=Retention.NEVER_RETAIN_AFTER_TERMINATION))
    story.checkpoint()

    said = [*story.status(CANCELED), *resolved(story)]

    assert each(DeleteFiles, said) == []


def test_the_driver_leaves_when_the_deletions_are_done():
    """C12: what is half deleted would stay for ever."""
    story, said = closed(FINISHED)
    tickets = [deletion.operation for deletion in each(DeleteFiles, said)]

    assert each(EndDriver, said) == []
    assert story.hear(FilesDeleted(tickets[0])) == []
    assert story.hear(FilesDeleted(tickets[1])) == [EndDriver(FINISHED, fenced=False)]


@pytest.mark.parametrize(
    "fault", [JobStatus.RESTARTING, JobStatus.WAITING_FOR_SLOTS, JobStatus.DEPLOYING]
)
def test_a_fault_is_not_a_cancellation(fault):
    """C12: SIGTERM, eviction and shutdown are faults: nothing is deleted, nothing is closed."""
    story = a_running_job(Policy(retention=Retention.NEVER_RETAIN_AFTER_TERMINATION))
    story.checkpoint()

    said = [*story.down(*EVERYONE), *story.status(fault)]

    assert [word for word in said if isinstance(word, DeleteFiles | CreateEntry | EndDriver)] == []
    assert [completed.checkpoint for completed in story.state.checkpoints.completed] == [1]


def test_a_borrowed_beginning_outlives_the_job():
    """C16 C12: regardless of the retention."""
    policy = Policy(retention=Retention.NEVER_RETAIN_AFTER_TERMINATION)
    story = a_running_job(policy, epoch=an_epoch(start=Unclaimed(a_manifest(9)), next_id=17))
    story.tidy_up()
    story.status(CANCELED)
    resolved(story)

    assert story.logged() == [EndDriver(CANCELED, fenced=False)]


def test_a_manifest_is_not_written_for_a_job_that_is_over():
    """C9: what had all its acks but was still waiting to be written ends too."""
    story = a_running_job(Policy(max_concurrent=2), a_topology(coordinated=(READ,)))
    first, second = story.trigger(), story.trigger()
    story.ack_rest(first)
    story.ack_rest(second)

    assert only(ReportAborted, story.status(CANCELED)).checkpoint == second
    assert each(WriteManifest, story.complete(first)) == []
