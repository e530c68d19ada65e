"""What a restarted subtask begins with, and what becomes of its predecessor's transactions."""

from dataclasses import replace

from coordinated_job import (
    EVERYONE,
    READ_0,
    SAVEPOINT,
    STOP,
    SUM_0,
    SUM_1,
    WRITE,
    WRITE_0,
    a_manifest,
    a_running_job,
    a_transaction,
    an_epoch,
    each,
    only,
)
from weir.core.coordinator.actions import (
    LookForSuccessor,
    OfferRestorePoint,
    ResolveTransactions,
    RestoreManifest,
    RestoreNothing,
    Trigger,
)
from weir.core.coordinator.coordinator_state import Unclaimed
from weir.core.coordinator.events import (
    CommitConfirmed,
    NoSuccessorSeen,
    RestorePointRequested,
    TransactionsResolved,
    TransactionsUnresolved,
)
from weir.core.policy import Policy
from weir.core.snapshots import Commit


def restored(story):
    """The checkpoint that everyone is offered, and since when this epoch has it."""
    restore = only(OfferRestorePoint, story.restore()).restore
    return (restore.manifest.checkpoint, restore.since)


def test_a_job_without_a_checkpoint_starts_empty():
    """C15: No checkpoint found during restore."""
    offer = only(OfferRestorePoint, a_running_job().restore())

    assert offer == OfferRestorePoint(2, EVERYONE, RestoreNothing())


def test_the_newest_completed_checkpoint_is_offered():
    """C15: restore takes the newest completed checkpoint."""
    story = a_running_job()
    story.checkpoint()
    story.checkpoint()
    story.trigger()

    assert restored(story) == (2, 2)


def test_a_plain_savepoint_is_not_a_restore_point():
    """C15 R5: it committed nothing, so rows committed since would be produced again."""
    story = a_running_job()
    story.checkpoint()
    story.checkpoint(SAVEPOINT)

    assert restored(story) == (1, 1)


def test_a_new_driver_offers_what_it_owns():
    """C15 R1: without reference to what its own enumerators have assigned."""
    story = a_running_job(epoch=an_epoch((1, a_manifest(3)), next_id=17))

    assert restored(story) == (3, 0)


def test_a_borrowed_beginning_is_offered_until_there_is_an_own_checkpoint():
    """C16 C13: from then on the job goes its own way."""
    story = a_running_job(epoch=an_epoch(start=Unclaimed(a_manifest(9)), next_id=17))
    assert restored(story) == (9, 0)

    story.checkpoint()
    assert restored(story) == (17, 17)


def test_a_job_that_was_stopped_begins_with_its_savepoint_and_not_with_what_it_kept():
    """C15 K4: the checkpoints before it are older, and their rows are committed."""
    stopped = Unclaimed(a_manifest(5, STOP))
    owned = [(1, a_manifest(3)), (2, a_manifest(4))]
    story = a_running_job(epoch=an_epoch(*owned, start=stopped, next_id=17))
    assert restored(story) == (5, 0)

    story.checkpoint()
    assert restored(story) == (17, 17)


def test_no_increment_builds_on_a_checkpoint_that_the_running_state_does_not_descend_from():
    """C16 S4: what a job kept from before its stop is there to be deleted, and no base."""
    stopped = Unclaimed(a_manifest(5, STOP))
    story = a_running_job(
        Policy(incremental=True),
        epoch=an_epoch((1, a_manifest(3)), start=stopped, next_id=17),
    )

    assert only(Trigger, story.start()).barrier.base == 0


def test_only_those_who_asked_are_offered_a_restore_point():
    """R4: a region restarts alone."""
    story = a_running_job()
    story.down(SUM_0)

    assert only(OfferRestorePoint, story.restore(SUM_0)).subtasks == (SUM_0,)


def test_two_who_ask_at_once_are_offered_the_same():
    """R4: one look at the log is enough."""
    story = a_running_job()
    story.checkpoint()
    said = story.hear(RestorePointRequested(2, (SUM_0,)), RestorePointRequested(3, (SUM_1,)))
    assert each(LookForSuccessor, said) == [LookForSuccessor(2)]

    offers = each(OfferRestorePoint, story.hear(NoSuccessorSeen(2)))

    assert [(offer.attempt, offer.subtasks) for offer in offers] == [(2, (SUM_0,)), (3, (SUM_1,))]
    assert offers[0].restore == offers[1].restore
    assert isinstance(offers[0].restore, RestoreManifest)


def test_an_answer_about_an_entry_that_has_been_written_since_is_no_answer():
    """C17: the check is repeated at the new end of the log, and no request waits for ever."""
    story = a_running_job()
    story.checkpoint()
    story.hear(RestorePointRequested(2, (SUM_0,)))

    said = story.hear(NoSuccessorSeen(1))

    assert each(OfferRestorePoint, said) == []
    assert each(LookForSuccessor, said) == [LookForSuccessor(2)]


def test_a_job_that_was_rolled_back_commits_under_numbers_that_no_sink_has_seen():
    """C19: what a later checkpoint gave out is closed before anything new is committed."""
    epoch = an_epoch(start=Unclaimed(a_manifest(3)), next_id=10)

    story = a_running_job(epoch=replace(epoch, numbers={WRITE: 7}))

    *closed, new = story.state.commits.ledgers[WRITE].unconfirmed
    assert closed == [Commit(WRITE, number, ()) for number in range(1, 8)]
    assert new == Commit(WRITE, 8, (a_transaction(3),))


# Transactions of dead attempts


def test_what_a_dead_attempt_left_open_is_resolved_before_the_next_starts():
    """R5: committed or aborted, never left dangling."""
    story = a_running_job()

    said = story.restore(attempt=2)

    assert [type(word) for word in said][-2:] == [ResolveTransactions, OfferRestorePoint]
    assert only(ResolveTransactions, said).attempt == 2
    assert only(ResolveTransactions, said).subtasks == (WRITE_0,)


def test_what_a_commit_is_about_to_take_is_kept():
    """C9 R5: a completed checkpoint's output must not be aborted under the commit's feet."""
    story = a_running_job()
    story.complete(story.trigger())
    assert only(ResolveTransactions, story.restore()).keep == (a_transaction(1),)

    story.hear(CommitConfirmed("write", 1))
    assert only(ResolveTransactions, story.restore(attempt=3)).keep == ()


def test_the_pre_commits_of_a_checkpoint_that_died_with_its_attempt_are_not_kept():
    """R5: the source rewinds, so their rows will be produced again."""
    story = a_running_job()
    checkpoint = story.trigger()
    story.ack(checkpoint, WRITE_0)
    story.down(*EVERYONE)

    assert only(ResolveTransactions, story.restore()).keep == ()


def test_a_region_without_a_sink_has_no_transactions_to_resolve():
    """R4 R5: the others' transactions are alive."""
    story = a_running_job()

    assert each(ResolveTransactions, story.restore(READ_0, SUM_0)) == []


def test_each_of_several_resolutions_is_followed_to_its_end():
    """R5 R4: two regions restart, and one answer is not the other's."""
    story = a_running_job()
    first = only(ResolveTransactions, story.restore(attempt=2))
    second = only(ResolveTransactions, story.restore(attempt=3))

    story.hear(TransactionsUnresolved(second.operation))

    assert story.later(200) == [second]
    story.hear(TransactionsResolved(second.operation))
    assert story.state.commits.resolving == (first,)


def test_transactions_that_could_not_be_resolved_are_tried_again():
    """R5: never left dangling."""
    story = a_running_job()
    resolve = only(ResolveTransactions, story.restore())

    assert story.hear(TransactionsUnresolved(resolve.operation)) == []
    assert story.later(200) == [resolve]

    story.hear(TransactionsResolved(resolve.operation))
    assert story.state.commits.resolving == ()
