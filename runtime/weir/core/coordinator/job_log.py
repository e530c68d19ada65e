"""Writes the job's log, one entry after the other, and decides what each answer means.

Creating an entry has four outcomes, and two of them need care. "In doubt" means that the entry may
exist, so neither it nor its checkpoint may be abandoned: the coordinator tries the same entry again
until storage confirms whose it is. "Taken" means that another driver owns the job: this one stops
and changes nothing (spec C17, C18).
"""

from dataclasses import replace

from weir.core.coordinator.abort import abort
from weir.core.coordinator.actions import Action, CreateEntry, EndDriver, ReportAborted
from weir.core.coordinator.coordinator_state import Coordinator, Step, Terminated, Unscheduled
from weir.core.coordinator.diagnosis import explain
from weir.core.coordinator.events import EntryInDoubt, EntryNotCreated, EntryTaken
from weir.core.coordinator.request_queue import drop_requests, fail_request
from weir.core.ids import NO_CHECKPOINT, CheckpointId
from weir.core.log_entries import ID_BLOCK, CheckpointLogged, Entry
from weir.core.reasons import Reason


def write_entry(state: Coordinator, entry: Entry) -> Step:
    log = replace(state.log, writing=(*state.log.writing, entry))
    state = replace(state, log=log)
    return state, (CreateEntry(log.index, entry),) if len(log.writing) == 1 else ()


def reservation(state: Coordinator, completed: CheckpointId = NO_CHECKPOINT) -> CheckpointId:
    """The ids that the epoch may use once the entry that reserves them exists."""
    log = state.log
    reach = completed + ID_BLOCK if completed else log.next_id + ID_BLOCK
    promised = [entry.ids_until for entry in log.writing]
    return CheckpointId(max(log.ids_until, reach, *promised))


def written(state: Coordinator) -> tuple[Coordinator, Entry, tuple[Action, ...]]:
    """The first entry exists and is ours; go on with the one behind it."""
    entry = state.log.writing[0]
    state = replace(state, log=replace(state.log, ids_until=entry.ids_until))
    state, actions = _next_entry(state, state.log.index + 1)
    return state, entry, actions


def on_not_created(state: Coordinator, event: EntryNotCreated) -> Step:
    """Certainly not created. A checkpoint can be aborted then; any other entry is tried again."""
    if not state.log.expects(event.index):
        return state, ()
    entry = state.log.writing[0]
    if state.log.in_doubt or not isinstance(entry, CheckpointLogged):
        return state.with_retry(CreateEntry(event.index, entry)), ()
    pending = state.checkpoints.find(entry.checkpoint)
    assert pending is not None, "an entry is written for a pending checkpoint"
    state, actions = _next_entry(state, state.log.index)
    state, aborted = abort(state, pending, Reason.FINALIZE_CHECKPOINT_FAILURE, event.cause)
    return state, actions + aborted


def on_in_doubt(state: Coordinator, event: EntryInDoubt) -> Step:
    if not state.log.expects(event.index):
        return state, ()
    state = replace(state, log=replace(state.log, in_doubt=True))
    return state.with_retry(CreateEntry(event.index, state.log.writing[0])), ()


def on_taken(state: Coordinator, event: EntryTaken) -> Step:
    """Another driver owns the job. Answer all requests, stop, delete nothing."""
    if event.index != state.log.index:
        return state, ()
    reason = Reason.CHECKPOINT_COORDINATOR_SHUTDOWN
    actions: list[Action] = []
    cause = "another driver has taken the job over"
    for pending in state.checkpoints.pending:
        message = explain(pending, reason, cause, state.clock.now)
        actions.append(ReportAborted(pending.properties.checkpoint, reason, message))
        actions += fail_request(pending.properties.request, reason, message)
    state, dropped = drop_requests(state, state.requests.queue, reason)
    state = replace(
        state,
        stage=Terminated(fenced=True),
        requests=replace(state.requests, periodic=Unscheduled()),
        checkpoints=replace(state.checkpoints, pending=()),
        operations=replace(state.operations, retries=()),
    )
    return state, (*actions, *dropped, EndDriver(state.status, fenced=True))


def _next_entry(state: Coordinator, index: int) -> Step:
    rest = state.log.writing[1:]
    state = replace(state, log=replace(state.log, index=index, writing=rest, in_doubt=False))
    return state, tuple(CreateEntry(index, entry) for entry in rest[:1])
