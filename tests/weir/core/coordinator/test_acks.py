"""The four fates of an ack, and what becomes of the files that it brought."""

import pytest

from coordinated_job import (
    EVERYONE,
    READ,
    READ_0,
    SAVEPOINT,
    SUM_0,
    SUM_1,
    WRITE_0,
    Files,
    a_running_job,
    a_snapshot,
    a_topology,
    an_epoch,
    each,
    only,
    usual_path,
)
from weir.core.coordinator.actions import DeleteFiles, WriteManifest
from weir.core.coordinator.completion import AcknowledgeResult, acknowledge_result
from weir.core.coordinator.events import SubtaskAcked
from weir.core.policy import Policy


def an_ack(checkpoint, subtask):
    return SubtaskAcked(1, checkpoint, subtask, a_snapshot(checkpoint, subtask))


def fate_of(story, checkpoint, subtask):
    return acknowledge_result(story.state, an_ack(checkpoint, subtask))


def deleted(said):
    return [path for deletion in each(DeleteFiles, said) for path in deletion.paths]


# Fates


def test_the_ack_of_a_subtask_that_is_waited_for_is_a_success():
    """C7: SUCCESS."""
    story = a_running_job()

    assert fate_of(story, story.trigger(), SUM_0) is AcknowledgeResult.SUCCESS


def test_a_second_ack_of_a_subtask_is_a_duplicate():
    """C7: DUPLICATE."""
    story = a_running_job()
    checkpoint = story.trigger()
    story.ack(checkpoint, SUM_0)

    assert fate_of(story, checkpoint, SUM_0) is AcknowledgeResult.DUPLICATE


def test_a_second_ack_is_a_duplicate_also_while_the_checkpoint_is_being_written():
    """C7: DUPLICATE, at every stage after collecting."""
    story = a_running_job()
    checkpoint = story.trigger()
    story.ack_rest(checkpoint)
    assert fate_of(story, checkpoint, SUM_0) is AcknowledgeResult.DUPLICATE

    story.written(checkpoint)
    assert fate_of(story, checkpoint, SUM_0) is AcknowledgeResult.DUPLICATE


def test_the_ack_of_a_subtask_that_is_no_part_of_the_checkpoint_is_unknown():
    """C7: UNKNOWN."""
    story = a_running_job()
    story.finished(READ_0)

    assert fate_of(story, story.trigger(), READ_0) is AcknowledgeResult.UNKNOWN


def test_the_ack_of_a_checkpoint_that_was_never_triggered_is_unknown():
    """C7: UNKNOWN; an id from the future, or one whose barriers are not out yet."""
    story = a_running_job(topology=a_topology(coordinated=(READ,)))
    assert fate_of(story, 1, SUM_0) is AcknowledgeResult.UNKNOWN

    story.ask()
    assert fate_of(story, 1, SUM_0) is AcknowledgeResult.UNKNOWN


def test_the_ack_of_a_checkpoint_that_was_aborted_comes_too_late():
    """C7: DISCARDED."""
    story = a_running_job()
    checkpoint = story.trigger()
    story.decline(checkpoint, SUM_1)

    assert fate_of(story, checkpoint, SUM_0) is AcknowledgeResult.DISCARDED


def test_the_ack_of_a_checkpoint_that_completed_comes_too_late():
    """C7: DISCARDED."""
    story = a_running_job()

    assert fate_of(story, story.checkpoint(), SUM_0) is AcknowledgeResult.DISCARDED


# Their files


def test_a_successful_ack_deletes_nothing():
    """C7: the checkpoint owns it now."""
    story = a_running_job()

    assert story.ack(story.trigger(), SUM_0) == []


def test_a_late_ack_s_files_are_deleted():
    """C7: state of an ack that is not used is deleted."""
    story = a_running_job()
    checkpoint = story.trigger()
    story.decline(checkpoint, SUM_1)

    assert deleted(story.ack(checkpoint, SUM_0)) == [usual_path(checkpoint, SUM_0)]


def test_an_unknown_ack_s_files_are_deleted():
    """C7: no checkpoint will refer to them."""
    story = a_running_job()

    assert deleted(story.ack(5, SUM_0)) == [usual_path(5, SUM_0)]


def test_a_duplicate_of_an_ack_in_a_pending_checkpoint_deletes_nothing_it_owns():
    """C7: state that a checkpoint owns never is."""
    story = a_running_job()
    checkpoint = story.trigger()
    story.ack(checkpoint, SUM_0)

    assert story.ack(checkpoint, SUM_0) == []


@pytest.mark.parametrize("stage", ["persisting", "logging", "completed"])
def test_a_duplicate_deletes_nothing_of_a_checkpoint_at_any_later_stage(stage):
    """C7: pending, being written or completed."""
    story = a_running_job()
    checkpoint = story.trigger()
    story.ack_rest(checkpoint)
    if stage != "persisting":
        story.written(checkpoint)
    if stage == "completed":
        story.logged()

    assert story.ack(checkpoint, SUM_0) == []


def test_a_duplicate_that_brings_other_files_loses_those():
    """C7: a subtask that uploaded twice; the first upload counts."""
    story = a_running_job()
    checkpoint = story.trigger()
    story.ack(checkpoint, SUM_0, Files(own=("first",)))

    assert deleted(story.ack(checkpoint, SUM_0, Files(own=("first", "second")))) == ["second"]


def test_a_late_duplicate_deletes_nothing_of_a_completed_savepoint():
    """C7 C12: the user owns it, and every one before it."""
    story = a_running_job()
    savepoints = [story.checkpoint(SAVEPOINT), story.checkpoint(SAVEPOINT)]

    assert [story.ack(savepoint, SUM_0) for savepoint in savepoints] == [[], []]


def test_a_late_ack_of_a_restored_checkpoint_deletes_nothing_of_it():
    """C7: it is owned, no matter which epoch completed it."""
    first = a_running_job()
    first.checkpoint()
    manifest = first.state.checkpoints.completed[0].manifest
    story = a_running_job(epoch=an_epoch((1, manifest), next_id=17))

    assert story.ack(1, SUM_0) == []


def test_a_late_ack_never_deletes_a_shared_file_that_a_checkpoint_refers_to():
    """C7 S4: another checkpoint built on it."""
    story = a_running_job(Policy(incremental=True, tolerable_failures=9))
    first = story.trigger()
    story.ack(first, SUM_0, Files(shared=("base",)))
    story.complete(first)
    second = story.trigger()
    story.decline(second, SUM_1)

    assert deleted(story.ack(second, SUM_0, Files(own=("own",), shared=("base", "new")))) == [
        "new",
        "own",
    ]


def test_the_shared_files_of_an_ack_belong_to_its_checkpoint_once():
    """C7 S4: when that has ended and no other checkpoint refers to them, they are deleted."""
    story = a_running_job(Policy(incremental=True, tolerable_failures=9))
    checkpoint = story.trigger()
    story.ack(checkpoint, SUM_0, Files(shared=("new",)))

    assert deleted(story.decline(checkpoint, SUM_1)) == ["new"]


# Completeness


def test_nothing_is_written_until_every_subtask_has_acked():
    """C8: all acks in."""
    story = a_running_job()
    checkpoint = story.trigger()

    assert [story.ack(checkpoint, subtask) for subtask in EVERYONE[:-1]] == [[], [], []]
    assert each(WriteManifest, story.ack(checkpoint, WRITE_0)) != []


def test_two_acks_of_one_subtask_do_not_stand_for_two():
    """C7: a duplicate is not counted."""
    story = a_running_job()
    checkpoint = story.trigger()
    for subtask in (READ_0, SUM_0, SUM_0, SUM_0, WRITE_0):
        assert each(WriteManifest, story.ack(checkpoint, subtask)) == []


def test_the_manifest_holds_one_snapshot_of_each_subtask():
    """C1: every operator's state, as its subtasks captured it at their barriers."""
    story = a_running_job()
    checkpoint = story.trigger()

    manifest = only(WriteManifest, story.ack_rest(checkpoint)).manifest

    assert manifest.snapshots == tuple(a_snapshot(checkpoint, s) for s in EVERYONE)


def test_an_ack_counts_for_its_own_checkpoint_alone():
    """C1: of two in flight, each has its own cut."""
    story = a_running_job(Policy(max_concurrent=2))
    first, second = story.trigger(), story.trigger()
    for subtask in EVERYONE:
        story.ack(second, subtask)

    assert fate_of(story, first, SUM_0) is AcknowledgeResult.SUCCESS
