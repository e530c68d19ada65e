"""Has sinks commit what completed checkpoints cover, and abort what failed attempts left open."""

from collections.abc import Mapping
from dataclasses import replace

from weir.core import commit
from weir.core.coordinator.actions import CommitTransactions, ResolveTransactions
from weir.core.coordinator.coordinator_state import Coordinator, Step
from weir.core.coordinator.events import (
    CommitConfirmed,
    CommitInDoubt,
    TransactionsResolved,
    TransactionsUnresolved,
)
from weir.core.ids import AttemptId, OperatorId, SubtaskId
from weir.core.snapshots import SinkLedger, Transaction


def commit_next(
    state: Coordinator, before: Mapping[OperatorId, SinkLedger]
) -> tuple[CommitTransactions, ...]:
    """The commits that have become the first in their sink's line."""
    ledgers = state.commits.ledgers
    return tuple(
        CommitTransactions(state.job.epoch, first)
        for sink in sorted(ledgers)
        for first in commit.due(ledgers[sink])
        if sink not in before or first not in commit.due(before[sink])
    )


def on_commit(state: Coordinator, event: CommitConfirmed | CommitInDoubt) -> Step:
    before = state.commits.ledgers
    ledger = before[event.sink]
    waiting = [c for c in ledger.unconfirmed if c.sequence == event.sequence]
    if not waiting:
        return state, ()
    if isinstance(event, CommitInDoubt):
        return state.with_retry(CommitTransactions(state.job.epoch, waiting[0])), ()
    after = {**before, event.sink: commit.confirm(ledger, event.sequence)}
    state = replace(state, commits=replace(state.commits, ledgers=after))
    return state, commit_next(state, before)


def resolve_transactions(
    state: Coordinator, attempt: AttemptId, subtasks: tuple[SubtaskId, ...]
) -> Step:
    """Have the open transactions of these subtasks aborted, but for those about to be committed."""
    sinks = tuple(s for s in subtasks if state.job.topology.by_id[s.operator].is_sink)
    if not sinks:
        return state, ()
    operation = state.operations.count + 1
    resolve = ResolveTransactions(operation, attempt, sinks, kept_transactions(state))
    resolving = (*state.commits.resolving, resolve)
    state = replace(
        state,
        operations=replace(state.operations, count=operation),
        commits=replace(state.commits, resolving=resolving),
    )
    return state, (resolve,)


def kept_transactions(state: Coordinator) -> tuple[Transaction, ...]:
    ledgers = state.commits.ledgers
    return tuple(
        transaction
        for sink in sorted(ledgers)
        for unconfirmed in ledgers[sink].unconfirmed
        for transaction in unconfirmed.transactions
    )


def on_resolved(state: Coordinator, event: TransactionsResolved | TransactionsUnresolved) -> Step:
    resolving = state.commits.resolving
    for resolve in resolving:
        if resolve.operation == event.operation and isinstance(event, TransactionsUnresolved):
            return state.with_retry(resolve), ()
    left = tuple(resolve for resolve in resolving if resolve.operation != event.operation)
    return replace(state, commits=replace(state.commits, resolving=left)), ()
