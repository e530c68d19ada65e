"""Decides the life of every checkpoint; performs none of it.

A checkpoint is correct only if it is correct under every order of acks, timeouts, restarts, storage
answers and requests. A cluster shows one order a minute; a loop shows thousands. So the whole
decision is one function of a state and an event.

Rule 1: nothing outside this package decides that a checkpoint is complete, expired or aborted.
Rule 2: nothing inside it waits, sleeps, logs, or asks what time it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from weir.core import commit
from weir.core.coordinator import (
    completion,
    deletion,
    failover,
    final_checkpoint,
    job_log,
    request_queue,
    shutdown,
    transactions,
    trigger,
)
from weir.core.coordinator.actions import Action, CommitTransactions, CreateEntry, LookForSuccessor
from weir.core.coordinator.coordinator_state import (
    Checkpoints,
    Clock,
    Commits,
    Completed,
    Coordinator,
    EpochLog,
    JobIdentity,
    Restore,
    Scheduled,
    StartPoint,
    Step,
    Terminated,
    Unclaimed,
)
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
    OperatorEventSent,
    OperatorNotSnapshotted,
    OperatorSnapshotted,
    RestartReported,
    RestorePointRequested,
    StatusReported,
    SubtaskAcked,
    SubtaskDeclined,
    SubtaskProgressed,
    SuccessorUnknown,
    TransactionsResolved,
    TransactionsUnresolved,
)
from weir.core.coordinator.pending_checkpoint import Abortable
from weir.core.ids import NO_CHECKPOINT, CheckpointId, Epoch, Millis, OperatorId
from weir.core.lifecycle import SubtaskFinished, SubtaskRunning, TimePassed
from weir.core.log_entries import CheckpointLogged, EpochTaken, IdsReserved, JobClosed
from weir.core.policy import Policy
from weir.core.shared_state_registry import SharedStateRegistry
from weir.core.snapshots import Manifest, SinkLedger
from weir.core.topology import Topology


@dataclass(frozen=True, slots=True)
class EpochState:
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
    start: StartPoint
    numbers: Mapping[OperatorId, int] = field(default_factory=dict)
    """The highest commit number of each sink, according to the log."""


def begin(
    policy: Policy, topology: Topology, epoch: EpochState
) -> tuple[Coordinator, tuple[CommitTransactions, ...]]:
    """A coordinator at the start of its epoch, and the commits that its predecessor still owed."""
    manifests = [manifest for _, manifest in epoch.owned]
    if isinstance(epoch.start, Unclaimed):
        manifests.append(epoch.start.manifest)
    assert all(m.checkpoint < epoch.next_id for m in manifests), "ids grow across restores"
    shared = SharedStateRegistry()
    for _, manifest in epoch.owned:
        shared = shared.take(file.path for file in manifest.files() if file.shared)
    state = Coordinator(
        job=JobIdentity(policy, topology, epoch.epoch, epoch.driver, epoch.directory),
        log=EpochLog(epoch.index, epoch.index + 1, epoch.next_id, epoch.ids_until),
        checkpoints=Checkpoints(
            completed=tuple(Completed(m, index, NO_CHECKPOINT) for index, m in epoch.owned),
            shared=shared,
        ),
        commits=Commits(_ledgers(topology, manifests, epoch.numbers)),
        restore=Restore(epoch.start),
    )
    return state, transactions.commit_next(state, {})


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

    All consequences of the event are decided at once: the next manifest, the next request, a
    restore that waited, the end of the job.
    """
    if isinstance(state.stage, Terminated):
        return state, ()
    state, actions = _dispatch(state, event)
    return _settle(state, actions)


def _settle(state: Coordinator, actions: tuple[Action, ...]) -> Step:
    before = None
    while before is not state:
        before = state
        for follow_up in (
            completion.persist_next,
            final_checkpoint.request_final_checkpoint,
            trigger.start_next,
            failover.seek_restore_point,
            shutdown.shut_down,
        ):
            state, more = follow_up(state)
            actions += more
    return state, actions


def _dispatch(state: Coordinator, event: Event) -> Step:  # noqa: C901, PLR0912 - a table
    match event:
        case CommitInDoubt(why=why) | TransactionsUnresolved(why=why) if (
            why and shutdown.is_failing(state)
        ):
            return shutdown.give_up(state)
        case TimePassed():
            return _on_time(state, event)
        case StatusReported() if event.status.is_terminal:
            return shutdown.on_end(state, event)
        case StatusReported():
            return trigger.follow_status(state, event)
        case SubtaskRunning():
            return failover.on_running(state, event)
        case SubtaskFinished():
            return failover.on_finished(state, event)
        case EndOfDataReached():
            return failover.on_end_of_data(state, event)
        case RestartReported():
            return failover.on_restart(state, event)
        case RestorePointRequested():
            return failover.on_restore_point_requested(state, event)
        case NoSuccessorSeen() | SuccessorUnknown():
            return failover.on_successor(state, event)
        case TransactionsResolved() | TransactionsUnresolved():
            return transactions.on_resolved(state, event)
        case CheckpointRequested():
            return request_queue.on_requested(state, event)
        case OperatorEventSent():
            return trigger.on_operator_event(state, event)
        case OperatorSnapshotted():
            return trigger.on_operator_snapshotted(state, event)
        case OperatorNotSnapshotted():
            return trigger.on_operator_not_snapshotted(state, event)
        case LocationPrepared() | LocationNotPrepared():
            return trigger.on_location(state, event)
        case SubtaskAcked():
            return completion.on_acked(state, event)
        case SubtaskDeclined():
            return completion.on_declined(state, event)
        case SubtaskProgressed():
            return completion.on_progressed(state, event)
        case ManifestWritten() | ManifestNotWritten() | ManifestInDoubt():
            return completion.on_manifest(state, event)
        case EntryCreated():
            return _on_entry_created(state, event)
        case EntryTaken():
            return job_log.on_taken(state, event)
        case EntryNotCreated():
            return job_log.on_not_created(state, event)
        case EntryInDoubt():
            return job_log.on_in_doubt(state, event)
        case FilesDeleted() | FilesNotDeleted():
            return deletion.on_deleted(state, event)
        case CommitConfirmed() | CommitInDoubt():
            return transactions.on_commit(state, event)
        case _:
            assert_never(event)


def _on_entry_created(state: Coordinator, event: EntryCreated) -> Step:
    if not state.log.expects(event.index):
        return state, ()
    state, entry, actions = job_log.written(state)
    match entry:
        case CheckpointLogged():
            state, more = completion.complete(state, entry, event.index)
        case JobClosed():
            state, more = shutdown.on_closed(state, entry)
        case IdsReserved():
            more = ()
        case EpochTaken():
            raise AssertionError("an epoch is taken before its coordinator exists")
    return state, actions + more


def _on_time(state: Coordinator, event: TimePassed) -> Step:
    state = replace(state, clock=Clock(max(state.clock.now, event.now), event.ahead))
    actions: tuple[Action, ...] = ()
    for due in (
        trigger.expire,
        trigger.request_periodic,
        final_checkpoint.repeat_final_notice,
        _retry,
    ):
        state, more = due(state)
        actions += more
    return state, actions


def _retry(state: Coordinator) -> Step:
    """What failed is tried again, unless it has been settled since."""
    retries, now = state.operations.retries, state.clock.now
    due = tuple(retry.action for retry in retries if retry.due <= now)
    if not due:
        return state, ()
    left = tuple(retry for retry in retries if retry.due > now)
    state = replace(state, operations=replace(state.operations, retries=left))
    return state, tuple(action for action in due if _is_still_wanted(state, action))


def _is_still_wanted(state: Coordinator, action: Action) -> bool:
    match action:
        case CreateEntry(index):
            return state.log.expects(index)
        case LookForSuccessor():
            return bool(state.restore.requested)
        case _:
            return True


def next_deadline(state: Coordinator) -> Millis | None:
    """When time alone will next change something; the shell need not wake before."""
    if isinstance(state.stage, Terminated):
        return None
    pending, requests, subtasks = state.checkpoints.pending, state.requests, state.subtasks
    deadlines = [p.properties.deadline for p in pending if isinstance(p, Abortable)]
    deadlines += [retry.due for retry in state.operations.retries]
    if isinstance(requests.periodic, Scheduled):
        deadlines.append(requests.periodic.due)
    notice = subtasks.final_notice
    if notice and any(s in subtasks.running for s in notice.leaving):
        deadlines.append(notice.due)
    if subtasks.at_end and requests.final_due > state.clock.now:
        deadlines.append(requests.final_due)
    return min(deadlines, default=None)


__all__ = ["EpochState", "begin", "next_deadline", "step"]
