"""Deletions that storage refuses: tried again, put off, taken up, and given up in the end."""

import pytest

from coordinated_job import (
    EVERYONE,
    SAVEPOINT,
    SUM_0,
    SUM_1,
    Files,
    a_manifest,
    a_running_job,
    a_snapshot,
    an_epoch,
    each,
    only,
    usual_path,
)
from weir.core.coordinator import deletion as deletion_module
from weir.core.coordinator.actions import CreateEntry, DeleteFiles, EndDriver, Trigger
from weir.core.coordinator.deletion import DELETE_TRIES
from weir.core.coordinator.events import (
    CommitConfirmed,
    EntryTaken,
    FilesDeleted,
    FilesNotDeleted,
    TransactionsResolved,
)
from weir.core.lifecycle import JobStatus
from weir.core.policy import Policy

ONE = Policy(retained=1, tolerable_failures=9)


def refused(story, deletion):
    """Storage refuses every deletion; returns the actions meanwhile."""
    said = []
    for _ in range(DELETE_TRIES):
        said += story.hear(FilesNotDeleted(deletion.operation))
        said += story.later(200)
    return said


def completed(story):
    """The next checkpoint completes and its sinks commit; the deletions that follow from it."""
    said = story.complete(story.trigger())
    for sink in sorted(story.state.commits.ledgers):
        for commit in story.state.commits.ledgers[sink].unconfirmed:
            story.hear(CommitConfirmed(sink, commit.sequence))
    return each(DeleteFiles, said)


def a_job_that_put_off(count=1, policy=ONE):
    """So many checkpoints were subsumed, and none of them could be deleted."""
    story = a_running_job(policy)
    completed(story)
    doomed = []
    for _ in range(count):
        fresh, *again = completed(story)
        refused(story, fresh)
        story.hear(*(FilesNotDeleted(deletion.operation) for deletion in again))
        doomed.append(fresh)
    return story, doomed


def closed(story):
    """The job ends; what follows from the log's last entry."""
    story.status(JobStatus.CANCELED)
    story.hear(*(TransactionsResolved(r.operation) for r in story.state.commits.resolving))
    return story.logged()


def paths(deletions):
    return [path for deletion in deletions for path in deletion.paths]


# Tried again


def test_a_deletion_that_failed_is_tried_again():
    """C12: no unreferenced file stays."""
    story = a_running_job(ONE)
    completed(story)
    (deletion,) = completed(story)

    assert story.hear(FilesNotDeleted(deletion.operation)) == []
    assert each(DeleteFiles, story.later(200)) == [deletion]


def test_an_answer_about_a_deletion_that_is_over_changes_nothing():
    """C12: a repeated answer changes nothing."""
    story = a_running_job(ONE)
    completed(story)
    (deletion,) = completed(story)
    story.hear(FilesDeleted(deletion.operation))
    before = story.state

    assert story.hear(FilesDeleted(deletion.operation), FilesNotDeleted(deletion.operation)) == []
    assert story.state == before


# Put off


def test_a_deletion_that_keeps_failing_holds_nothing_up():
    """C5: neither checkpoints nor the clock wait for it any longer."""
    story, _ = a_job_that_put_off(3)

    assert story.state.cleanup.deletions == ()
    assert each(DeleteFiles, story.later(60_000)) == []
    assert only(Trigger, story.start())


def test_what_was_put_off_is_tried_again_when_the_next_checkpoint_is_complete():
    """S4 C12: no unreferenced file stays, however long storage refused."""
    story, (doomed,) = a_job_that_put_off()

    fresh, again = completed(story)

    assert again == doomed
    assert fresh.paths == (*(usual_path(2, s) for s in EVERYONE), "store/orders/chk-2/_metadata")


def test_a_savepoint_that_completes_is_as_good_an_occasion():
    """S4: it proves as well as any that this driver owns the job."""
    story, (doomed,) = a_job_that_put_off()

    assert each(DeleteFiles, story.complete(story.trigger(SAVEPOINT))) == [doomed]


def test_files_of_an_aborted_checkpoint_are_not_forgotten_either():
    """C9 S4: its own and the shared ones that no checkpoint took."""
    story = a_running_job(Policy(tolerable_failures=9, incremental=True))
    checkpoint = story.trigger()
    shared = "store/orders/shared/sum-0"
    story.ack(checkpoint, SUM_0, Files(own=(usual_path(1, SUM_0),), shared=(shared,)))
    deletion = only(DeleteFiles, story.decline(checkpoint, SUM_1))
    refused(story, deletion)

    assert completed(story) == [deletion]
    assert paths([deletion]) == [usual_path(1, SUM_0), shared]


def test_a_deletion_is_taken_up_for_one_try_at_a_time():
    """C5: where nothing can be deleted, each checkpoint costs one request."""
    story, (doomed,) = a_job_that_put_off()
    fresh, again = completed(story)
    story.hear(FilesDeleted(fresh.operation))

    assert again == doomed
    assert story.hear(FilesNotDeleted(again.operation)) == []
    assert each(DeleteFiles, story.later(60_000)) == []
    assert completed(story)[-1] == doomed


def test_one_that_succeeds_brings_the_next():
    """S4: storage deletes again, and what it refused is gone at once."""
    story, (first, second, third) = a_job_that_put_off(3)
    before = [deletion.operation for deletion in story.state.cleanup.deferred]

    taken_up = completed(story)[-1]
    said = [taken_up]
    while story.state.cleanup.deferred:
        (following,) = story.hear(FilesDeleted(said[-1].operation))
        said.append(following)

    assert [deletion.operation for deletion in said] == before
    assert sorted(paths(said)) == sorted(paths([first, second, third]))


def test_one_that_fails_again_lets_the_others_go_first():
    """S4: a file that can never be deleted keeps no other."""
    story, _ = a_job_that_put_off(2)
    first, second = story.state.cleanup.deferred
    stuck = completed(story)[-1]
    story.hear(FilesNotDeleted(stuck.operation))

    assert stuck.operation == first.operation
    assert [deletion.operation for deletion in story.state.cleanup.deferred] == [
        second.operation,
        first.operation,
    ]


# What is not put off


def test_a_place_that_people_chose_is_theirs_again():
    """C12 S4: the next savepoint may be there when a deletion comes late."""
    story = a_running_job(ONE)
    story.ask(SAVEPOINT, location="store/orders/mine")
    story.prepare()
    story.ack(1, SUM_0, Files(own=("store/orders/mine/sum-0",)))
    refused(story, only(DeleteFiles, story.decline(1, SUM_1)))

    assert completed(story) == []


def test_a_claimed_savepoint_elsewhere_is_not_deleted_late():
    """C16: others may use the place again."""
    there = Files(own=("elsewhere/o",), shared=("elsewhere/s",))
    claimed = a_manifest(9, SAVEPOINT, snapshots=(a_snapshot(9, SUM_0, there),))
    story = a_running_job(ONE, epoch=an_epoch((4, claimed), next_id=17))
    (deletion,) = completed(story)
    refused(story, deletion)

    late = paths(completed(story))

    assert set(paths([deletion])) > set(there.own + there.shared)
    assert not set(late) & set(there.own + there.shared)


def test_no_more_is_put_off_than_a_driver_can_remember(monkeypatch):
    """S4 R7: the oldest is left to the garbage collector."""
    each_has = len(EVERYONE) + 1
    monkeypatch.setattr(deletion_module, "MOST_DEFERRED", 2 * each_has)
    story, doomed = a_job_that_put_off(3)

    kept = sorted(path for deletion in story.state.cleanup.deferred for path in deletion.paths)

    assert len(kept) == 2 * each_has
    assert set(kept) < set(paths(doomed))


# The end


def test_the_end_of_the_job_takes_up_all_that_was_put_off():
    """S4 C12: the driver stays until it is gone."""
    story, doomed = a_job_that_put_off(2)

    deletion = only(DeleteFiles, closed(story))

    assert sorted(deletion.paths) == sorted(paths(doomed))
    assert story.hear(FilesDeleted(deletion.operation)) == [
        EndDriver(JobStatus.CANCELED, fenced=False)
    ]


def test_a_deletion_under_way_gets_its_tries_anew_when_the_job_ends():
    """S4 C12: there is no later any more."""
    story = a_running_job(ONE)
    completed(story)
    (deletion,) = completed(story)
    for _ in range(DELETE_TRIES - 1):
        story.hear(FilesNotDeleted(deletion.operation))
        story.later(200)
    closed(story)

    assert each(EndDriver, story.hear(FilesNotDeleted(deletion.operation))) == []
    assert each(DeleteFiles, story.later(200)) == [deletion]


def test_what_cannot_be_deleted_even_then_is_left_to_the_garbage_collector():
    """C12: a job that is over does not wait for ever."""
    story, _ = a_job_that_put_off()
    deletion = only(DeleteFiles, closed(story))

    said = refused(story, deletion)

    assert len(each(DeleteFiles, said)) == DELETE_TRIES - 1
    assert said[-1] == EndDriver(JobStatus.CANCELED, fenced=False)


@pytest.mark.parametrize("count", [1, 3])
def test_a_driver_that_lost_its_job_deletes_nothing_more(count):
    """C17: the loser stops by itself and deletes nothing."""
    story, _ = a_job_that_put_off(count)
    checkpoint = story.trigger()
    story.ack_rest(checkpoint)
    entry = only(CreateEntry, story.written(checkpoint))

    said = [*story.hear(EntryTaken(entry.index)), *story.later(60_000)]

    assert each(DeleteFiles, said) == []
