"""Decides the life of every checkpoint; performs none of it.

A checkpoint is correct only if it is correct under every order of acks, timeouts, restarts, storage
answers and requests. A cluster shows one order a minute; a loop shows thousands. So the whole
decision is one function of a state and an event.

Rule 1: nothing outside this package decides that a checkpoint is complete, late or dead.
Rule 2: nothing inside it waits, sleeps, logs, or asks what time it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from weir.core import commit
from weir.core.coordinator import closing, completing, logbook, restarting, triggering
from weir.core.coordinator.actions import Action, CreateEntry, LookForSuccessor
from weir.core.coordinator.events import (
    CheckpointRequested,
    CommitConfirmed,
    CommitInDoubt,
    EndOfDataReached,
    EntryCreated,
    EntryInDoubt,
    EntryNotCreated,
    EntryTaken,
    Event,
    FilesDeleted,
    FilesNotDeleted,
    LocationNotPrepared,
    LocationPrepared,
    ManifestInDoubt,
    ManifestNotWritten,
    ManifestWritten,
    NoSuccessorSeen,
    NotificationFailed,
    OperatorNotSnapshotted,
    OperatorSnapshotted,
    OperatorSpoke,
    RestartReported,
    RestorePointWanted,
    StatusReported,
    SubtaskAcked,
    SubtaskDeclined,
    SubtaskProgressed,
    SuccessorUnknown,
    TransactionsResolved,
    TransactionsUnresolved,
)
from weir.core.coordinator.state import (
    Abortable,
    Beginning,
    Borrowed,
    Completed,
    Coordinator,
    Gone,
    Step,
    Ticking,
)
from weir.core.ids import NO_CHECKPOINT, CheckpointId, Epoch, Millis, OperatorId
from weir.core.journal import CheckpointLogged, IdsReserved, JobClosed, Journal
from weir.core.lifecycle import SubtaskFinished, SubtaskRunning, TimePassed
from weir.core.policy import Policy
from weir.core.shared_files import SharedFiles
from weir.core.snapshots import Manifest, SinkLedger
from weir.core.topology import Topology


@dataclass(frozen=True, slots=True)
class Reign:
    """What a driver knows once its epoch is in the log."""

    epoch: Epoch
    driver: str
    directory: str
    index: int
    """Of the epoch's own entry."""
    next_id: CheckpointId
    ids_until: CheckpointId
    owned: tuple[tuple[int, Manifest], ...]
    """Retained checkpoints of this job with their entries, oldest first."""
    beginning: Beginning
    numbers: Mapping[OperatorId, int] = field(default_factory=dict)
    """The highest commit number that the log says each sink was given."""


def begin(policy: Policy, topology: Topology, reign: Reign) -> Step:
    """A coordinator at the start of its epoch, and the commits that its predecessor still owed."""
    manifests = [manifest for _, manifest in reign.owned]
    if isinstance(reign.beginning, Borrowed):
        manifests.append(reign.beginning.manifest)
    assert all(m.checkpoint < reign.next_id for m in manifests), "ids grow across restores"
    shared = SharedFiles()
    for _, manifest in reign.owned:
        shared = shared.take(file.path for file in manifest.files() if file.shared)
    state = Coordinator(
        policy=policy,
        topology=topology,
        epoch=reign.epoch,
        driver=reign.driver,
        directory=reign.directory,
        journal=Journal(reign.index + 1),
        epoch_index=reign.index,
        next_id=reign.next_id,
        ids_until=reign.ids_until,
        completed=tuple(Completed(m, index, NO_CHECKPOINT) for index, m in reign.owned),
        beginning=reign.beginning,
        shared=shared,
        ledgers=_ledgers(topology, manifests, reign.numbers),
    )
    return state, completing.commits(state, {})


def _ledgers(
    topology: Topology, manifests: list[Manifest], numbers: Mapping[OperatorId, int]
) -> Mapping[OperatorId, SinkLedger]:
    """The ledgers of the restored checkpoint, brought up to the numbers that were given since."""
    newest = manifests[-1] if manifests else None
    known = {ledger.sink: ledger for ledger in newest.ledgers} if newest else {}
    ledgers: dict[OperatorId, SinkLedger] = {}
    for sink in topology.sinks:
        ledger = commit.catch_up(known.get(sink, SinkLedger(sink)), numbers.get(sink, 0))
        ledgers[sink] = commit.restored(newest, ledger) if newest else ledger
    return ledgers


def step(state: Coordinator, event: Event) -> Step:
    """The only way a coordinator changes.

    Whatever the event led to is followed up at once: the next manifest, the next request, a restore
    that waited, the end of the job.
    """
    if isinstance(state.life, Gone):
        return state, ()
    state, actions = _dispatch(state, event)
    return _settle(state, actions)


def _settle(state: Coordinator, actions: tuple[Action, ...]) -> Step:
    before = None
    while before is not state:
        before = state
        for follow_up in (
            completing.persist_next,
            triggering.ask_for_the_final_one,
            triggering.start_next,
            restarting.seek_restore_point,
            closing.go_on_closing,
        ):
            state, more = follow_up(state)
            actions += more
    return state, actions


def _dispatch(state: Coordinator, event: Event) -> Step:  # noqa: C901, PLR0912 - a table
    match event:
        case CommitInDoubt(why=why) | TransactionsUnresolved(why=why) if why and closing.is_failing(
            state
        ):
            return closing.give_up(state)
        case TimePassed():
            return _on_time(state, event)
        case StatusReported() if event.status.is_terminal:
            return closing.on_end(state, event)
        case StatusReported():
            return triggering.follow_status(state, event)
        case SubtaskRunning():
            return restarting.on_running(state, event)
        case SubtaskFinished():
            return restarting.on_finished(state, event)
        case EndOfDataReached():
            return restarting.on_end_of_data(state, event)
        case RestartReported():
            return restarting.on_restart(state, event)
        case RestorePointWanted():
            return restarting.on_wanted(state, event)
        case NoSuccessorSeen() | SuccessorUnknown():
            return restarting.on_successor(state, event)
        case NotificationFailed():
            return restarting.on_notification_failed(state, event)
        case TransactionsResolved() | TransactionsUnresolved():
            return restarting.on_resolved(state, event)
        case CheckpointRequested():
            return triggering.on_requested(state, event)
        case OperatorSpoke():
            return triggering.on_operator_spoke(state, event)
        case OperatorSnapshotted():
            return triggering.on_operator_snapshotted(state, event)
        case OperatorNotSnapshotted():
            return triggering.on_operator_not_snapshotted(state, event)
        case LocationPrepared() | LocationNotPrepared():
            return triggering.on_location(state, event)
        case SubtaskAcked():
            return completing.on_acked(state, event)
        case SubtaskDeclined():
            return completing.on_declined(state, event)
        case SubtaskProgressed():
            return completing.on_progressed(state, event)
        case ManifestWritten() | ManifestNotWritten() | ManifestInDoubt():
            return completing.on_manifest(state, event)
        case EntryCreated():
            return _on_entry_created(state, event)
        case EntryTaken():
            return logbook.on_taken(state, event)
        case EntryNotCreated():
            return logbook.on_not_created(state, event)
        case EntryInDoubt():
            return logbook.on_in_doubt(state, event)
        case FilesDeleted() | FilesNotDeleted():
            return closing.on_deleted(state, event)
        case CommitConfirmed() | CommitInDoubt():
            return completing.on_commit(state, event)
        case _:
            assert_never(event)


def _on_entry_created(state: Coordinator, event: EntryCreated) -> Step:
    if not logbook.is_expected(state, event.index):
        return state, ()
    state, entry, actions = logbook.written(state)
    match entry:
        case CheckpointLogged():
            state, more = completing.complete(state, entry, event.index)
        case JobClosed():
            state, more = closing.on_closed(state, entry)
        case IdsReserved():
            more = ()
        case _:
            raise AssertionError("an epoch is taken before its coordinator exists")
    return state, actions + more


def _on_time(state: Coordinator, event: TimePassed) -> Step:
    state = replace(state, now=max(state.now, event.now))
    actions: tuple[Action, ...] = ()
    for due in (triggering.expire, triggering.tick, completing.repeat_farewell, _retry):
        state, more = due(state)
        actions += more
    return state, actions


def _retry(state: Coordinator) -> Step:
    """What failed is tried again, unless it has been settled since."""
    due = tuple(retry.action for retry in state.retries if retry.due <= state.now)
    if not due:
        return state, ()
    left = tuple(retry for retry in state.retries if retry.due > state.now)
    state = replace(state, retries=left)
    return state, tuple(action for action in due if _is_still_wanted(state, action))


def _is_still_wanted(state: Coordinator, action: Action) -> bool:
    match action:
        case CreateEntry(index):
            return logbook.is_expected(state, index)
        case LookForSuccessor():
            return bool(state.wanted)
        case _:
            return True


def next_deadline(state: Coordinator) -> Millis | None:
    """When time alone will next change something; the shell need not wake before."""
    if isinstance(state.life, Gone):
        return None
    deadlines = [p.ticket.deadline for p in state.pending if isinstance(p, Abortable)]
    deadlines += [retry.due for retry in state.retries]
    if isinstance(state.clock, Ticking):
        deadlines.append(state.clock.due)
    if state.farewell and any(s in state.running for s in state.farewell.leaving):
        deadlines.append(state.farewell.due)
    if state.at_end and state.final_due > state.now:
        deadlines.append(state.final_due)
    return min(deadlines, default=None)


__all__ = ["Reign", "begin", "next_deadline", "step"]
