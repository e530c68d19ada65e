"""Of two drivers of one job one completes checkpoints, and the other stops and touches nothing."""

from coordinated_job import (
    EVERYONE,
    SAVEPOINT,
    SUM_0,
    SUM_1,
    USUAL,
    Files,
    a_running_job,
    each,
    only,
)
from weir.core.coordinator import next_deadline
from weir.core.coordinator.actions import (
    CommitTransactions,
    CompleteRequest,
    CreateEntry,
    DeleteFiles,
    EndDriver,
    LookForSuccessor,
    NotifyCompleted,
    OfferRestorePoint,
    ReportAborted,
)
from weir.core.coordinator.coordinator_state import Terminated
from weir.core.coordinator.events import (
    EntryCreated,
    EntryInDoubt,
    EntryNotCreated,
    EntryTaken,
    NoSuccessorSeen,
    RestorePointRequested,
    SuccessorUnknown,
)
from weir.core.lifecycle import JobStatus
from weir.core.policy import Policy
from weir.core.reasons import Reason


def taken(story):
    return story.hear(EntryTaken(story.state.log.index))


def a_job_that_lost_its_race(policy=USUAL, name=""):
    """Another driver consumed the entry that this one needed."""
    story = a_running_job(policy)
    story.checkpoint()
    checkpoint = story.trigger(name=name)
    story.ack(checkpoint, SUM_0, Files(own=("own",), shared=("shared",)))
    story.ack_rest(checkpoint)
    story.written(checkpoint)
    return story


def test_the_loser_completes_nothing():
    """C17: two drivers of one job can never both complete a checkpoint."""
    story = a_job_that_lost_its_race()

    said = taken(story)

    assert [w for w in said if isinstance(w, NotifyCompleted | CommitTransactions)] == []
    assert only(ReportAborted, said).reason is Reason.CHECKPOINT_COORDINATOR_SHUTDOWN
    assert "another driver has taken the job over" in only(ReportAborted, said).message


def test_the_loser_stops_by_itself():
    """C17: the loser stops by itself."""
    story = a_job_that_lost_its_race()

    assert only(EndDriver, taken(story)) == EndDriver(JobStatus.RUNNING, fenced=True)
    assert story.state.stage == Terminated(fenced=True)


def test_the_loser_deletes_nothing():
    """C17: and deletes nothing: its successor may own every file that it knows."""
    story = a_job_that_lost_its_race(Policy(retained=1, incremental=True))

    said = taken(story)
    said += [*story.ack(2, SUM_0), *story.at(10_000_000), *story.status(JobStatus.CANCELED)]

    assert each(DeleteFiles, said) == []


def test_the_loser_does_nothing_ever_again():
    """C17: however long one was paused and wherever it wakes up."""
    story = a_job_that_lost_its_race(Policy(interval_ms=10))
    taken(story)

    said = [*story.logged(), *story.at(10_000), *story.ask(), *story.ack(2, SUM_1)]
    said += [*story.restore(), *story.status(JobStatus.RUNNING)]

    assert said == []
    assert next_deadline(story.state) is None


def test_every_request_of_a_fenced_driver_fails():
    """C17: every request is answered, pending and queued ones alike."""
    story = a_job_that_lost_its_race(name="ada")
    story.ask(name="bob")

    answers = each(CompleteRequest, taken(story))

    assert [answer.request for answer in answers] == ["ada", "bob"]
    assert {answer.outcome.reason for answer in answers} == {Reason.CHECKPOINT_COORDINATOR_SHUTDOWN}


def test_a_lost_periodic_checkpoint_completes_no_request():
    """C17: no user requested it."""
    story = a_running_job(Policy(interval_ms=100))
    story.at(50)
    story.ack_rest(1)
    story.written(1)

    assert each(CompleteRequest, taken(story)) == []


def test_an_entry_in_doubt_that_turns_out_to_be_another_s_fences_too():
    """C17 C18: our own try may have failed while the answer was lost."""
    story = a_job_that_lost_its_race()
    story.hear(EntryInDoubt(story.state.log.index))
    assert each(CreateEntry, story.later(200)) != []

    assert only(EndDriver, taken(story)).fenced


def test_an_answer_about_another_entry_fences_no_driver():
    """C17: a stale answer is about a number that was decided before."""
    story = a_job_that_lost_its_race()

    stale = (EntryTaken(1), EntryCreated(1), EntryNotCreated(1, "late"), EntryInDoubt(1))

    assert story.hear(*stale) == []
    assert story.complete(2) != []


# Before a restart


def test_a_restart_looks_first_whether_the_job_is_still_ours():
    """C17: a zombie must not bring old subtasks to life next to its successor's."""
    story = a_running_job()
    story.checkpoint()
    story.down(*EVERYONE)

    assert story.hear(RestorePointRequested(2, EVERYONE)) == [LookForSuccessor(2)]


def test_a_restart_whose_job_was_taken_over_does_not_happen():
    """C17: the loser stops by itself."""
    story = a_running_job()
    story.down(*EVERYONE)
    story.hear(RestorePointRequested(2, EVERYONE))

    said = taken(story)

    assert only(EndDriver, said).fenced
    assert each(OfferRestorePoint, said) == []


def test_a_log_that_cannot_be_read_is_looked_at_again():
    """C17 C18: not to know is not to be free to go on."""
    story = a_running_job()
    story.down(*EVERYONE)
    story.hear(RestorePointRequested(2, EVERYONE))

    assert story.hear(SuccessorUnknown(1)) == []
    assert story.later(200) == [LookForSuccessor(1)]
    assert each(OfferRestorePoint, story.hear(NoSuccessorSeen(1))) != []


def test_a_savepoint_needs_the_log_as_much_as_a_checkpoint():
    """C17: a zombie completes no savepoint either."""
    story = a_running_job()
    savepoint = story.trigger(SAVEPOINT, name="ada")
    story.ack_rest(savepoint)
    story.written(savepoint)

    assert (
        only(CompleteRequest, taken(story)).outcome.reason is Reason.CHECKPOINT_COORDINATOR_SHUTDOWN
    )
