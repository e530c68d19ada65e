"""Which completed checkpoints are kept, whose files are deleted, and whose never are."""

import pytest

from coordinated_job import (
    EVERYONE,
    SAVEPOINT,
    STOP,
    SUM_0,
    Files,
    a_manifest,
    a_running_job,
    a_snapshot,
    an_epoch,
    each,
    only,
    usual_path,
)
from weir.core.coordinator.actions import DeleteFiles, Trigger
from weir.core.coordinator.coordinator_state import Unclaimed
from weir.core.policy import Policy

ONE = Policy(retained=1)


def deleted(said):
    return [path for deletion in each(DeleteFiles, said) for path in deletion.paths]


def kept(story):
    return [completed.checkpoint for completed in story.state.checkpoints.completed]


def everything_of(checkpoint):
    files = [usual_path(checkpoint, subtask) for subtask in EVERYONE]
    return [*files, f"store/orders/chk-{checkpoint}/_metadata"]


# Subsumption


def test_the_newest_are_kept_and_the_oldest_goes():
    """C12: the n newest are kept."""
    story = a_running_job(Policy(retained=2))
    story.checkpoint()
    story.checkpoint()

    said = story.complete(story.trigger())

    assert kept(story) == [2, 3]
    assert deleted(said) == everything_of(1)


def test_the_manifest_goes_last():
    """C12: while it is there, an interrupted deletion can be taken up again."""
    story = a_running_job(ONE)
    story.checkpoint()

    assert deleted(story.complete(story.trigger()))[-1] == "store/orders/chk-1/_metadata"


def test_a_failed_checkpoint_subsumes_nothing():
    """C18: the last completed one stays restorable."""
    story = a_running_job(Policy(retained=1, tolerable_failures=9))
    story.checkpoint()
    checkpoint = story.trigger()

    said = story.decline(checkpoint, SUM_0)

    assert kept(story) == [1]
    assert deleted(said) == []


@pytest.mark.parametrize("kind", [SAVEPOINT, STOP])
def test_a_savepoint_is_never_deleted_and_subsumes_nothing(kind):
    """C12: savepoints are never deleted by the job."""
    story = a_running_job(ONE)
    story.checkpoint()

    said = story.complete(story.trigger(kind))

    assert kept(story) == [1]
    assert deleted(said) == []


def test_checkpoints_after_a_savepoint_leave_it_alone():
    """C12: whatever is subsumed later."""
    story = a_running_job(ONE)
    savepoint = story.checkpoint(SAVEPOINT)
    said = []
    for _ in range(3):
        said += story.complete(story.trigger())
        story.tidy_up()

    assert [path for path in deleted(said) if f"-{savepoint}/" in path] == []


# Shared files


def test_a_shared_file_stays_while_a_kept_checkpoint_refers_to_it():
    """C12 S4: and goes with the last one that does."""
    story = a_running_job(Policy(retained=1, incremental=True))
    said = []
    for shared in (("a",), ("a", "b"), ("b",)):
        checkpoint = story.trigger()
        story.ack(checkpoint, SUM_0, Files(shared=shared))
        said.append(deleted(story.complete(checkpoint)))
        story.tidy_up()

    assert "a" not in said[1]
    assert "a" in said[2]
    assert "b" not in said[2]


# Claims


def test_a_borrowed_beginning_is_never_touched():
    """C16: NO_CLAIM: never touched."""
    borrowed = a_manifest(
        9, SAVEPOINT, snapshots=(a_snapshot(9, SUM_0, Files(own=("o",), shared=("s",))),)
    )
    story = a_running_job(ONE, epoch=an_epoch(start=Unclaimed(borrowed), next_id=17))
    said = []
    for _ in range(3):
        said += story.complete(story.trigger())
        story.tidy_up()

    assert len(deleted(said)) == 2 * len(everything_of(17))
    assert not {"o", "s", "store/orders/chk-9/_metadata"} & set(deleted(said))


def test_the_first_checkpoint_after_a_borrowed_beginning_is_full():
    """C16: so the first checkpoint after it is full; its own first completion is a base again."""
    policy = Policy(incremental=True)
    story = a_running_job(policy, epoch=an_epoch(start=Unclaimed(a_manifest(9)), next_id=17))

    assert only(Trigger, story.start()).barrier.base == 0
    story.complete(17)
    assert only(Trigger, story.start()).barrier.base == 17


def test_a_claimed_beginning_is_built_on_and_deleted_when_it_is_subsumed():
    """C16: CLAIM: we own and later delete it."""
    claimed = a_manifest(
        9, SAVEPOINT, snapshots=(a_snapshot(9, SUM_0, Files(own=("o",), shared=("s",))),)
    )
    policy = Policy(incremental=True, retained=1)
    story = a_running_job(policy, epoch=an_epoch((4, claimed), next_id=17))

    assert only(Trigger, story.start()).barrier.base == 9
    said = story.complete(17)

    assert sorted(deleted(said)) == ["o", "s", "store/orders/chk-9/_metadata"]


def test_a_claimed_shared_file_stays_while_an_own_checkpoint_refers_to_it():
    """C16 S4: the registry survives restarts."""
    claimed = a_manifest(9, snapshots=(a_snapshot(9, SUM_0, Files(shared=("s", "t"))),))
    policy = Policy(incremental=True, retained=1)
    story = a_running_job(policy, epoch=an_epoch((4, claimed), next_id=17))
    checkpoint = story.trigger()
    story.ack(checkpoint, SUM_0, Files(shared=("s",)))

    said = story.complete(checkpoint)

    assert "t" in deleted(said)
    assert "s" not in deleted(said)


def test_checkpoints_of_earlier_drivers_are_subsumed_like_own_ones():
    """C12: no matter which driver completed them."""
    owned = [(1, a_manifest(1)), (2, a_manifest(2))]
    story = a_running_job(epoch=an_epoch(*owned, next_id=17))

    said = story.complete(story.trigger())

    assert kept(story) == [2, 17]
    assert deleted(said) == everything_of(1)
