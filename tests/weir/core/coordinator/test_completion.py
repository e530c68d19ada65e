"""From the last ack to completion: manifest, log entry, and only then the consequences."""

import pytest

from coordinated_job import (
    DRAIN,
    EVERYONE,
    FIRST,
    READ_0,
    SAVEPOINT,
    STOP,
    SUM_0,
    SUM_1,
    WRITE,
    WRITE_0,
    Files,
    Story,
    a_manifest,
    a_running_job,
    a_transaction,
    an_epoch,
    each,
    only,
    usual_path,
)
from weir.core.coordinator import begin
from weir.core.coordinator.actions import (
    CommitTransactions,
    CompleteRequest,
    ConfirmStop,
    CreateEntry,
    DeleteFiles,
    NotifyAborted,
    NotifyCompleted,
    ReportAborted,
    ReportCompleted,
    RequestSucceeded,
    TruncateLog,
    WriteManifest,
)
from weir.core.coordinator.completion import LOG_MARGIN
from weir.core.coordinator.coordinator_state import Unclaimed
from weir.core.coordinator.events import CommitConfirmed, CommitInDoubt
from weir.core.log_entries import ID_BLOCK, CheckpointLogged, IdsReserved
from weir.core.policy import Policy
from weir.core.reasons import Reason

CONSEQUENCES = (NotifyCompleted, CommitTransactions, CompleteRequest, ReportCompleted, DeleteFiles)


def numbers(said):
    """The commits: (number, the checkpoints whose pre-commits it holds)."""
    return [
        (action.commit.sequence, [t.checkpoint for t in action.commit.transactions])
        for action in each(CommitTransactions, said)
    ]


# The one commit point


def test_the_manifest_is_written_first_and_the_entry_created_when_it_is_durable():
    """C8: the manifest is written, then the checkpoint's entry is created in the job's log."""
    story = a_running_job()
    checkpoint = story.trigger()

    (write,) = story.ack_rest(checkpoint)
    (create,) = story.written(checkpoint)

    assert isinstance(write, WriteManifest)
    assert create == CreateEntry(
        1,
        CheckpointLogged(
            epoch=1,
            driver="driver-a",
            checkpoint=1,
            kind=story.state.checkpoints.pending[0].properties.request.kind,
            manifest="store/orders/chk-1/_metadata",
            ids_until=1000,
            numbers=(("write", 1),),
        ),
    )


def test_nothing_follows_before_the_entry_exists():
    """C8: that exclusive creation is the one commit point."""
    story = a_running_job(Policy(retained=1))
    story.checkpoint()
    checkpoint = story.trigger(name="ada")

    said = [*story.ack_rest(checkpoint), *story.written(checkpoint)]

    assert [word for word in said if isinstance(word, CONSEQUENCES)] == []
    assert story.state.checkpoints.newest == 1


def test_then_everything_follows():
    """C8: then older checkpoints are subsumed and everyone is notified."""
    story = a_running_job(Policy(retained=1))
    story.checkpoint()

    said = story.complete(story.trigger(name="ada"))

    assert [type(word) for word in said] == [
        ReportCompleted,
        CommitTransactions,
        NotifyCompleted,
        CompleteRequest,
        DeleteFiles,
    ]
    assert only(NotifyCompleted, said).targets == tuple((s, FIRST) for s in EVERYONE)
    assert only(CompleteRequest, said).outcome == RequestSucceeded(2, "store/orders/chk-2")
    assert story.state.checkpoints.newest == 2


def test_a_report_says_how_long_it_took_and_how_long_the_end_of_it():
    """C21: duration and finalization time."""
    story = a_running_job()
    checkpoint = story.trigger()
    story.at(120)
    story.ack_rest(checkpoint)
    story.at(150)

    report = only(ReportCompleted, story.complete(checkpoint))

    assert (report.duration_ms, report.finalization_ms) == (120, 30)


def test_the_manifest_says_what_it_was_taken_of():
    """C15: graph, widths, finished subtasks: what a restore is judged by."""
    story = a_running_job()
    story.finished(READ_0)

    manifest = only(WriteManifest, story.ack_rest(story.trigger())).manifest

    assert manifest.fingerprint == story.state.job.topology.fingerprint()
    assert [(w.operator, w.parallelism) for w in manifest.widths] == [
        ("read", 1),
        ("sum", 2),
        ("write", 1),
    ]
    assert manifest.finished == (READ_0,)
    assert [snapshot.subtask for snapshot in manifest.snapshots] == [SUM_0, SUM_1, WRITE_0]


# Several at once


def test_manifests_are_written_one_at_a_time_the_oldest_first():
    """C8 C19: each knows exactly which transactions the one before it covered."""
    story = a_running_job(Policy(max_concurrent=2))
    first, second = story.trigger(), story.trigger()
    story.ack_rest(first)

    assert story.ack_rest(second) == []
    story.written(first)
    assert only(WriteManifest, story.logged()).manifest.checkpoint == second


def test_a_newer_completion_ends_an_older_one_that_is_still_pending():
    """C8: older checkpoints are subsumed, pending ones included."""
    story = a_running_job(Policy(max_concurrent=2))
    first, second = story.trigger(), story.trigger()
    story.ack(first, SUM_0)

    said = story.complete(second)

    assert only(ReportAborted, said).checkpoint == first
    assert only(ReportAborted, said).reason is Reason.CHECKPOINT_SUBSUMED
    assert only(NotifyAborted, said).checkpoint == first
    assert only(DeleteFiles, said).paths == (usual_path(first, SUM_0),)
    assert story.state.checkpoints.pending == ()


def test_a_newer_completion_does_not_end_an_older_savepoint():
    """C8 C11: a user waits for it."""
    story = a_running_job(Policy(max_concurrent=2))
    savepoint, checkpoint = story.trigger(SAVEPOINT), story.trigger()

    story.complete(checkpoint)

    assert [p.properties.checkpoint for p in story.state.checkpoints.pending] == [savepoint]


def test_a_savepoint_ends_no_checkpoint():
    """C8: a copy on the side subsumes nothing."""
    story = a_running_job(Policy(max_concurrent=2))
    checkpoint, savepoint = story.trigger(), story.trigger(SAVEPOINT)

    assert each(ReportAborted, story.complete(savepoint)) == []
    assert [p.properties.checkpoint for p in story.state.checkpoints.pending] == [checkpoint]


@pytest.mark.parametrize("kind", [STOP, DRAIN])
def test_the_savepoint_of_a_stop_ends_an_older_checkpoint_that_is_still_pending(kind):
    """C8 C15: it commits output, so a checkpoint logged behind it would repeat that output."""
    story = a_running_job(Policy(max_concurrent=2))
    checkpoint, savepoint = story.trigger(), story.trigger(kind)
    story.ack(checkpoint, SUM_0)

    said = story.complete(savepoint)

    assert only(ReportAborted, said).checkpoint == checkpoint
    assert only(ReportAborted, said).reason is Reason.CHECKPOINT_SUBSUMED
    assert story.state.checkpoints.pending == ()


# What sinks commit


def test_each_sink_s_commits_are_numbered_without_gaps_whatever_aborts():
    """C19: a commit sequence without gaps, and checkpoint ids with some."""
    story = a_running_job(Policy(tolerable_failures=9))
    said = story.complete(story.trigger())
    story.tidy_up()
    story.decline(story.trigger(), SUM_0)
    said += story.complete(story.trigger())

    assert numbers(said) == [(1, [1]), (2, [3])]


def test_the_commit_sequence_is_stored_in_the_checkpoint():
    """C19: stored in the checkpoint, this one's own commit included."""
    story = a_running_job()
    manifest = only(WriteManifest, story.ack_rest(story.trigger())).manifest

    (ledger,) = manifest.ledgers

    assert (ledger.sink, ledger.sequence, ledger.covered) == (WRITE, 1, 1)
    assert [commit.transactions for commit in ledger.unconfirmed] == [(a_transaction(1),)]


def test_a_second_commit_of_a_sink_waits_for_the_first_to_be_confirmed():
    """C19: numbers reach the external system in order."""
    story = a_running_job()
    story.complete(story.trigger())

    assert numbers(story.complete(story.trigger())) == []
    assert numbers(story.hear(CommitConfirmed(WRITE, 1))) == [(2, [2])]


def test_a_commit_in_doubt_is_repeated_under_its_number():
    """R5 C18: the answer was lost; the commit is idempotent by its number."""
    story = a_running_job()
    story.complete(story.trigger())

    assert story.hear(CommitInDoubt(WRITE, 1)) == []
    assert numbers(story.later(200)) == [(1, [1])]


def test_an_answer_about_a_commit_that_is_confirmed_changes_nothing():
    """R5: a repeated confirmation changes nothing."""
    story = a_running_job()
    story.checkpoint()
    before = story.state

    assert story.hear(CommitConfirmed(WRITE, 1), CommitInDoubt(WRITE, 1)) == []
    assert story.state == before


def test_a_late_doubt_about_one_commit_does_not_repeat_another():
    """R5: each answer is about its own number."""
    story = a_running_job()
    story.complete(story.trigger())
    story.complete(story.trigger())
    story.hear(CommitConfirmed(WRITE, 1))

    assert story.hear(CommitInDoubt(WRITE, 1)) == []
    assert story.later(200) == []


def test_a_plain_savepoint_commits_nothing():
    """C11 R5: its transactions stay with the sinks until a checkpoint covers them."""
    story = a_running_job()
    savepoint = story.trigger(SAVEPOINT)

    assert numbers(story.complete(savepoint)) == []
    assert story.state.commits.ledgers[WRITE].covered == 0


@pytest.mark.parametrize("kind", [STOP, DRAIN])
def test_a_synchronous_savepoint_commits_and_confirms_the_stop(kind):
    """C11: the job ends with it, so its output must be out."""
    story = a_running_job()

    said = story.complete(story.trigger(kind))

    assert numbers(said) == [(1, [1])]
    assert each(ConfirmStop, said) == [ConfirmStop()]


def test_a_commit_carries_the_epoch():
    """C17: sinks that carry the epoch are fenced too."""
    story = a_running_job()

    assert only(CommitTransactions, story.complete(story.trigger())).epoch == 1


# Across drivers


def unconfirmed():
    """A manifest whose commit was never confirmed."""
    story = a_running_job()
    story.complete(story.trigger())
    return story.state.checkpoints.completed[0].manifest


def test_a_new_driver_begins_with_the_commits_that_its_predecessor_owed():
    """C19 R5: under their old numbers."""
    story = Story(epoch=an_epoch((1, unconfirmed()), next_id=17))

    assert numbers(story.owed) == [(1, [1])]


def test_a_new_driver_goes_on_in_the_sequence():
    """C19: after redeployments included."""
    story = a_running_job(epoch=an_epoch((1, unconfirmed()), next_id=17))
    story.hear(CommitConfirmed(WRITE, 1))

    assert numbers(story.complete(story.trigger())) == [(2, [17])]


def test_a_job_that_borrowed_its_beginning_goes_on_in_that_one_s_sequence():
    """C16 C19: the sink has seen those numbers."""
    story = a_running_job(epoch=an_epoch(start=Unclaimed(unconfirmed()), next_id=17))

    assert numbers(story.owed) == [(1, [1])]
    story.hear(CommitConfirmed(WRITE, 1))
    assert numbers(story.complete(story.trigger())) == [(2, [17])]


# Ids


def test_the_entry_reserves_the_ids_behind_its_checkpoint():
    """C19: a successor starts there, so even a zombie never uses an id that it uses too."""
    story = a_running_job(epoch=an_epoch(ids_until=ID_BLOCK + 1))
    checkpoint = story.trigger()
    story.ack_rest(checkpoint)

    assert only(CreateEntry, story.written(checkpoint)).entry.ids_until == 1 + ID_BLOCK


def test_an_id_that_is_not_reserved_is_not_used():
    """C19: when the block is used up without a completion, more are reserved first."""
    story = a_running_job(epoch=an_epoch(next_id=17, ids_until=17))

    (create,) = story.ask()

    assert create == CreateEntry(1, IdsReserved(1, "driver-a", 17 + ID_BLOCK))
    assert story.state.checkpoints.pending == ()
    assert story.logged() != []
    assert story.state.checkpoints.pending[0].properties.checkpoint == 17


def test_no_ids_are_reserved_for_a_checkpoint_that_cannot_be_taken():
    """C4 C19: nothing else happens; the log is left alone while a restart looks at its end."""
    story = a_running_job(epoch=an_epoch(next_id=17, ids_until=17))
    story.down(SUM_0)

    assert each(CreateEntry, story.ask()) == []


def test_ids_are_reserved_once_however_many_requests_wait_for_them():
    """C19: one entry is enough."""
    story = a_running_job(epoch=an_epoch(next_id=17, ids_until=17))

    assert len(each(CreateEntry, [*story.ask(), *story.ask(), *story.ask(SAVEPOINT)])) == 1


def test_a_completion_never_takes_back_ids_that_were_reserved_before_it():
    """C19: the newest entry is the one that a successor reads."""
    story = a_running_job(epoch=an_epoch(next_id=16, ids_until=17))
    checkpoint = story.trigger()
    story.ack_rest(checkpoint)
    story.ask(SAVEPOINT)
    story.written(checkpoint)

    reserved = story.state.log.writing[0]
    completed = story.state.log.writing[1]

    assert isinstance(reserved, IdsReserved)
    assert completed.ids_until >= reserved.ids_until


def test_a_driver_must_not_begin_with_ids_that_its_restore_point_has_used():
    """C19: transactions of an id that counts as covered would never be committed."""
    with pytest.raises(AssertionError, match="ids grow"):
        begin(Policy(), a_running_job().state.job.topology, an_epoch((0, a_manifest(57))))


# The log


def test_entries_take_the_log_s_numbers_one_after_the_other():
    """C17: one numbered log."""
    story = a_running_job()
    indexes = []
    for _ in range(3):
        checkpoint = story.trigger()
        story.ack_rest(checkpoint)
        indexes.append(only(CreateEntry, story.written(checkpoint)).index)
        story.logged()
        story.tidy_up()

    assert indexes == [1, 2, 3]


def test_the_log_is_truncated_now_and_then_far_behind_what_is_kept():
    """C17: never the entry of a kept checkpoint, nor that of the epoch."""
    manifests = [(40, a_manifest(1)), (41, a_manifest(2))]
    story = a_running_job(Policy(retained=2), epoch=an_epoch(*manifests, next_id=3))
    truncations = []
    for _ in range(2 * LOG_MARGIN):
        truncations += each(TruncateLog, story.complete(story.trigger()))
        story.tidy_up()

    assert [truncation.below for truncation in truncations] == [34, 34]


def test_a_short_log_is_left_alone():
    """C17: there is nothing behind what a reader needs."""
    story = a_running_job()
    said = []
    for _ in range(LOG_MARGIN):
        said += story.complete(story.trigger())
        story.tidy_up()

    assert each(TruncateLog, said) == []


def test_the_entry_of_the_oldest_kept_checkpoint_is_never_truncated():
    """C17 C12: however long ago it was written."""
    owned = [(40, a_manifest(1)), (60, a_manifest(2))]
    story = a_running_job(Policy(retained=9), epoch=an_epoch(*owned, next_id=3))
    said = []
    for _ in range(3):
        said += story.complete(story.trigger())
        story.tidy_up()

    assert each(TruncateLog, said) == [TruncateLog(40 - LOG_MARGIN)]


# Shared files


def test_the_registry_counts_shared_files_and_no_others():
    """S4: once for each checkpoint that refers to them, and for each that may build on them."""
    story = a_running_job(Policy(incremental=True))
    first = story.trigger()
    story.ack(first, SUM_0, Files(own=("own",), shared=("base",)))
    story.complete(first)
    second = story.trigger()
    assert dict(story.state.checkpoints.shared.references) == {"base": 2}

    story.ack(second, SUM_0, Files(shared=("base", "new")))
    story.complete(second)

    assert dict(story.state.checkpoints.shared.references) == {"base": 2, "new": 1}


def test_a_base_is_held_until_the_checkpoint_that_builds_on_it_has_ended():
    """S4: a subtask may be about to refer to its files."""
    story = a_running_job(Policy(incremental=True, retained=1, max_concurrent=2))
    first = story.trigger()
    story.ack(first, SUM_0, Files(shared=("base",)))
    story.complete(first)
    second, third = story.trigger(), story.trigger()

    story.complete(second)
    assert "base" in story.state.checkpoints.shared

    said = story.complete(third)
    assert ("base",) in [deletion.paths for deletion in each(DeleteFiles, said)]
