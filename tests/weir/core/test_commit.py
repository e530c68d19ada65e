"""Every transaction is committed once, under a number without gaps, or aborted; none dangles."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinated_job import SAVEPOINT, WRITE, a_manifest, a_transaction
from weir.core.commit import TransactionDecisions, catch_up, confirm, cover, due, resolve, restored
from weir.core.ids import OperatorId
from weir.core.snapshots import Commit, SinkLedger, Transaction

EMPTY = SinkLedger(WRITE)


def covered(*rounds, ledger=EMPTY):
    """Completions one after the other: (checkpoint, the checkpoints whose pre-commits it holds)."""
    for checkpoint, held in rounds:
        ledger = cover(ledger, checkpoint, [a_transaction(c) for c in held])
    return ledger


def numbers(ledger):
    return [(c.sequence, [t.checkpoint for t in c.transactions]) for c in ledger.unconfirmed]


# Numbers


def test_numbers_that_were_given_in_another_line_are_repeated_empty():
    """C19: after a rollback new output comes under new numbers, and there is no gap."""
    rolled_back = catch_up(covered((1, [1])), given=3)

    assert numbers(cover(rolled_back, 9, [a_transaction(9)])) == [
        (1, [1]),
        (2, []),
        (3, []),
        (4, [9]),
    ]


def test_a_job_that_goes_on_has_nothing_to_catch_up_with():
    """C19: its own checkpoint gave the newest number."""
    ledger = covered((1, [1]), (2, [2]))

    assert catch_up(ledger, given=2) == ledger
    assert catch_up(ledger, given=0) == ledger


def test_each_completion_gives_what_it_newly_covers_the_next_number():
    """C19: a commit sequence without gaps."""
    assert numbers(covered((1, [1]), (2, [2]))) == [(1, [1]), (2, [2])]


def test_the_pre_commits_of_an_aborted_checkpoint_are_committed_by_the_next_one():
    """C9: an aborted checkpoint never aborts a sink's transaction."""
    assert numbers(covered((1, [1]), (4, [2, 3, 4]))) == [(1, [1]), (2, [2, 3, 4])]


def test_checkpoint_ids_have_gaps_and_commit_numbers_have_none():
    """C19: PySpark's writers get it as batchId, and a gap would look like a lost batch."""
    ledger = covered((1, [1]), (7, [7]), (9, [9]))

    assert [commit.sequence for commit in ledger.unconfirmed] == [1, 2, 3]


def test_a_completion_that_covers_nothing_new_uses_no_number():
    """C19: an empty commit would be a gap for a consumer that counts results."""
    assert covered((1, [1]), (2, [])).sequence == 1
    assert numbers(covered((1, [1]), (2, []), (3, [3]))) == [(1, [1]), (2, [3])]


def test_what_is_covered_is_known_also_when_there_was_nothing_to_commit():
    """C19: a ledger has the checkpoint up to which every transaction has its number."""
    assert covered((1, [1]), (5, [])).covered == 5


def test_a_transaction_that_was_covered_before_keeps_its_number():
    """C19: a subtask that missed the notification still carries it in its state."""
    assert numbers(covered((1, [1]), (2, [1, 2]))) == [(1, [1]), (2, [2])]


def test_only_the_transactions_of_its_own_sink_enter_a_ledger():
    """C19: each sink has a separate sequence."""
    other = Transaction(OperatorId("archive"), 1, "archive-0@1")

    assert numbers(cover(EMPTY, 1, [other, a_transaction(1)])) == [(1, [1])]


def test_nothing_is_covered_that_was_pre_committed_behind_the_barrier():
    """C1: output behind the barrier is not in the checkpoint; reporting it is a bug in Weir."""
    with pytest.raises(AssertionError, match="ahead"):
        cover(EMPTY, 1, [a_transaction(2)])


# One after the other


def test_at_most_one_commit_of_a_sink_is_under_way():
    """C19: numbers arrive in order."""
    ledger = covered((1, [1]), (2, [2]))

    assert [commit.sequence for commit in due(ledger)] == [1]
    assert [commit.sequence for commit in due(confirm(ledger, 1))] == [2]


def test_a_confirmation_that_comes_twice_confirms_once():
    """R5: commits are idempotent, so are their answers."""
    once = confirm(covered((1, [1]), (2, [2])), 1)

    assert confirm(once, 1) == once


def test_a_sink_that_owes_nothing_has_nothing_due():
    """R5: a commit is not repeated once it is known to have happened."""
    assert due(confirm(covered((1, [1])), 1)) == ()


# Restoring


def test_a_restored_job_repeats_an_unconfirmed_commit_under_its_old_number():
    """C19 R5: the answer was lost, or the driver died before it asked."""
    ledger = covered((3, [3]))
    manifest = replace(a_manifest(3), ledgers=(ledger,))

    assert restored(manifest, ledger) == ledger


def test_the_transactions_of_a_plain_savepoint_are_the_first_commit_of_the_job_it_restores():
    """R5: the savepoint committed nothing when it was taken, and its rows are not read again."""
    ledger = confirm(covered((1, [1])), 1)
    savepoint = replace(a_manifest(2, SAVEPOINT), ledgers=(ledger,))

    assert numbers(restored(savepoint, ledger)) == [(2, [2])]


# What a dead attempt left open


def test_an_open_transaction_is_committed_if_a_ledger_knows_it_and_aborted_if_not():
    """R5: transactions left by a dead attempt are committed or aborted, never left dangling."""
    assert resolve(["write-0@3", "write-0@2"], keep=[a_transaction(2)]) == TransactionDecisions(
        commit=("write-0@2",), abort=("write-0@3",)
    )


@given(st.sets(st.integers(1, 9)), st.sets(st.integers(1, 9)))
def test_no_open_transaction_is_left_dangling(opened, kept):
    """R5: each gets exactly one verdict, whatever is open."""
    names = {a_transaction(c).name for c in opened}
    verdicts = resolve(names, [a_transaction(c) for c in kept])

    assert sorted((*verdicts.commit, *verdicts.abort)) == sorted(names)


# Completions, aborts, lost and repeated notifications


@st.composite
def histories(draw):
    """For each checkpoint: whether it completes, and the oldest pre-commit its sink carries."""
    last = draw(st.integers(1, 12))
    return [(c, draw(st.booleans()), draw(st.integers(1, c))) for c in range(1, last + 1)]


@given(histories())
def test_every_pre_commit_is_committed_once_in_order_and_without_gaps(history):
    """C9 C19: regardless of aborts in between, and of late notifications."""
    ledger, newest = EMPTY, 0
    for checkpoint, completes, oldest in history:
        if completes:
            carried = range(min(oldest, newest + 1), checkpoint + 1)
            ledger = cover(ledger, checkpoint, [a_transaction(c) for c in carried])
            newest = checkpoint
    commits = ledger.unconfirmed

    assert [commit.sequence for commit in commits] == list(range(1, len(commits) + 1))
    assert [t.checkpoint for c in commits for t in c.transactions] == list(range(1, newest + 1))


def test_a_commit_names_its_sink_number_and_transactions():
    """C19: all that an external system needs to know it again."""
    assert covered((1, [1])).unconfirmed == (Commit(WRITE, 1, (a_transaction(1),)),)
