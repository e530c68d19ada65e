"""Takes the final checkpoint of subtasks that have processed all data, and lets them finish.

A subtask at the end of its data runs until a completed checkpoint covers its last rows. The notice
that it may finish is repeated: a subtask that misses it would keep the job running (spec C14).
"""

from collections.abc import Iterable
from dataclasses import replace

from weir.core.coordinator.actions import NotifyCompleted
from weir.core.coordinator.coordinator_state import RETRY_MS, Active, Coordinator, FinalNotice, Step
from weir.core.coordinator.events import SubtaskAcked
from weir.core.coordinator.pending_checkpoint import Logging, acks_of
from weir.core.coordinator.request_queue import request_checkpoint
from weir.core.ids import SubtaskId
from weir.core.lifecycle import JobStatus
from weir.core.request_decider import Origin
from weir.core.snapshots import CheckpointKind


def request_final_checkpoint(state: Coordinator) -> Step:
    """All subtasks have reached the end of the data: one more checkpoint covers their last rows."""
    subtasks, pending = state.subtasks, state.checkpoints.pending
    notice = subtasks.final_notice
    leaving = frozenset(notice.leaving) if notice else frozenset()
    is_needed = (
        state.status is JobStatus.RUNNING
        and isinstance(state.stage, Active)
        and subtasks.running
        and len(subtasks.running) + len(subtasks.finished) == len(state.job.topology.subtasks)
        and len(subtasks.at_end) == len(subtasks.running)
        and not leaving.issuperset(subtasks.running)
        and state.clock.now >= state.requests.final_due
        and not any(r.origin is Origin.END_OF_DATA for r in state.requests.queue)
        and not any(p.properties.request.origin is Origin.END_OF_DATA for p in pending)
        and not any(p.properties.request.kind.is_synchronous for p in pending)
    )
    if not is_needed:
        return state, ()
    return request_checkpoint(state, Origin.END_OF_DATA, CheckpointKind.CHECKPOINT)


def final_notice(state: Coordinator, pending: Logging) -> FinalNotice | None:
    """The subtasks that may finish: all after a synchronous savepoint, else those at their end."""
    kind, acks = pending.properties.request.kind, acks_of(pending)
    if not kind.commits:
        return state.subtasks.final_notice
    done = [ack.subtask for ack in acks if kind.is_synchronous or _is_at_end(state, ack)]
    leaving = frozenset(done) - _with_union_state(state, done, acks)
    all_or_some = state.job.policy.after_tasks_finish or len(leaving) == len(acks)
    if not leaving or not all_or_some:
        return state.subtasks.final_notice
    checkpoint = pending.properties.checkpoint
    leaving |= _not_left_yet(state)
    return FinalNotice(checkpoint, kind, leaving, due=state.clock.after(RETRY_MS))


def _not_left_yet(state: Coordinator) -> frozenset[SubtaskId]:
    """Subtasks whose notice may be lost: a checkpoint without their end does not withdraw it."""
    notice = state.subtasks.final_notice
    return notice.leaving & frozenset(state.subtasks.running) if notice else frozenset()


def _is_at_end(state: Coordinator, ack: SubtaskAcked) -> bool:
    """A subtask that was restarted since has to reach its end anew."""
    return ack.snapshot.reached_end and state.subtasks.runs(ack.subtask, ack.attempt)


def _with_union_state(
    state: Coordinator, done: Iterable[SubtaskId], acks: Iterable[SubtaskAcked]
) -> frozenset[SubtaskId]:
    """Subtasks with union state stay for each other: half of them could be in no checkpoint."""
    gone = frozenset(done)
    staying = {ack.subtask.operator for ack in acks if ack.subtask not in gone}
    operators = state.job.topology.by_id
    return frozenset(
        subtask
        for subtask in gone
        if subtask.operator in staying and operators[subtask.operator].has_union_state
    )


def repeat_final_notice(state: Coordinator) -> Step:
    notice = state.subtasks.final_notice
    if notice is None or notice.due > state.clock.now:
        return state, ()
    left = state.subtasks.targets(sorted(notice.leaving))
    if not left:
        return state, ()
    again = replace(notice, due=state.clock.after(RETRY_MS))
    state = replace(state, subtasks=replace(state.subtasks, final_notice=again))
    return state, (NotifyCompleted(notice.checkpoint, notice.kind, left, leaving=True),)
