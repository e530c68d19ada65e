"""Commits of one sink keep their order, a failed one is in doubt, and no sink waits for another."""

from queue import SimpleQueue
from threading import Event

import pytest
from polars.exceptions import PanicException

from weir.core.coordinator import actions, events
from weir.core.ids import AttemptId, CheckpointId, Epoch, OperatorId, SubtaskId
from weir.core.snapshots import Commit, Transaction
from weir.driver.sink_committers import SinkCommitters
from weir.errors import Fenced, JobRejected
from weir.ports.sinks import SinkOwner
from weir.ports.user_code_errors import UserCodeFailed

FILES, TABLE = OperatorId("files"), OperatorId("table")
LONG_ENOUGH = 20.0


class Committer:
    """Records calls; fails or waits on request."""

    def __init__(self):
        self.committed = []
        self.resolved = []
        self.problems = []
        self.gate = Event()
        self.gate.set()

    def commit(self, sequence, names):
        assert self.gate.wait(LONG_ENOUGH)
        self._maybe_fail()
        self.committed.append((sequence, names))

    def resolve(self, subtasks, owner, keep):
        self._maybe_fail()
        self.resolved.append((subtasks, owner, keep))

    def _maybe_fail(self):
        if self.problems:
            raise self.problems.pop(0)


class Sinks:
    """Two sinks of one driver."""

    def __init__(self):
        self.files, self.table = Committer(), Committer()
        self._heard = SimpleQueue()
        committers = {FILES: self.files, TABLE: self.table}
        self.sink_committers = SinkCommitters(committers, self._heard.put, self._heard.put)

    def commit(self, sink, sequence, *names):
        transactions = tuple(Transaction(sink, CheckpointId(sequence), name) for name in names)
        commit = Commit(sink, sequence, transactions)
        self.sink_committers.commit(actions.CommitTransactions(Epoch(1), commit))

    def resolve(self, *subtasks, keep=()):
        kept = tuple(Transaction(FILES, CheckpointId(1), name) for name in keep)
        order = actions.ResolveTransactions(9, AttemptId(4), subtasks, kept)
        self.sink_committers.resolve(Epoch(3), order)

    def next(self):
        return self._heard.get(timeout=LONG_ENOUGH)


@pytest.fixture
def sinks():
    sinks = Sinks()
    yield sinks
    sinks.sink_committers.close()


def test_a_commit_that_happened_is_confirmed(sinks):
    """R5, C19: the transactions of a number are made visible together."""
    sinks.commit(FILES, 1, "a", "b")
    assert sinks.next() == events.CommitConfirmed(FILES, 1)
    assert sinks.files.committed == [(1, ("a", "b"))]


@pytest.mark.parametrize(
    "problem",
    [OSError("gone"), Fenced("newer"), ValueError(), PanicException("native code")],
    ids=repr,
)
def test_a_commit_that_failed_is_in_doubt(sinks, problem):
    """R5: the answer may have been lost; it comes again under its number."""
    sinks.files.problems.append(problem)
    sinks.commit(FILES, 1, "a")
    assert sinks.next() == events.CommitInDoubt(FILES, 1)


def test_a_commit_that_can_never_succeed_ends_the_driver(sinks):
    """U3: the user must change something, and gets the reason."""
    rejected = JobRejected("no commit", "the table has another schema", "change it back")
    sinks.files.problems.append(rejected)
    sinks.commit(FILES, 1, "a")
    assert sinks.next() is rejected


def test_sinks_whose_place_belongs_to_one_job_hear_whose_it_is():
    """R5: before anything happens there; other committers need not know."""
    claimed = []

    class Claiming(Committer):
        def claim(self, owner):
            claimed.append(owner)

    sink_committers = SinkCommitters({FILES: Claiming(), TABLE: Committer()}, print, print)
    sink_committers.claim("s3://bucket/job", {FILES: 7}, may_take_over=True)
    sink_committers.close()

    assert claimed == [SinkOwner("s3://bucket/job", FILES, 7, may_take_over=True)]


def test_commits_of_one_sink_keep_their_order(sinks):
    """C19: a sequence without gaps."""
    sinks.files.gate.clear()
    for sequence in range(1, 6):
        sinks.commit(FILES, sequence)
    sinks.files.gate.set()
    assert [sinks.next().sequence for _ in range(5)] == [1, 2, 3, 4, 5]
    assert [sequence for sequence, _ in sinks.files.committed] == [1, 2, 3, 4, 5]


def test_a_slow_sink_delays_no_other(sinks):
    """R5."""
    sinks.files.gate.clear()
    sinks.commit(FILES, 1)
    sinks.commit(TABLE, 1)
    assert sinks.next() == events.CommitConfirmed(TABLE, 1)
    sinks.files.gate.set()
    assert sinks.next() == events.CommitConfirmed(FILES, 1)


def test_open_transactions_are_resolved_by_each_sink_for_its_own_subtasks(sinks):
    """R5: committed or aborted, never left dangling; owners are compared by epoch and attempt."""
    sinks.resolve(SubtaskId(FILES, 0), SubtaskId(TABLE, 0), SubtaskId(FILES, 1), keep=("a",))
    assert sinks.next() == events.TransactionsResolved(9)
    own = (SubtaskId(FILES, 0), SubtaskId(FILES, 1))
    assert sinks.files.resolved == [(own, (3, 4), frozenset({"a"}))]
    assert sinks.table.resolved == [((SubtaskId(TABLE, 0),), (3, 4), frozenset({"a"}))]


@pytest.mark.parametrize("problem", [OSError("gone"), PanicException("native code")], ids=repr)
def test_one_sink_that_cannot_be_asked_leaves_the_whole_unresolved(sinks, problem):
    """R5: it is asked again."""
    sinks.table.problems.append(problem)
    sinks.resolve(SubtaskId(FILES, 0), SubtaskId(TABLE, 0))
    assert sinks.next() == events.TransactionsUnresolved(9)


def test_a_resolution_waits_for_the_commits_before_it(sinks):
    """R5: what is about to be committed is not aborted under it."""
    sinks.files.gate.clear()
    sinks.commit(FILES, 1, "a")
    sinks.resolve(SubtaskId(FILES, 0))
    assert sinks.files.resolved == []
    sinks.files.gate.set()
    assert sinks.next() == events.CommitConfirmed(FILES, 1)
    assert sinks.next() == events.TransactionsResolved(9)


def test_closing_finishes_what_was_begun(sinks):
    """R5."""
    sinks.files.gate.clear()
    sinks.commit(FILES, 1, "a")
    sinks.files.gate.set()
    sinks.sink_committers.close()
    assert sinks.files.committed == [(1, ("a",))]


def test_a_commit_that_the_sinks_own_code_refuses_says_so(sinks):
    """R2, R5: the restart strategy counts it."""
    failed = UserCodeFailed("commit()", "batch 3")
    failed.__cause__ = KeyError("account")
    sinks.files.problems.append(failed)
    sinks.commit(FILES, 4, "a")
    why = "commit 4: commit() failed at batch 3: KeyError: 'account'"
    assert sinks.next() == events.CommitInDoubt(FILES, 4, why, "KeyError")


def test_an_abort_that_the_sinks_own_code_refuses_says_so(sinks):
    """R2, R5: a job must not wait for it for ever when it ends."""
    failed = UserCodeFailed("abort()", "batch 3")
    failed.__cause__ = KeyError("account")
    sinks.files.problems.append(failed)
    sinks.resolve(SubtaskId(FILES, 0))
    why = "abort() failed at batch 3: KeyError: 'account'"
    assert sinks.next() == events.TransactionsUnresolved(9, FILES, why, "KeyError")
