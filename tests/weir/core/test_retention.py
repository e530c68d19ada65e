"""What may be deleted: by a newer checkpoint, at the end of a job, and as garbage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.core.lifecycle import JobStatus
from weir.core.policy import Policy, Retention
from weir.core.retention import (
    StorageFacts,
    StoredFile,
    discards_at_end,
    garbage,
    subsume,
    truncatable,
    unreferenced,
)

FINISHED, STOPPED, CANCELED, FAILED = (
    JobStatus.FINISHED,
    JobStatus.STOPPED,
    JobStatus.CANCELED,
    JobStatus.FAILED,
)


# Subsumed


def test_the_newest_are_kept_and_the_rest_is_subsumed():
    """C12: the n newest are kept."""
    assert subsume((1, 2, 3), 2) == ((2, 3), (1,))


def test_nothing_is_subsumed_before_there_are_more_than_are_kept():
    """C12: the last completed one stays restorable."""
    assert subsume((1, 2), 2) == ((1, 2), ())
    assert subsume((1,), 1) == ((1,), ())


def test_two_are_kept_unless_the_user_says_otherwise():
    """C12: default 2."""
    assert Policy().retained == 2


@given(st.lists(st.integers(), max_size=9), st.integers(1, 5))
def test_the_newest_is_always_kept_and_none_is_lost(completed, retained):
    """C12: each is kept or subsumed, and what is kept is newer than what is not."""
    kept, subsumed = subsume(tuple(completed), retained)

    assert [*subsumed, *kept] == completed
    assert len(kept) == min(retained, len(completed))


# The end of a job

DISCARDED = {
    Retention.RETAIN_ON_CANCELLATION: {FINISHED},
    Retention.RETAIN_ON_FAILURE: {FINISHED, CANCELED, STOPPED},
    Retention.NEVER_RETAIN_AFTER_TERMINATION: {FINISHED, CANCELED, STOPPED, FAILED},
}


@pytest.mark.parametrize("retention", Retention)
@pytest.mark.parametrize("status", [FINISHED, STOPPED, CANCELED, FAILED])
def test_each_retention_has_its_decision_for_each_end(retention, status):
    """C12: finished, suspended, cancelled, failed."""
    policy = Policy(retention=retention)

    assert discards_at_end(policy, status) == (status in DISCARDED[retention])


@pytest.mark.parametrize("retention", Retention)
@pytest.mark.parametrize("status", [CANCELED, STOPPED])
def test_under_the_operator_nothing_is_deleted_on_cancellation_or_suspension(retention, status):
    """C12: the operator may be about to start the job again from there."""
    assert not discards_at_end(Policy(retention=retention, managed=True), status)


def test_under_the_operator_a_finished_job_is_still_tidied_up():
    """C12: a job that has reached its end is not restored."""
    assert discards_at_end(Policy(managed=True), FINISHED)


@pytest.mark.parametrize("status", [s for s in JobStatus if not s.is_terminal])
def test_a_status_that_is_no_end_discards_nothing(status):
    """C12: a fault is not a cancellation; to ask is a bug of ours."""
    with pytest.raises(AssertionError):
        discards_at_end(Policy(), status)


# Acks that no checkpoint used


def test_of_an_unused_ack_only_what_no_checkpoint_owns_may_go():
    """C7: state of an ack that is not used is deleted, state that a checkpoint owns never is."""
    assert unreferenced(["b", "a", "c"], frozenset({"c"})) == ("a", "b")


# Garbage


def facts(*files, epoch=3, referenced=()):
    stored = tuple(StoredFile(path, of) for path, of in files)
    return StorageFacts(epoch, stored, frozenset(referenced))


def test_an_unreferenced_file_of_an_older_epoch_is_garbage():
    """S4: what a dead driver's attempts left behind."""
    assert garbage(facts(("a", 2))) == ("a",)


def test_a_referenced_file_is_never_garbage():
    """S4: no referenced file is ever deleted."""
    assert garbage(facts(("a", 1), referenced=["a"])) == ()


def test_a_file_of_the_living_epoch_is_never_garbage():
    """S4: a checkpoint in flight may be about to refer to it."""
    assert garbage(facts(("a", 3))) == ()


FILES = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 5))


@given(FILES, st.integers(0, 5), st.sets(st.sampled_from("abcdef")))
def test_exactly_the_unreferenced_files_of_older_epochs_are_garbage(files, epoch, referenced):
    """S4: no referenced file is ever deleted, no unreferenced one of a dead epoch stays."""
    found = garbage(facts(*files.items(), epoch=epoch, referenced=referenced))

    assert list(found) == sorted(
        path for path, of in files.items() if path not in referenced and of < epoch
    )


# The log


@pytest.mark.parametrize(
    ("oldest_kept", "epoch", "below"),
    [(20, 30, 12), (30, 20, 12), (5, 30, 0), (30, 5, 0)],
)
def test_the_log_is_cut_far_behind_all_that_a_reader_needs(oldest_kept, epoch, below):
    """C17: the oldest kept checkpoint's entry and the epoch's own stay, with a margin."""
    assert truncatable(oldest_kept, epoch, 8) == below
