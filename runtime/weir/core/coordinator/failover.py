"""Tracks running and finished subtasks, and finds the restore point of restarted ones.

A restart must not begin before it is known what the newest checkpoint is: while a manifest or an
entry is being written, the answer waits. Otherwise sources would rewind behind a checkpoint that
completes a moment later and commits the very rows that are about to be produced again. And a
driver whose job has been taken over must restart nothing: it checks the log first, and stops.
"""

from dataclasses import replace

from weir.core.coordinator.abort import abort_all
from weir.core.coordinator.actions import (
    Action,
    LookForSuccessor,
    OfferRestorePoint,
    RestoreManifest,
    RestoreNothing,
    RestorePoint,
)
from weir.core.coordinator.coordinator_state import Active, Coordinator, Step, Unclaimed
from weir.core.coordinator.events import (
    EndOfDataReached,
    NoSuccessorSeen,
    RestartReported,
    RestorePointRequested,
    SuccessorUnknown,
)
from weir.core.coordinator.pending_checkpoint import Preparing
from weir.core.coordinator.transactions import resolve_transactions
from weir.core.ids import NO_CHECKPOINT, SubtaskId
from weir.core.lifecycle import SubtaskFinished, SubtaskRunning
from weir.core.reasons import Reason


def on_running(state: Coordinator, event: SubtaskRunning) -> Step:
    running = {**state.subtasks.running, event.subtask: event.attempt}
    return replace(state, subtasks=replace(state.subtasks, running=running)), ()


def on_finished(state: Coordinator, event: SubtaskFinished) -> Step:
    if not state.subtasks.runs(event.subtask, event.attempt):
        return state, ()
    gone = frozenset({event.subtask})
    left = state.subtasks.without(gone)
    return replace(state, subtasks=replace(left, finished=left.finished | gone)), ()


def on_end_of_data(state: Coordinator, event: EndOfDataReached) -> Step:
    if not state.subtasks.runs(event.subtask, event.attempt):
        return state, ()
    at_end = state.subtasks.at_end | {event.subtask}
    return replace(state, subtasks=replace(state.subtasks, at_end=at_end)), ()


def on_restart(state: Coordinator, event: RestartReported) -> Step:
    """Acks of those subtasks will not come."""
    gone = frozenset(event.subtasks)
    left = state.subtasks.without(gone)
    left = replace(left, finished=left.finished - gone, final_notice=None)
    state = _without_messages(replace(state, subtasks=left), gone)
    reason = Reason.TASK_FAILURE if event.whole_job else Reason.JOB_FAILOVER_REGION
    return abort_all(state, reason, event.why)


def _without_messages(state: Coordinator, gone: frozenset[SubtaskId]) -> Coordinator:
    """Messages that wait for a trigger are not for the next attempt of their subtasks."""
    for pending in state.checkpoints.pending:
        if isinstance(pending, Preparing):
            held = tuple(message for message in pending.held if message.target[0] not in gone)
            state = state.with_pending(replace(pending, held=held))
    return state


def on_restore_point_requested(state: Coordinator, event: RestorePointRequested) -> Step:
    requested = (*state.restore.requested, event)
    return replace(state, restore=replace(state.restore, requested=requested)), ()


def seek_restore_point(state: Coordinator) -> Step:
    """Once nothing is being written, see whether the job is still ours to restart."""
    restore = state.restore
    is_needed = restore.requested and isinstance(state.stage, Active)
    is_writing = state.checkpoints.is_writing or state.log.writing
    if not is_needed or restore.looking or is_writing:
        return state, ()
    state = replace(state, restore=replace(restore, looking=True))
    return state, (LookForSuccessor(state.log.index),)


def on_successor(state: Coordinator, event: NoSuccessorSeen | SuccessorUnknown) -> Step:
    """An answer about an entry that we have written since is outdated: check again."""
    if not state.restore.looking:
        return state, ()
    if event.index != state.log.index:
        return replace(state, restore=replace(state.restore, looking=False)), ()
    if isinstance(event, SuccessorUnknown):
        return state.with_retry(LookForSuccessor(event.index)), ()
    restore_point, requested = newest_restore_point(state), state.restore.requested
    state = replace(state, restore=replace(state.restore, requested=(), looking=False))
    actions: tuple[Action, ...] = ()
    for request in requested:
        state, more = resolve_transactions(state, request.attempt, request.subtasks)
        offer = OfferRestorePoint(request.attempt, request.subtasks, restore_point)
        actions += (*more, offer)
    return state, actions


def newest_restore_point(state: Coordinator) -> RestorePoint:
    """What this epoch completed last, else what it began with, which is newer than all it owns."""
    newest = state.lineage
    if newest is not None:
        return RestoreManifest(newest.manifest, newest.since)
    if isinstance(state.restore.start, Unclaimed):
        return RestoreManifest(state.restore.start.manifest, NO_CHECKPOINT)
    return RestoreNothing()
