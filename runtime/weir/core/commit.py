"""Decides which sink transactions are committed, under which number, and which are aborted.

A sink's subtask pre-commits at every barrier and carries the transaction in its state until it
is notified that a committing checkpoint covered it. The driver commits: each completed
checkpoint gives every transaction that it newly covers the sink's next number. The ledger travels
in the manifest, so a restore repeats unconfirmed commits under their old numbers, and a sink sees
1, 2, 3, … without a gap however checkpoints abort, drivers die or notices get lost (spec C9, C19,
R5).

An aborted checkpoint appears nowhere in here: the source does not rewind, so its pre-commits simply
wait for the next completion.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from weir.core.ids import CheckpointId
from weir.core.snapshots import Commit, Manifest, SinkLedger, Transaction


def cover(
    ledger: SinkLedger, checkpoint: CheckpointId, transactions: Iterable[Transaction]
) -> SinkLedger:
    """The ledger once this checkpoint is complete.

    Subtasks may still report transactions that an earlier completion covered, because they had
    not been notified of it at the barrier; those keep the number they have.
    """
    fresh = tuple(
        sorted(t for t in transactions if t.sink == ledger.sink and t.checkpoint > ledger.covered)
    )
    assert all(t.checkpoint <= checkpoint for t in fresh), "nothing is pre-committed ahead"
    covered = max(ledger.covered, checkpoint)
    if not fresh:
        return replace(ledger, covered=covered)
    commit = Commit(ledger.sink, ledger.sequence + 1, fresh)
    return SinkLedger(ledger.sink, commit.sequence, covered, (*ledger.unconfirmed, commit))


def confirm(ledger: SinkLedger, sequence: int) -> SinkLedger:
    """The external system has committed it; repeating the confirmation changes nothing."""
    left = tuple(commit for commit in ledger.unconfirmed if commit.sequence != sequence)
    return replace(ledger, unconfirmed=left)


def due(ledger: SinkLedger) -> tuple[Commit, ...]:
    """At most one commit of a sink is under way, so that numbers arrive in order."""
    return ledger.unconfirmed[:1]


def restored(manifest: Manifest, ledger: SinkLedger) -> SinkLedger:
    """The ledger of a job that starts from this manifest.

    A committing checkpoint's own transactions are in its ledger already. A plain savepoint's are
    not, and become the first commit of the job that restores it.
    """
    transactions = (t for snapshot in manifest.snapshots for t in snapshot.transactions)
    return cover(ledger, manifest.checkpoint, transactions)


def catch_up(ledger: SinkLedger, given: int) -> SinkLedger:
    """A job that goes back to an older checkpoint does not give its sinks' numbers a second time.

    A sink that has seen a number would take new output under it for done. So the numbers that were
    given since are repeated empty: done already, or a gap closed.
    """
    missing = range(ledger.sequence + 1, given + 1)
    empty = tuple(Commit(ledger.sink, number, ()) for number in missing)
    sequence = max(ledger.sequence, given)
    return replace(ledger, sequence=sequence, unconfirmed=(*ledger.unconfirmed, *empty))


@dataclass(frozen=True, slots=True)
class TransactionDecisions:
    """What becomes of the transactions that a failed attempt left open."""

    commit: tuple[str, ...]
    abort: tuple[str, ...]


def resolve(open_names: Iterable[str], keep: Iterable[Transaction]) -> TransactionDecisions:
    """Committed or aborted, never left dangling: a transaction that no ledger knows is aborted."""
    kept = {transaction.name for transaction in keep}
    names = sorted(open_names)
    return TransactionDecisions(
        commit=tuple(name for name in names if name in kept),
        abort=tuple(name for name in names if name not in kept),
    )
