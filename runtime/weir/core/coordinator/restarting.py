"""Follows subtasks as they come and go, and says what a restarted one starts from.

A restart must not begin before it is known what the newest checkpoint is: while a manifest or an
entry is being written, the answer waits. Otherwise sources would rewind behind a checkpoint that
completes a moment later and commits the very rows that are about to be produced again. And a
driver whose job has been taken over must restart nothing: it looks at the log first, and stops.
"""

from dataclasses import replace

from weir.core.coordinator.aborting import abort_all, retry_later
from weir.core.coordinator.actions import (
    Action,
    DoomAttempt,
    LookForSuccessor,
    OfferRestorePoint,
    ResolveTransactions,
    RestoreManifest,
    RestoreNothing,
    RestorePoint,
)
from weir.core.coordinator.events import (
    EndOfDataReached,
    NoSuccessorSeen,
    NotificationFailed,
    RestartReported,
    RestorePointWanted,
    SuccessorUnknown,
    TransactionsResolved,
    TransactionsUnresolved,
)
from weir.core.coordinator.state import Borrowed, Coordinator, Living, Step
from weir.core.ids import NO_CHECKPOINT, AttemptId, SubtaskId
from weir.core.lifecycle import SubtaskFinished, SubtaskRunning
from weir.core.reasons import Reason
from weir.core.snapshots import Transaction


def on_running(state: Coordinator, event: SubtaskRunning) -> Step:
    return replace(state, running={**state.running, event.subtask: event.attempt}), ()


def on_finished(state: Coordinator, event: SubtaskFinished) -> Step:
    if state.running.get(event.subtask) != event.attempt:
        return state, ()
    gone = frozenset({event.subtask})
    return replace(_without(state, gone), finished=state.finished | gone), ()


def on_end_of_data(state: Coordinator, event: EndOfDataReached) -> Step:
    if state.running.get(event.subtask) != event.attempt:
        return state, ()
    return replace(state, at_end=state.at_end | {event.subtask}), ()


def on_restart(state: Coordinator, event: RestartReported) -> Step:
    """Whatever those subtasks owed to a checkpoint will not come."""
    gone = frozenset(event.subtasks)
    state = _without(state, gone)
    state = replace(
        state,
        finished=state.finished - gone,
        farewell=None,
        held=tuple(message for message in state.held if message.target[0] not in gone),
    )
    reason = Reason.TASK_FAILURE if event.whole_job else Reason.JOB_FAILOVER_REGION
    return abort_all(state, reason, event.why)


def on_notification_failed(state: Coordinator, event: NotificationFailed) -> Step:
    if state.running.get(event.subtask) != event.attempt:
        return state, ()
    reason = Reason.UNKNOWN_TASK_CHECKPOINT_NOTIFICATION_FAILURE
    why = f"{reason.value}: {event.subtask} at checkpoint {event.checkpoint}: {event.cause}"
    return state, (DoomAttempt(reason, why),)


def on_wanted(state: Coordinator, event: RestorePointWanted) -> Step:
    return replace(state, wanted=(*state.wanted, event)), ()


def seek_restore_point(state: Coordinator) -> Step:
    """Once nothing is being written, see whether the job is still ours to restart."""
    is_needed = state.wanted and isinstance(state.life, Living)
    if not is_needed or state.looking or state.is_writing or state.journal.writing:
        return state, ()
    return replace(state, looking=True), (LookForSuccessor(state.journal.index),)


def on_successor(state: Coordinator, event: NoSuccessorSeen | SuccessorUnknown) -> Step:
    """An answer about an entry that we have written since says nothing: look again."""
    if not state.looking:
        return state, ()
    if event.index != state.journal.index:
        return replace(state, looking=False), ()
    if isinstance(event, SuccessorUnknown):
        return retry_later(state, LookForSuccessor(event.index)), ()
    restore = newest_restore_point(state)
    wanted, state = state.wanted, replace(state, wanted=(), looking=False)
    actions: tuple[Action, ...] = ()
    for want in wanted:
        state, more = resolve_transactions(state, want.attempt, want.subtasks)
        actions += (*more, OfferRestorePoint(want.attempt, want.subtasks, restore))
    return state, actions


def newest_restore_point(state: Coordinator) -> RestorePoint:
    """What this epoch completed last, else what it began with, which is newer than all it owns."""
    newest = state.lineage
    if newest is not None:
        return RestoreManifest(newest.manifest, newest.since)
    if isinstance(state.beginning, Borrowed):
        return RestoreManifest(state.beginning.manifest, NO_CHECKPOINT)
    return RestoreNothing()


def resolve_transactions(
    state: Coordinator, attempt: AttemptId, subtasks: tuple[SubtaskId, ...]
) -> Step:
    """Have the open transactions of these subtasks aborted, but for those about to be committed."""
    sinks = tuple(s for s in subtasks if state.topology.by_id[s.operator].is_sink)
    if not sinks:
        return state, ()
    ticket = state.tickets + 1
    resolve = ResolveTransactions(ticket, attempt, sinks, kept_transactions(state))
    state = replace(state, tickets=ticket, resolving=(*state.resolving, resolve))
    return state, (resolve,)


def kept_transactions(state: Coordinator) -> tuple[Transaction, ...]:
    return tuple(
        transaction
        for sink in sorted(state.ledgers)
        for commit in state.ledgers[sink].unconfirmed
        for transaction in commit.transactions
    )


def on_resolved(state: Coordinator, event: TransactionsResolved | TransactionsUnresolved) -> Step:
    for resolve in state.resolving:
        if resolve.ticket == event.ticket and isinstance(event, TransactionsUnresolved):
            return retry_later(state, resolve), ()
    left = tuple(resolve for resolve in state.resolving if resolve.ticket != event.ticket)
    return replace(state, resolving=left), ()


def _without(state: Coordinator, gone: frozenset[SubtaskId]) -> Coordinator:
    return replace(
        state,
        running={s: attempt for s, attempt in state.running.items() if s not in gone},
        at_end=state.at_end - gone,
    )
