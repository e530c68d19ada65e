"""What cannot be made durable is reported or tried again, and never assumed."""

from coordinated_job import (
    EVERYONE,
    READ_0,
    SAVEPOINT,
    STOP,
    SUM_0,
    USUAL,
    a_running_job,
    an_epoch,
    each,
    only,
    usual_path,
)
from weir.core.coordinator import next_deadline
from weir.core.coordinator.actions import (
    CommitTransactions,
    CompleteRequest,
    CreateEntry,
    DeleteFiles,
    FailAttempt,
    LookForSuccessor,
    NotifyAborted,
    NotifyCompleted,
    OfferRestorePoint,
    ReportAborted,
    WriteManifest,
)
from weir.core.coordinator.events import (
    EntryInDoubt,
    EntryNotCreated,
    ManifestInDoubt,
    ManifestNotWritten,
    RestorePointRequested,
)
from weir.core.coordinator.pending_checkpoint import Logging, Persisting
from weir.core.log_entries import IdsReserved
from weir.core.policy import Policy
from weir.core.reasons import Reason

FINALIZE = Reason.FINALIZE_CHECKPOINT_FAILURE
TOLERANT = Policy(tolerable_failures=9)


def persisting(policy=USUAL, name=""):
    """Every ack is in, and the manifest is being written."""
    story = a_running_job(policy)
    checkpoint = story.trigger(name=name)
    story.ack_rest(checkpoint)
    return story


def logging(policy=USUAL, name=""):
    """The manifest is there, and the entry is being created."""
    story = persisting(policy, name)
    story.written(1)
    return story


# The manifest


def test_a_manifest_that_could_not_be_written_aborts_the_checkpoint():
    """C18 C9: storage failure; FINALIZE_CHECKPOINT_FAILURE with the storage's message."""
    story = persisting(TOLERANT, name="ada")

    said = story.hear(ManifestNotWritten(1, "no space left"))

    report = only(ReportAborted, said)
    assert report.reason is FINALIZE
    assert "no space left" in report.message
    assert only(CompleteRequest, said).outcome.reason is FINALIZE
    assert only(NotifyAborted, said).checkpoint == 1
    assert each(CreateEntry, said) == []


def test_what_it_left_behind_is_deleted_the_manifest_last():
    """C9 C18: a partial write included."""
    story = persisting(TOLERANT)

    said = story.hear(ManifestNotWritten(1, "no space left"))

    assert only(DeleteFiles, said).paths == (
        *(usual_path(1, subtask) for subtask in EVERYONE),
        "store/orders/chk-1/_metadata",
    )


def test_a_storage_failure_counts_against_the_tolerable_ones():
    """C9: FINALIZE_CHECKPOINT_FAILURE counts."""
    story = persisting(Policy(tolerable_failures=0))

    assert only(FailAttempt, story.hear(ManifestNotWritten(1, "full"))).reason is FINALIZE


def test_a_manifest_in_doubt_is_written_again_until_storage_answers():
    """C18: partial writes and lost answers end in a retry, never in a guess."""
    story = persisting()

    assert story.hear(ManifestInDoubt(1)) == []
    assert isinstance(story.state.checkpoints.pending[0], Persisting)
    assert next_deadline(story.state) == 200
    assert only(WriteManifest, story.at(200)).manifest.checkpoint == 1
    assert each(CreateEntry, story.written(1)) != []


def test_the_next_checkpoint_s_manifest_waits_while_one_is_in_doubt():
    """C18 C19: which transactions the earlier one covers is not known yet."""
    story = a_running_job(Policy(max_concurrent=2))
    first, second = story.trigger(), story.trigger()
    story.ack_rest(first)
    story.hear(ManifestInDoubt(first))

    assert each(WriteManifest, story.ack_rest(second)) == []


def test_the_last_completed_checkpoint_stays_restorable():
    """C18: whatever becomes of the next one."""
    story = a_running_job(Policy(retained=1, tolerable_failures=9))
    story.checkpoint()
    checkpoint = story.trigger()
    story.ack_rest(checkpoint)

    said = story.hear(ManifestNotWritten(checkpoint, "full"))

    assert not any("chk-1/" in path for path in only(DeleteFiles, said).paths)
    assert only(OfferRestorePoint, story.restore()).restore.manifest.checkpoint == 1


# The entry


def test_an_entry_that_is_surely_not_there_aborts_the_checkpoint():
    """C18: no reader has seen it complete, so it may be aborted."""
    story = logging(TOLERANT, name="ada")

    said = story.hear(EntryNotCreated(1, "connection refused"))

    assert only(ReportAborted, said).reason is FINALIZE
    assert only(CompleteRequest, said).outcome.reason is FINALIZE
    assert "store/orders/chk-1/_metadata" in only(DeleteFiles, said).paths


def test_the_number_of_an_entry_that_was_not_created_goes_to_the_next():
    """C17: the log has no gaps."""
    story = logging(TOLERANT)
    story.hear(EntryNotCreated(1, "connection refused"))
    checkpoint = story.trigger()
    story.ack_rest(checkpoint)

    assert only(CreateEntry, story.written(checkpoint)).index == 1


def test_an_entry_in_doubt_is_neither_completed_nor_given_up():
    """C18: it may exist."""
    story = logging()

    assert story.hear(EntryInDoubt(1)) == []
    assert isinstance(story.state.checkpoints.pending[0], Logging)


def test_an_entry_in_doubt_is_created_again_to_the_letter():
    """C18: finding our own there is success."""
    story = logging()
    entry = story.state.log.writing[0]
    story.hear(EntryInDoubt(1))

    assert story.later(200) == [CreateEntry(1, entry)]
    assert each(NotifyCompleted, story.logged()) != []


def test_an_entry_that_was_once_in_doubt_is_never_given_up():
    """C18: the first try may have succeeded, so a later failure proves nothing."""
    story = logging(TOLERANT)
    story.hear(EntryInDoubt(1))
    story.later(200)

    assert story.hear(EntryNotCreated(1, "connection refused")) == []
    assert only(CreateEntry, story.later(200)).index == 1


def test_an_entry_is_not_created_again_once_storage_has_answered():
    """C18: a late retry would be about a number that is decided."""
    story = logging()
    story.hear(EntryInDoubt(1))
    story.logged()

    assert each(CreateEntry, story.later(200)) == []


def test_a_reservation_of_ids_is_tried_until_it_is_there():
    """C18 C19: no checkpoint starts with an id that is not reserved."""
    story = a_running_job(epoch=an_epoch(next_id=17, ids_until=17))
    story.ask()

    assert story.hear(EntryNotCreated(1, "connection refused")) == []
    retry = only(CreateEntry, story.later(200))
    assert isinstance(retry.entry, IdsReserved)
    assert story.state.checkpoints.pending == ()


def test_entries_are_created_one_at_a_time():
    """C17: the next number is not known to be ours before the last one is."""
    story = a_running_job(epoch=an_epoch(next_id=16, ids_until=17))
    checkpoint = story.trigger()
    story.ack_rest(checkpoint)
    story.ask(SAVEPOINT)

    assert each(CreateEntry, story.written(checkpoint)) == []
    assert only(CreateEntry, story.logged()).index == 2


# Restarts meanwhile


def test_a_restart_waits_until_it_is_known_what_the_newest_checkpoint_is():
    """C15 C17 C18: else sources would rewind behind a checkpoint that completes a moment later."""
    story = logging()
    story.hear(EntryInDoubt(1))
    story.down(*EVERYONE)

    assert story.hear(RestorePointRequested(2, EVERYONE)) == []

    story.later(200)
    story.logged()
    said = story.restore(attempt=3)
    assert only_manifest(said) == 1


def test_a_restart_waits_for_a_manifest_that_is_being_written():
    """C15 C18: the same, one stage earlier."""
    story = persisting()
    story.down(*EVERYONE)

    assert story.hear(RestorePointRequested(2, EVERYONE)) == []
    story.written(1)
    assert each(LookForSuccessor, story.logged()) == [LookForSuccessor(2)]


def test_a_restart_waits_for_whatever_else_is_being_written_into_the_log():
    """C17: it would find its own entry there, and take it for a successor's."""
    story = a_running_job(epoch=an_epoch(next_id=17, ids_until=17))
    story.ask()
    story.down(*EVERYONE)

    assert story.hear(RestorePointRequested(2, EVERYONE)) == []
    assert each(LookForSuccessor, story.logged()) == [LookForSuccessor(2)]


def only_manifest(said):
    (restored,) = {offer.restore.manifest.checkpoint for offer in each(OfferRestorePoint, said)}
    return restored


def test_a_checkpoint_that_completes_while_its_subtasks_are_down_still_commits():
    """C8: the entry exists, so it is complete, even if no subtask can be notified."""
    story = logging()
    story.down(*EVERYONE)

    said = story.logged()

    assert only(NotifyCompleted, said).targets == ()
    assert only(CommitTransactions, said).commit.sequence == 1


def test_a_stop_whose_savepoint_cannot_be_written_fails_the_attempt():
    """C11 C18: its sources stand still."""
    story = a_running_job(TOLERANT)
    savepoint = story.trigger(STOP, name="ada")
    story.ack_rest(savepoint)

    said = story.hear(ManifestNotWritten(savepoint, "full"))

    assert only(FailAttempt, said).reason is FINALIZE
    assert only(CompleteRequest, said).outcome.reason is FINALIZE


def test_a_lost_ack_ends_in_a_timeout_and_not_in_a_checkpoint():
    """C18: lost acks end in an abort."""
    story = a_running_job(Policy(timeout_ms=300, tolerable_failures=9))
    checkpoint = story.trigger()
    for subtask in (READ_0, SUM_0):
        story.ack(checkpoint, subtask)

    said = story.at(300)

    assert only(ReportAborted, said).reason is Reason.CHECKPOINT_EXPIRED
    assert each(WriteManifest, said) == []
