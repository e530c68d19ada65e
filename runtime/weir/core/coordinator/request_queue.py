"""Takes requests for checkpoints in, drops those that cannot be served, and answers users."""

from collections.abc import Iterable
from dataclasses import replace

from weir.core.coordinator.actions import (
    Action,
    CompleteRequest,
    ReportAborted,
    RequestFailed,
    RequestSucceeded,
)
from weir.core.coordinator.coordinator_state import RETRY_MS, Active, Coordinator, Requests, Step
from weir.core.coordinator.events import CheckpointRequested
from weir.core.ids import NO_CHECKPOINT, NO_REQUEST, RequestId
from weir.core.lifecycle import JobStatus
from weir.core.reasons import Reason
from weir.core.request_decider import Origin, Request, enqueue
from weir.core.snapshots import CheckpointKind


def on_requested(state: Coordinator, event: CheckpointRequested) -> Step:
    return request_checkpoint(state, Origin.USER, event.kind, event.request, event.location)


def request_checkpoint(
    state: Coordinator,
    origin: Origin,
    kind: CheckpointKind,
    name: RequestId = NO_REQUEST,
    location: str = "",
) -> Step:
    number = state.requests.count + 1
    policy = state.job.policy
    forced = kind.is_savepoint and not policy.unaligned
    request = Request(number, origin, kind, name, forced, location)
    state = replace(state, requests=replace(state.requests, count=number))
    if not isinstance(state.stage, Active):
        return drop_requests(state, (request,), Reason.CHECKPOINT_COORDINATOR_SHUTDOWN)
    if state.status is not JobStatus.RUNNING:
        return drop_requests(state, (request,), Reason.NOT_ALL_REQUIRED_TASKS_RUNNING)
    after = enqueue(state.requests.queue, request, policy.max_queued)
    state = replace(state, requests=replace(state.requests, queue=after.queue))
    return drop_requests(state, after.dropped, Reason.TOO_MANY_CHECKPOINT_REQUESTS)


def drop_requests(state: Coordinator, dropped: Iterable[Request], reason: Reason) -> Step:
    """Requests end that never became a checkpoint."""
    ended = tuple(dropped)
    requests = state.requests.without(ended)
    for request in ended:
        requests = delay_final_checkpoint(state, requests, request)
    failed_triggers = requests.failed_triggers + len(ended)
    state = replace(state, requests=replace(requests, failed_triggers=failed_triggers))
    actions: list[Action] = []
    for request in ended:
        actions.append(ReportAborted(NO_CHECKPOINT, reason, reason.value, failed_triggers))
        actions += fail_request(request, reason, reason.value)
    return state, tuple(actions)


def delay_final_checkpoint(state: Coordinator, requests: Requests, failed: Request) -> Requests:
    """A final checkpoint that failed rests before it is requested again."""
    if failed.origin is not Origin.END_OF_DATA:
        return requests
    rest = max(state.job.policy.min_pause_ms, RETRY_MS)
    return replace(requests, final_due=state.clock.after(rest))


def fail_request(request: Request, reason: Reason, message: str) -> tuple[Action, ...]:
    if request.origin is not Origin.USER:
        return ()
    return (CompleteRequest(request.id, RequestFailed(reason, message)),)


def succeed_request(request: Request, outcome: RequestSucceeded) -> tuple[Action, ...]:
    return (CompleteRequest(request.id, outcome),) if request.origin is Origin.USER else ()
