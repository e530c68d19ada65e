"""Brings checkpoints to completion: acks, manifest, log entry, subsumption, commits.

The log entry is the one commit point (spec C8). Nothing that depends on completion — deleting older
checkpoints, committing sinks, telling subtasks — happens before it, and manifests are written one
at a time, so that each knows exactly which transactions the one before it covered.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum

from weir.core import commit, retention
from weir.core.coordinator.aborting import (
    RETRY_MS,
    abort,
    acks_of,
    clean,
    manifest_path,
    retry_later,
    take_up,
    targets,
)
from weir.core.coordinator.actions import (
    Action,
    Answer,
    CommitTransactions,
    ConfirmStop,
    Granted,
    NotifyCompleted,
    ReportCompleted,
    TruncateLog,
    WriteManifest,
)
from weir.core.coordinator.events import (
    CommitConfirmed,
    CommitInDoubt,
    ManifestInDoubt,
    ManifestNotWritten,
    ManifestWritten,
    SubtaskAcked,
    SubtaskDeclined,
    SubtaskProgressed,
)
from weir.core.coordinator.logbook import reservation, write_entry
from weir.core.coordinator.state import (
    Abortable,
    Collected,
    Collecting,
    Completed,
    Coordinator,
    Farewell,
    Logging,
    Pending,
    Persisting,
    Preparing,
    Step,
    Ticket,
)
from weir.core.ids import CheckpointId, Millis, OperatorId, SubtaskId
from weir.core.journal import CheckpointLogged
from weir.core.reasons import Reason
from weir.core.requests import Origin
from weir.core.snapshots import Manifest, SinkLedger, Width

SAVEPOINTS_REMEMBERED = 1000
LOG_MARGIN = 8
"""Entries kept behind everything that a reader needs, for drivers that are slow to notice."""


class Fate(StrEnum):
    """What became of an ack."""

    SUCCESS = "success"
    DUPLICATE = "duplicate"
    UNKNOWN = "unknown"
    DISCARDED = "discarded"


def fate(state: Coordinator, event: SubtaskAcked) -> Fate:
    pending = state.find(event.checkpoint)
    match pending:
        case None if event.checkpoint >= state.next_id:
            return Fate.UNKNOWN
        case None:
            return Fate.DISCARDED
        case Preparing():
            return Fate.UNKNOWN
        case Collecting() if event.subtask in pending.awaiting:
            return Fate.SUCCESS
        case _:
            known = event.subtask in pending.acks
            return Fate.DUPLICATE if known else Fate.UNKNOWN


def on_acked(state: Coordinator, event: SubtaskAcked) -> Step:
    if fate(state, event) is not Fate.SUCCESS:
        return _discard(state, event)
    pending = state.find(event.checkpoint)
    assert isinstance(pending, Collecting), "only a collecting checkpoint takes acks"
    shared = (file.path for file in event.snapshot.files() if file.shared)
    state = replace(state, shared=state.shared.take(shared))
    awaiting = pending.awaiting - {event.subtask}
    acks = {**pending.acks, event.subtask: event}
    if awaiting:
        return state.with_pending(replace(pending, awaiting=awaiting, acks=acks)), ()
    assert set(acks) == set(pending.ticket.plan.wait_for), "an ack from each, and from no other"
    return state.with_pending(Collected(pending.ticket, pending.states, acks, state.now)), ()


def _discard(state: Coordinator, event: SubtaskAcked) -> Step:
    """Delete what a useless ack brought, but nothing that a checkpoint owns (spec C7)."""
    if event.checkpoint in state.savepoints:
        return state, ()
    paths = [file.path for file in event.snapshot.files()]
    owned = frozenset(path for path in paths if path in state.shared) | _owned(state, event)
    return clean(state, retention.unreferenced(paths, owned))


def _owned(state: Coordinator, event: SubtaskAcked) -> frozenset[str]:
    pending = state.find(event.checkpoint)
    used = acks_of(pending) if pending else ()
    owned = {file.path for ack in used for file in ack.snapshot.files()}
    for completed in state.completed:
        if completed.checkpoint == event.checkpoint:
            owned |= {file.path for file in completed.manifest.files()}
    return frozenset(owned)


def on_declined(state: Coordinator, event: SubtaskDeclined) -> Step:
    pending = state.find(event.checkpoint)
    if not isinstance(pending, Collecting) or event.subtask not in pending.awaiting:
        return state, ()
    return abort(state, pending, event.reason, f"{event.subtask} {event.cause}".rstrip())


def on_progressed(state: Coordinator, event: SubtaskProgressed) -> Step:
    pending = state.find(event.checkpoint)
    if not isinstance(pending, Collecting):
        return state, ()
    phases = {**pending.phases, event.subtask: event.phase}
    return state.with_pending(replace(pending, phases=phases)), ()


def persist_next(state: Coordinator) -> Step:
    """Write the manifest of the oldest checkpoint that has all its acks, one at a time."""
    if state.is_writing:
        return state, ()
    for pending in state.pending:
        if isinstance(pending, Collected):
            manifest = _manifest(state, pending)
            persisting = Persisting(pending.ticket, pending.acks, manifest, pending.at)
            return state.with_pending(persisting), (WriteManifest(manifest),)
    return state, ()


def _manifest(state: Coordinator, pending: Collected) -> Manifest:
    ticket = pending.ticket
    ledgers = _covered(state, ticket.checkpoint, pending)
    return Manifest(
        checkpoint=ticket.checkpoint,
        epoch=state.epoch,
        kind=ticket.request.kind,
        taken_at=ticket.stamp,
        location=ticket.location,
        fingerprint=state.topology.fingerprint(),
        widths=tuple(
            Width(o.id, o.parallelism, o.max_parallelism) for o in state.topology.operators
        ),
        snapshots=tuple(ack.snapshot for ack in acks_of(pending)),
        finished=ticket.plan.finished,
        coordinators=tuple(sorted(pending.states, key=lambda s: s.operator)),
        ledgers=tuple(ledgers[sink] for sink in sorted(ledgers)),
    )


def _covered(
    state: Coordinator, checkpoint: CheckpointId, pending: Pending
) -> Mapping[OperatorId, SinkLedger]:
    """The sinks' ledgers once this checkpoint is complete; a plain savepoint commits nothing."""
    if not pending.ticket.request.kind.commits:
        return state.ledgers
    transactions = [t for ack in acks_of(pending) for t in ack.snapshot.transactions]
    return {
        sink: commit.cover(ledger, checkpoint, transactions)
        for sink, ledger in state.ledgers.items()
    }


def on_manifest(
    state: Coordinator, event: ManifestWritten | ManifestNotWritten | ManifestInDoubt
) -> Step:
    pending = state.find(event.checkpoint)
    if not isinstance(pending, Persisting):
        return state, ()
    match event:
        case ManifestWritten():
            logging = Logging(pending.ticket, pending.acks, pending.manifest, pending.at)
            return write_entry(state.with_pending(logging), _entry(state, logging))
        case ManifestNotWritten():
            return abort(state, pending, Reason.FINALIZE_CHECKPOINT_FAILURE, event.cause)
        case ManifestInDoubt():
            return retry_later(state, WriteManifest(pending.manifest)), ()


def _entry(state: Coordinator, pending: Logging) -> CheckpointLogged:
    checkpoint = pending.ticket.checkpoint
    return CheckpointLogged(
        epoch=state.epoch,
        driver=state.driver,
        checkpoint=checkpoint,
        kind=pending.ticket.request.kind,
        manifest=manifest_path(pending.ticket.location),
        ids_until=reservation(state, checkpoint),
        numbers=tuple((ledger.sink, ledger.sequence) for ledger in pending.manifest.ledgers),
    )


def complete(state: Coordinator, entry: CheckpointLogged, index: int) -> Step:
    """The entry exists: the checkpoint is complete, and only now do the consequences follow."""
    pending = state.find(entry.checkpoint)
    assert isinstance(pending, Logging), "only a checkpoint that is being logged completes"
    ticket, kind = pending.ticket, pending.ticket.request.kind
    before, ledgers = state.ledgers, _covered(state, entry.checkpoint, pending)
    shared, freed = state.shared.release(ticket.base_files)
    state = replace(
        state,
        pending=tuple(p for p in state.pending if p is not pending),
        shared=shared,
        ledgers=ledgers,
        failures=state.failures.after_success(entry.checkpoint),
        pause_over_at=Millis(state.now + state.policy.min_pause_ms),
        farewell=_farewell(state, pending),
    )
    state, cleaning = clean(state, freed)
    state, subsumed = _record(state, pending, index)
    state, again = take_up(state)
    return state, (
        ReportCompleted(pending.manifest, pending.at - ticket.started_at, state.now - pending.at),
        *(commits(state, before) if kind.commits else ()),
        *_notices(state, ticket),
        *_grant(pending),
        *((ConfirmStop(),) if kind.is_synchronous else ()),
        *cleaning,
        *subsumed,
        *again,
    )


def _farewell(state: Coordinator, pending: Logging) -> Farewell | None:
    """Who may leave: all of them after a synchronous savepoint, else those at their end."""
    kind, acks = pending.ticket.request.kind, acks_of(pending)
    if not kind.commits:
        return state.farewell
    done = [ack.subtask for ack in acks if kind.is_synchronous or _is_at_end(state, ack)]
    leaving = frozenset(done) - _halves(state, done, acks)
    all_or_some = state.policy.after_tasks_finish or len(leaving) == len(acks)
    if not leaving or not all_or_some:
        return state.farewell
    due = Millis(state.now + RETRY_MS)
    return Farewell(pending.ticket.checkpoint, kind, leaving, due)


def _is_at_end(state: Coordinator, ack: SubtaskAcked) -> bool:
    """A subtask that was restarted since has to reach its end anew."""
    return ack.snapshot.reached_end and state.running.get(ack.subtask) == ack.attempt


def _halves(
    state: Coordinator, done: Iterable[SubtaskId], acks: Iterable[SubtaskAcked]
) -> frozenset[SubtaskId]:
    """Subtasks with union state stay for each other: half of them could be in no checkpoint."""
    gone = frozenset(done)
    staying = {ack.subtask.operator for ack in acks if ack.subtask not in gone}
    return frozenset(
        subtask
        for subtask in gone
        if subtask.operator in staying and state.topology.by_id[subtask.operator].has_union_state
    )


def _notices(state: Coordinator, ticket: Ticket) -> tuple[Action, ...]:
    """Everyone hears that it is complete, and those who may leave hear that too."""
    farewell, told = state.farewell, ticket.plan.notify
    going: frozenset[SubtaskId] = frozenset()
    if farewell is not None and farewell.checkpoint == ticket.checkpoint:
        going = farewell.leaving
    leaving = targets(state, (s for s in told if s in going))
    staying = targets(state, (s for s in told if s not in going))
    checkpoint, kind = ticket.checkpoint, ticket.request.kind
    notices = [NotifyCompleted(checkpoint, kind, leaving, leaving=True)] if leaving else []
    if staying or not leaving:
        notices.append(NotifyCompleted(checkpoint, kind, staying, leaving=False))
    return tuple(notices)


def repeat_farewell(state: Coordinator) -> Step:
    """A subtask that did not hear that it may leave would hold the job for ever."""
    farewell = state.farewell
    if farewell is None or farewell.due > state.now:
        return state, ()
    left = targets(state, sorted(farewell.leaving))
    if not left:
        return state, ()
    state = replace(state, farewell=replace(farewell, due=Millis(state.now + RETRY_MS)))
    return state, (NotifyCompleted(farewell.checkpoint, farewell.kind, left, leaving=True),)


def _record(state: Coordinator, pending: Logging, index: int) -> Step:
    """Keep it; let go of what it subsumes, pending and completed."""
    checkpoint, kind = pending.ticket.checkpoint, pending.ticket.request.kind
    if kind.is_savepoint:
        recent = (*state.savepoints, checkpoint)[-SAVEPOINTS_REMEMBERED:]
        return replace(state, savepoints=recent), ()
    actions: tuple[Action, ...] = ()
    for older in state.pending:
        is_older = older.ticket.checkpoint < checkpoint and isinstance(older, Abortable)
        if is_older and not older.ticket.request.kind.is_savepoint:
            state, more = abort(state, older, Reason.CHECKPOINT_SUBSUMED)
            actions += more
    assert checkpoint > state.newest, "completed ids grow"
    done = Completed(pending.manifest, index, since=checkpoint)
    kept, subsumed = retention.subsume((*state.completed, done), state.policy.retained)
    state = replace(state, completed=tuple(kept))
    state, discarded = discard(state, subsumed)
    return state, (*actions, *discarded, *_truncate(state, index))


def discard(state: Coordinator, doomed: Iterable[Completed]) -> Step:
    """Delete completed checkpoints: own files, the manifest, and shared files nobody else uses."""
    actions: tuple[Action, ...] = ()
    for completed in doomed:
        files = tuple(completed.manifest.files())
        shared, freed = state.shared.release(file.path for file in files if file.shared)
        own = tuple(file.path for file in files if not file.shared)
        manifest = manifest_path(completed.manifest.location)
        state, more = clean(replace(state, shared=shared), (*own, *freed, manifest))
        actions += more
    return state, actions


def _truncate(state: Coordinator, index: int) -> tuple[Action, ...]:
    if index % LOG_MARGIN:
        return ()
    below = retention.truncatable(state.completed[0].index, state.epoch_index, LOG_MARGIN)
    return (TruncateLog(below),) if below else ()


def _grant(pending: Logging) -> tuple[Action, ...]:
    request = pending.ticket.request
    if request.origin is not Origin.USER:
        return ()
    return (Answer(request.id, Granted(pending.ticket.checkpoint, pending.ticket.location)),)


def commits(state: Coordinator, before: Mapping[OperatorId, SinkLedger]) -> tuple[Action, ...]:
    """The commits that have become the first in their sink's line."""
    return tuple(
        CommitTransactions(state.epoch, first)
        for sink in sorted(state.ledgers)
        for first in commit.due(state.ledgers[sink])
        if sink not in before or first not in commit.due(before[sink])
    )


def on_commit(state: Coordinator, event: CommitConfirmed | CommitInDoubt) -> Step:
    ledger = state.ledgers[event.sink]
    waiting = [c for c in ledger.unconfirmed if c.sequence == event.sequence]
    if not waiting:
        return state, ()
    if isinstance(event, CommitInDoubt):
        return retry_later(state, CommitTransactions(state.epoch, waiting[0])), ()
    before = state.ledgers
    after = {**before, event.sink: commit.confirm(ledger, event.sequence)}
    state = replace(state, ledgers=after)
    return state, commits(state, before)
