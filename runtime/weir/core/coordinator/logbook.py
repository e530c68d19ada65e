"""Writes the job's log, one entry after the other, and draws the conclusion from each answer.

Creating an entry has four outcomes and two of them are traps. "In doubt" means that the entry may
exist, so neither it nor what it stands for may be given up: the same entry is tried again until
storage says ours or another's. "Taken" means that another driver reigns: this one stops and
touches nothing (spec C17, C18).
"""

from dataclasses import replace

from weir.core.coordinator.aborting import abort, drop_requests, retry_later
from weir.core.coordinator.actions import (
    Action,
    Answer,
    CreateEntry,
    Denied,
    EndDriver,
    ReportAborted,
)
from weir.core.coordinator.diagnosis import explain
from weir.core.coordinator.events import EntryInDoubt, EntryNotCreated, EntryTaken
from weir.core.coordinator.state import Coordinator, Gone, Idle, Step
from weir.core.ids import NO_CHECKPOINT, CheckpointId
from weir.core.journal import ID_BLOCK, CheckpointLogged, Entry, Journal
from weir.core.reasons import Reason
from weir.core.requests import Origin


def write_entry(state: Coordinator, entry: Entry) -> Step:
    journal = replace(state.journal, writing=(*state.journal.writing, entry))
    state = replace(state, journal=journal)
    if len(journal.writing) > 1:
        return state, ()
    return state, (CreateEntry(journal.index, entry),)


def reservation(state: Coordinator, completed: CheckpointId = NO_CHECKPOINT) -> CheckpointId:
    """Ids that the epoch may use once the entry that says so exists."""
    reach = completed + ID_BLOCK if completed else state.next_id + ID_BLOCK
    promised = [entry.ids_until for entry in state.journal.writing]
    return CheckpointId(max(state.ids_until, reach, *promised))


def written(state: Coordinator) -> tuple[Coordinator, Entry, tuple[Action, ...]]:
    """The first entry exists and is ours; go on with the one behind it."""
    entry = state.journal.writing[0]
    state = replace(state, ids_until=entry.ids_until)
    state, actions = _next_entry(state, state.journal.index + 1)
    return state, entry, actions


def on_not_created(state: Coordinator, event: EntryNotCreated) -> Step:
    """Surely not there. A checkpoint can be given up then; anything else is tried again."""
    if not _is_current(state.journal, event.index):
        return state, ()
    entry = state.journal.writing[0]
    if state.journal.in_doubt or not isinstance(entry, CheckpointLogged):
        return retry_later(state, CreateEntry(event.index, entry)), ()
    pending = state.find(entry.checkpoint)
    assert pending is not None, "an entry is written for a pending checkpoint"
    state, actions = _next_entry(state, state.journal.index)
    state, aborted = abort(state, pending, Reason.FINALIZE_CHECKPOINT_FAILURE, event.cause)
    return state, actions + aborted


def on_in_doubt(state: Coordinator, event: EntryInDoubt) -> Step:
    if not _is_current(state.journal, event.index):
        return state, ()
    state = replace(state, journal=replace(state.journal, in_doubt=True))
    return retry_later(state, CreateEntry(event.index, state.journal.writing[0])), ()


def on_taken(state: Coordinator, event: EntryTaken) -> Step:
    """Another driver has the job. Answer who asked, stop, delete nothing."""
    if event.index != state.journal.index:
        return state, ()
    reason = Reason.CHECKPOINT_COORDINATOR_SHUTDOWN
    actions: list[Action] = []
    for pending in state.pending:
        message = explain(pending, reason, "another driver has taken the job over", state.now)
        actions.append(ReportAborted(pending.ticket.checkpoint, reason, message))
        if pending.ticket.request.origin is Origin.USER:
            actions.append(Answer(pending.ticket.request.id, Denied(reason, message)))
    state, dropped = drop_requests(state, state.queue, reason)
    state = replace(state, life=Gone(fenced=True), clock=Idle(), pending=(), retries=())
    return state, (*actions, *dropped, EndDriver(state.status, fenced=True))


def is_expected(state: Coordinator, index: int) -> bool:
    """Whether an answer about this number is about the entry being written now."""
    return _is_current(state.journal, index)


def _is_current(journal: Journal, index: int) -> bool:
    return bool(journal.writing) and index == journal.index


def _next_entry(state: Coordinator, index: int) -> Step:
    rest = state.journal.writing[1:]
    state = replace(state, journal=Journal(index, rest))
    return state, tuple(CreateEntry(index, entry) for entry in rest[:1])
