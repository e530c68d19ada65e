"""Aborts checkpoints that will not complete, and cleans up after them.

An abort has to do six things, and forgetting any one of them is a leak or a hang: release the
shared files, delete its own, notify every subtask, answer the user's request, count the failure,
and send the operators' messages that waited for its trigger.
"""

from dataclasses import replace

from weir.core.checkpoint_paths import manifest_path
from weir.core.coordinator.actions import Action, FailAttempt, NotifyAborted, ReportAborted
from weir.core.coordinator.coordinator_state import Coordinator, Step
from weir.core.coordinator.deletion import delete_files
from weir.core.coordinator.diagnosis import explain
from weir.core.coordinator.pending_checkpoint import (
    Abortable,
    Logging,
    Pending,
    Persisting,
    Preparing,
    acks_of,
)
from weir.core.coordinator.request_queue import delay_final_checkpoint, fail_request
from weir.core.failure_counter import FailureCounter
from weir.core.reasons import Reason

WHOLE_JOB_GOES_DOWN = frozenset(
    {
        Reason.CHECKPOINT_COORDINATOR_SUSPEND,
        Reason.CHECKPOINT_COORDINATOR_SHUTDOWN,
        Reason.TASK_FAILURE,
    }
)


def abort(state: Coordinator, pending: Pending, reason: Reason, cause: str = "") -> Step:
    properties = pending.properties
    message = explain(pending, reason, cause, state.clock.now)
    files = [file for ack in acks_of(pending) for file in ack.snapshot.files()]
    shared, freed = state.checkpoints.shared.release(
        (*properties.base_files, *(file.path for file in files if file.shared))
    )
    own = dict.fromkeys(file.path for file in files if not file.shared)
    has_manifest = isinstance(pending, Persisting | Logging)
    manifest = (manifest_path(properties.location),) if has_manifest else ()
    state = replace(
        state,
        checkpoints=replace(state.checkpoints.without(pending), shared=shared),
        requests=delay_final_checkpoint(state, state.requests, properties.request),
    )
    state, deletions = delete_files(state, (*own, *freed, *manifest))
    failed_triggers = state.requests.failed_triggers
    report = ReportAborted(properties.checkpoint, reason, message, failed_triggers)
    state, consequences = _count(state, pending, reason, message)
    return state, (
        report,
        *_released(state, pending),
        *deletions,
        *fail_request(properties.request, reason, message),
        *consequences,
    )


def abort_all(state: Coordinator, reason: Reason, cause: str = "") -> Step:
    """Everything that can still be aborted; what is being written ends by storage's answer."""
    actions: tuple[Action, ...] = ()
    for pending in state.checkpoints.pending:
        if isinstance(pending, Abortable):
            state, more = abort(state, pending, reason, cause)
            actions += more
    return state, actions


def _released(state: Coordinator, pending: Pending) -> tuple[Action, ...]:
    """Messages that waited for a trigger that will not come, else the notice of the abort."""
    if isinstance(pending, Preparing):
        return pending.held
    notified = state.subtasks.targets(pending.properties.plan.notify)
    return (NotifyAborted(pending.properties.checkpoint, notified),) if notified else ()


def _count(state: Coordinator, pending: Pending, reason: Reason, message: str) -> Step:
    """What the failure means for the attempt."""
    kind, checkpoint = pending.properties.request.kind, pending.properties.checkpoint
    sources_wait = kind.is_synchronous and not isinstance(pending, Preparing)
    if reason is Reason.TASK_CHECKPOINT_FAILURE or (
        sources_wait and reason not in WHOLE_JOB_GOES_DOWN
    ):
        why = f"checkpoint {checkpoint} failed with {reason.name}"
        return _with_failures(state, FailureCounter()), (FailAttempt(reason, why, message),)
    if kind.is_savepoint:
        return state, ()
    failures = state.checkpoints.failures.after_failure(checkpoint, reason)
    if failures.in_a_row <= state.job.policy.tolerable_failures:
        return _with_failures(state, failures), ()
    forgiven = FailureCounter(forgiven=failures.counted)
    why = (
        f"{failures.in_a_row} checkpoints failed in a row, the last one, checkpoint {checkpoint},"
        f" with {reason.name}"
    )
    return _with_failures(state, forgiven), (FailAttempt(reason, why, message),)


def _with_failures(state: Coordinator, failures: FailureCounter) -> Coordinator:
    return replace(state, checkpoints=replace(state.checkpoints, failures=failures))
