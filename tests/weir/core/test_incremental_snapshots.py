"""What a subtask may leave out of its next snapshot, and what it must never build on."""

from weir.core.ids import CheckpointId
from weir.core.incremental_snapshots import Increments
from weir.core.snapshots import StateFile

ONE, TWO, THREE = CheckpointId(1), CheckpointId(2), CheckpointId(3)
OLD = {0: StateFile("shared/old", 1, shared=True)}
NEW = {0: StateFile("shared/new", 1, shared=True)}


def test_a_first_snapshot_builds_on_nothing() -> None:
    """S4: without a base everything is uploaded."""
    assert Increments().base(ONE) == {}


def test_a_completed_checkpoint_is_a_base() -> None:
    """S4: only new files are uploaded."""
    increments = Increments()
    increments.took(ONE, OLD)
    increments.on_completed(ONE)

    assert increments.base(ONE) == OLD


def test_a_checkpoint_of_unknown_fate_is_no_base() -> None:
    """S4: never on one of whose completion the subtask was not notified."""
    increments = Increments()
    increments.took(ONE, OLD)
    increments.on_completed(ONE)
    increments.took(TWO, NEW)

    assert increments.base(TWO) == {}
    assert increments.base(ONE) == OLD


def test_an_aborted_checkpoint_is_no_base() -> None:
    """S4: never on one that was aborted, even if a late notification contradicts."""
    increments = Increments()
    increments.took(ONE, OLD)
    increments.on_aborted(ONE)
    increments.on_completed(ONE)

    assert increments.base(ONE) == {}


def test_only_the_checkpoint_that_the_trigger_names_is_built_on() -> None:
    """S4: the trigger names the newest completed one; a subtask that missed it writes in full."""
    increments = Increments()
    increments.took(ONE, OLD)
    increments.on_completed(ONE)

    assert increments.base(TWO) == {}


def test_what_was_restored_whole_is_a_base() -> None:
    """S4: an increment continues across a restart of the job."""
    increments = Increments()
    increments.restored(TWO, OLD)

    assert increments.base(TWO) == OLD


def test_a_newer_completion_forgets_the_older_ones() -> None:
    """S4: what is before the newest completed checkpoint is never named again."""
    increments = Increments()
    for checkpoint, pieces in ((ONE, OLD), (TWO, NEW)):
        increments.took(checkpoint, pieces)
    increments.on_completed(ONE)
    increments.on_completed(TWO)

    assert increments.base(TWO) == NEW
    assert increments.base(ONE) == {}
    assert not increments.taken.keys() & {ONE, THREE}
