"""Brings checkpoints to completion: acks, manifest, log entry, subsumption, commits.

The log entry is the one commit point (spec C8). Nothing that depends on completion — deleting older
checkpoints, committing sinks, notifying subtasks — happens before it, and manifests are written one
at a time, so that each knows exactly which transactions the one before it covered.
"""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum

from weir.core import commit, retention
from weir.core.checkpoint_paths import manifest_path
from weir.core.coordinator.abort import abort
from weir.core.coordinator.actions import (
    Action,
    ConfirmStop,
    NotifyCompleted,
    ReportCompleted,
    RequestSucceeded,
    TruncateLog,
    WriteManifest,
)
from weir.core.coordinator.coordinator_state import Completed, Coordinator, Step
from weir.core.coordinator.deletion import delete_checkpoints, delete_files, retry_deferred
from weir.core.coordinator.events import (
    ManifestInDoubt,
    ManifestNotWritten,
    ManifestWritten,
    SubtaskAcked,
    SubtaskDeclined,
    SubtaskProgressed,
)
from weir.core.coordinator.final_checkpoint import final_notice
from weir.core.coordinator.job_log import reservation, write_entry
from weir.core.coordinator.pending_checkpoint import (
    Abortable,
    CheckpointProperties,
    Collected,
    Collecting,
    Logging,
    Pending,
    Persisting,
    Preparing,
    acks_of,
)
from weir.core.coordinator.request_queue import succeed_request
from weir.core.coordinator.transactions import commit_next
from weir.core.ids import CheckpointId, OperatorId, SubtaskId
from weir.core.log_entries import CheckpointLogged
from weir.core.reasons import Reason
from weir.core.snapshots import Manifest, SinkLedger, Width

SAVEPOINTS_REMEMBERED = 1000
LOG_MARGIN = 8
"""Entries kept behind everything that a reader needs, for drivers that are slow to notice."""


class AcknowledgeResult(StrEnum):
    """What an ack changes."""

    SUCCESS = "success"
    DUPLICATE = "duplicate"
    UNKNOWN = "unknown"
    DISCARDED = "discarded"


def acknowledge_result(state: Coordinator, event: SubtaskAcked) -> AcknowledgeResult:
    pending = state.checkpoints.find(event.checkpoint)
    match pending:
        case None if event.checkpoint >= state.log.next_id:
            return AcknowledgeResult.UNKNOWN
        case None:
            return AcknowledgeResult.DISCARDED
        case Preparing():
            return AcknowledgeResult.UNKNOWN
        case Collecting() if event.subtask in pending.awaiting:
            return AcknowledgeResult.SUCCESS
        case Collecting() | Collected() | Persisting() | Logging():
            is_known = event.subtask in pending.acks
            return AcknowledgeResult.DUPLICATE if is_known else AcknowledgeResult.UNKNOWN


def on_acked(state: Coordinator, event: SubtaskAcked) -> Step:
    if acknowledge_result(state, event) is not AcknowledgeResult.SUCCESS:
        return _delete_snapshot(state, event)
    pending = state.checkpoints.find(event.checkpoint)
    assert isinstance(pending, Collecting), "only a collecting checkpoint takes acks"
    shared = (file.path for file in event.snapshot.files() if file.shared)
    checkpoints = replace(state.checkpoints, shared=state.checkpoints.shared.take(shared))
    state = replace(state, checkpoints=checkpoints)
    awaiting = pending.awaiting - {event.subtask}
    acks = {**pending.acks, event.subtask: event}
    if awaiting:
        return state.with_pending(replace(pending, awaiting=awaiting, acks=acks)), ()
    properties = pending.properties
    assert set(acks) == set(properties.plan.wait_for), "an ack from each, and from no other"
    return state.with_pending(Collected(properties, pending.states, acks, state.clock.now)), ()


def _delete_snapshot(state: Coordinator, event: SubtaskAcked) -> Step:
    """Delete what a useless ack brought, but nothing that a checkpoint owns (spec C7)."""
    if event.checkpoint in state.checkpoints.savepoints:
        return state, ()
    paths = [file.path for file in event.snapshot.files()]
    shared = frozenset(path for path in paths if path in state.checkpoints.shared)
    owned = shared | _owned(state, event)
    return delete_files(state, retention.unreferenced(paths, owned))


def _owned(state: Coordinator, event: SubtaskAcked) -> frozenset[str]:
    pending = state.checkpoints.find(event.checkpoint)
    used = acks_of(pending) if pending else ()
    owned = {file.path for ack in used for file in ack.snapshot.files()}
    for completed in state.checkpoints.completed:
        if completed.checkpoint == event.checkpoint:
            owned |= {file.path for file in completed.manifest.files()}
    return frozenset(owned)


def on_declined(state: Coordinator, event: SubtaskDeclined) -> Step:
    pending = state.checkpoints.find(event.checkpoint)
    if not isinstance(pending, Collecting) or event.subtask not in pending.awaiting:
        return state, ()
    return abort(state, pending, event.reason, f"{event.subtask} {event.cause}".rstrip())


def on_progressed(state: Coordinator, event: SubtaskProgressed) -> Step:
    pending = state.checkpoints.find(event.checkpoint)
    if not isinstance(pending, Collecting):
        return state, ()
    phases = {**pending.phases, event.subtask: event.phase}
    return state.with_pending(replace(pending, phases=phases)), ()


def persist_next(state: Coordinator) -> Step:
    """Write the manifest of the oldest checkpoint that has all its acks, one at a time."""
    if state.checkpoints.is_writing:
        return state, ()
    for pending in state.checkpoints.pending:
        if isinstance(pending, Collected):
            manifest = _manifest(state, pending)
            persisting = Persisting(pending.properties, pending.acks, manifest, pending.at)
            return state.with_pending(persisting), (WriteManifest(manifest),)
    return state, ()


def _manifest(state: Coordinator, pending: Collected) -> Manifest:
    properties, topology = pending.properties, state.job.topology
    ledgers = _covered(state, pending)
    return Manifest(
        checkpoint=properties.checkpoint,
        epoch=state.job.epoch,
        kind=properties.request.kind,
        taken_at=properties.stamp,
        location=properties.location,
        fingerprint=topology.fingerprint(),
        widths=tuple(Width(o.id, o.parallelism, o.max_parallelism) for o in topology.operators),
        snapshots=tuple(ack.snapshot for ack in acks_of(pending)),
        finished=properties.plan.finished,
        coordinators=tuple(sorted(pending.states, key=lambda s: s.operator)),
        ledgers=tuple(ledgers[sink] for sink in sorted(ledgers)),
    )


def _covered(state: Coordinator, pending: Pending) -> Mapping[OperatorId, SinkLedger]:
    """The sinks' ledgers once this checkpoint is complete; a plain savepoint commits nothing."""
    ledgers, properties = state.commits.ledgers, pending.properties
    if not properties.request.kind.commits:
        return ledgers
    transactions = [t for ack in acks_of(pending) for t in ack.snapshot.transactions]
    return {
        sink: commit.cover(ledger, properties.checkpoint, transactions)
        for sink, ledger in ledgers.items()
    }


def on_manifest(
    state: Coordinator, event: ManifestWritten | ManifestNotWritten | ManifestInDoubt
) -> Step:
    pending = state.checkpoints.find(event.checkpoint)
    if not isinstance(pending, Persisting):
        return state, ()
    match event:
        case ManifestWritten():
            logging = Logging(pending.properties, pending.acks, pending.manifest, pending.at)
            return write_entry(state.with_pending(logging), _entry(state, logging))
        case ManifestNotWritten():
            return abort(state, pending, Reason.FINALIZE_CHECKPOINT_FAILURE, event.cause)
        case ManifestInDoubt():
            return state.with_retry(WriteManifest(pending.manifest)), ()


def _entry(state: Coordinator, pending: Logging) -> CheckpointLogged:
    properties = pending.properties
    return CheckpointLogged(
        epoch=state.job.epoch,
        driver=state.job.driver,
        checkpoint=properties.checkpoint,
        kind=properties.request.kind,
        manifest=manifest_path(properties.location),
        ids_until=reservation(state, properties.checkpoint),
        numbers=tuple((ledger.sink, ledger.sequence) for ledger in pending.manifest.ledgers),
    )


def complete(state: Coordinator, entry: CheckpointLogged, index: int) -> Step:
    """The entry exists: the checkpoint is complete, and only now do the consequences follow."""
    pending = state.checkpoints.find(entry.checkpoint)
    assert isinstance(pending, Logging), "only a checkpoint that is being logged completes"
    properties, kind = pending.properties, pending.properties.request.kind
    before, now = state.commits.ledgers, state.clock.now
    state, freed = _end_pending(state, pending)
    state, deletions = delete_files(state, freed)
    state, subsumed = _record(state, pending, index)
    state, again = retry_deferred(state)
    succeeded = RequestSucceeded(properties.checkpoint, properties.location)
    return state, (
        ReportCompleted(pending.manifest, pending.at - properties.started_at, now - pending.at),
        *(commit_next(state, before) if kind.commits else ()),
        *_notices(state, properties),
        *succeed_request(properties.request, succeeded),
        *((ConfirmStop(),) if kind.is_synchronous else ()),
        *deletions,
        *subsumed,
        *again,
    )


def _end_pending(state: Coordinator, pending: Logging) -> tuple[Coordinator, tuple[str, ...]]:
    """The checkpoint is not pending any more; files of its base may be free."""
    properties, pause = pending.properties, state.job.policy.min_pause_ms
    shared, freed = state.checkpoints.shared.release(properties.base_files)
    checkpoints = replace(
        state.checkpoints.without(pending),
        shared=shared,
        failures=state.checkpoints.failures.after_success(properties.checkpoint),
    )
    state = replace(
        state,
        checkpoints=checkpoints,
        commits=replace(state.commits, ledgers=_covered(state, pending)),
        requests=replace(state.requests, pause_over_at=state.clock.after(pause)),
        subtasks=replace(state.subtasks, final_notice=final_notice(state, pending)),
    )
    return state, tuple(freed)


def _notices(state: Coordinator, properties: CheckpointProperties) -> tuple[Action, ...]:
    """Notify all subtasks that it is complete, and which of them may finish."""
    subtasks, notified = state.subtasks, properties.plan.notify
    notice = subtasks.final_notice
    going: frozenset[SubtaskId] = frozenset()
    if notice is not None and notice.checkpoint == properties.checkpoint:
        going = notice.leaving
    leaving = subtasks.targets(s for s in notified if s in going)
    staying = subtasks.targets(s for s in notified if s not in going)
    checkpoint, kind = properties.checkpoint, properties.request.kind
    notices = [NotifyCompleted(checkpoint, kind, leaving, leaving=True)] if leaving else []
    if staying or not leaving:
        notices.append(NotifyCompleted(checkpoint, kind, staying, leaving=False))
    return tuple(notices)


def _record(state: Coordinator, pending: Logging, index: int) -> Step:
    """Keep it; let go of what it subsumes, pending and completed.

    The savepoint of a stop commits output, so no older checkpoint may be logged behind it: a
    restore from that one would repeat the output.
    """
    checkpoint, kind = pending.properties.checkpoint, pending.properties.request.kind
    state, aborted = _abort_older(state, checkpoint) if kind.commits else (state, ())
    if kind.is_savepoint:
        recent = (*state.checkpoints.savepoints, checkpoint)[-SAVEPOINTS_REMEMBERED:]
        return replace(state, checkpoints=replace(state.checkpoints, savepoints=recent)), aborted
    assert checkpoint > state.checkpoints.newest, "completed ids grow"
    done = Completed(pending.manifest, index, since=checkpoint)
    completed = (*state.checkpoints.completed, done)
    kept, subsumed = retention.subsume(completed, state.job.policy.retained)
    state = replace(state, checkpoints=replace(state.checkpoints, completed=tuple(kept)))
    state, discarded = delete_checkpoints(state, subsumed)
    return state, (*aborted, *discarded, *_truncate(state, index))


def _abort_older(state: Coordinator, completed: CheckpointId) -> Step:
    actions: tuple[Action, ...] = ()
    for older in state.checkpoints.pending:
        properties = older.properties
        is_older = properties.checkpoint < completed and isinstance(older, Abortable)
        if is_older and not properties.request.kind.is_savepoint:
            state, more = abort(state, older, Reason.CHECKPOINT_SUBSUMED)
            actions += more
    return state, actions


def _truncate(state: Coordinator, index: int) -> tuple[Action, ...]:
    if index % LOG_MARGIN:
        return ()
    oldest, epoch_index = state.checkpoints.completed[0].index, state.log.epoch_index
    below = retention.truncatable(oldest, epoch_index, LOG_MARGIN)
    return (TruncateLog(below),) if below else ()
