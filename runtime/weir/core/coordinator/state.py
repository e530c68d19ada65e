"""The checkpoint coordinator's whole memory, as one value.

A checkpoint moves Preparing → Collecting → Collected → Persisting → Logging → Completed, and each
stage is a type that holds what is known then and nothing that is not. Up to Collected it can be
aborted by anything; from Persisting on it ends only by what storage answers, because the entry that
completes it may already exist.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from weir.core.coordinator.actions import Action, ResolveTransactions, SendToSubtask
from weir.core.coordinator.events import Phase, RestorePointWanted, SubtaskAcked
from weir.core.failures import Failures
from weir.core.ids import (
    NO_CHECKPOINT,
    AttemptId,
    CheckpointId,
    Epoch,
    Millis,
    OperatorId,
    SubtaskId,
)
from weir.core.journal import Journal
from weir.core.lifecycle import JobStatus
from weir.core.plan import Plan
from weir.core.policy import Policy
from weir.core.requests import Queue, Request
from weir.core.shared_files import SharedFiles
from weir.core.snapshots import CheckpointKind, CoordinatorSnapshot, Manifest, SinkLedger
from weir.core.topology import Topology


@dataclass(frozen=True, slots=True)
class Ticket:
    """What is fixed about a checkpoint the moment it starts."""

    checkpoint: CheckpointId
    request: Request
    plan: Plan
    started_at: Millis
    stamp: Millis
    """What the wall clock showed then."""
    deadline: Millis
    location: str
    base: CheckpointId
    base_files: tuple[str, ...]
    """Shared files of the base, held until this checkpoint has ended."""


@dataclass(frozen=True, slots=True)
class Preparing:
    """The operators' parts in the driver are being snapshotted; no barrier exists yet."""

    ticket: Ticket
    operators: frozenset[OperatorId]
    location_ready: bool
    states: tuple[CoordinatorSnapshot, ...] = ()


@dataclass(frozen=True, slots=True)
class Collecting:
    """Barriers are in flight; some subtasks have not acked."""

    ticket: Ticket
    states: tuple[CoordinatorSnapshot, ...]
    awaiting: frozenset[SubtaskId]
    acks: Mapping[SubtaskId, SubtaskAcked] = field(default_factory=dict)
    phases: Mapping[SubtaskId, Phase] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Collected:
    """Every subtask acked; another checkpoint's manifest or entry is still being written."""

    ticket: Ticket
    states: tuple[CoordinatorSnapshot, ...]
    acks: Mapping[SubtaskId, SubtaskAcked]
    at: Millis


@dataclass(frozen=True, slots=True)
class Persisting:
    """The manifest is being written."""

    ticket: Ticket
    acks: Mapping[SubtaskId, SubtaskAcked]
    manifest: Manifest
    at: Millis


@dataclass(frozen=True, slots=True)
class Logging:
    """The manifest is durable and the entry that completes the checkpoint is being created."""

    ticket: Ticket
    acks: Mapping[SubtaskId, SubtaskAcked]
    manifest: Manifest
    at: Millis


Pending = Preparing | Collecting | Collected | Persisting | Logging
Abortable = Preparing | Collecting | Collected


@dataclass(frozen=True, slots=True)
class Completed:
    """A checkpoint that this job owns and may restore from."""

    manifest: Manifest
    index: int
    """Of its entry in the log; a claimed one has the number of the epoch that claimed it."""
    since: CheckpointId
    """Its id if this epoch completed it, else zero."""

    @property
    def checkpoint(self) -> CheckpointId:
        return self.manifest.checkpoint


@dataclass(frozen=True, slots=True)
class FromNothing:
    """The job began empty."""


@dataclass(frozen=True, slots=True)
class Borrowed:
    """The job began from a checkpoint that it does not own and must not touch."""

    manifest: Manifest


Beginning = FromNothing | Borrowed


@dataclass(frozen=True, slots=True)
class Idle:
    """The periodic scheduler is off."""


@dataclass(frozen=True, slots=True)
class Ticking:
    """The next periodic request is due then."""

    due: Millis


@dataclass(frozen=True, slots=True)
class Living:
    """The job goes on."""


@dataclass(frozen=True, slots=True)
class Closing:
    """The job has ended; what is under way is being brought to its end."""

    status: JobStatus
    settled: bool = False
    """The transactions that will never be committed are being aborted, or have been."""


@dataclass(frozen=True, slots=True)
class Gone:
    """Nothing more is decided here: the job is closed, or another driver has it."""

    fenced: bool


@dataclass(frozen=True, slots=True)
class Closed:
    """The log says that the job is over; only deletions are still under way."""

    status: JobStatus


Life = Living | Closing | Closed | Gone


@dataclass(frozen=True, slots=True)
class Farewell:
    """A completion after which these subtasks have nothing left to do."""

    checkpoint: CheckpointId
    kind: CheckpointKind
    leaving: frozenset[SubtaskId]
    due: Millis


class Cleaning(NamedTuple):
    """A deletion under way."""

    ticket: int
    paths: tuple[str, ...]
    tries: int


class Retry(NamedTuple):
    """An action whose last try failed or stayed without an answer."""

    due: Millis
    action: Action


@dataclass(frozen=True, slots=True)
class Coordinator:
    """One driver's knowledge of all checkpoints of its job."""

    policy: Policy
    topology: Topology
    epoch: Epoch
    driver: str
    directory: str
    journal: Journal
    epoch_index: int
    next_id: CheckpointId
    ids_until: CheckpointId
    now: Millis = Millis(0)
    """Grows whatever is done to the wall clock: every deadline is measured by it."""
    ahead: int = 0
    """How far the wall clock is ahead of that."""
    status: JobStatus = JobStatus.CREATED
    life: Life = Living()
    clock: Idle | Ticking = Idle()
    running: Mapping[SubtaskId, AttemptId] = field(default_factory=dict)
    finished: frozenset[SubtaskId] = frozenset()
    at_end: frozenset[SubtaskId] = frozenset()
    """Running subtasks that have processed their last row."""
    final_due: Millis = Millis(0)
    """Before this a failed final checkpoint is not tried again."""
    queue: Queue = ()
    asked: int = 0
    pending: tuple[Pending, ...] = ()
    completed: tuple[Completed, ...] = ()
    beginning: Beginning = FromNothing()
    savepoints: tuple[CheckpointId, ...] = ()
    """Recently completed savepoints, whose files a late ack must not delete."""
    shared: SharedFiles = SharedFiles()
    failures: Failures = Failures()
    failed_triggers: int = 0
    pause_over_at: Millis = Millis(0)
    cleaning: tuple[Cleaning, ...] = ()
    put_off: tuple[Cleaning, ...] = ()
    """Deletions that failed too often to hold anything up, the next to be tried first."""
    farewell: Farewell | None = None
    """The completion that lets subtasks leave, repeated until they have left."""
    resolving: tuple[ResolveTransactions, ...] = ()
    tickets: int = 0
    retries: tuple[Retry, ...] = ()
    ledgers: Mapping[OperatorId, SinkLedger] = field(default_factory=dict)
    held: tuple[SendToSubtask, ...] = ()
    wanted: tuple[RestorePointWanted, ...] = ()
    looking: bool = False
    """Whether another driver reigns is being looked up."""

    @property
    def stamp(self) -> Millis:
        """What the wall clock shows, for people and for other processes."""
        return Millis(self.now + self.ahead)

    def find(self, checkpoint: CheckpointId) -> Pending | None:
        for pending in self.pending:
            if pending.ticket.checkpoint == checkpoint:
                return pending
        return None

    def with_pending(self, changed: Pending) -> "Coordinator":
        """The same checkpoint, further on."""
        checkpoint = changed.ticket.checkpoint
        return replace(
            self,
            pending=tuple(
                changed if p.ticket.checkpoint == checkpoint else p for p in self.pending
            ),
        )

    @property
    def is_writing(self) -> bool:
        """A manifest or an entry is under way, so nobody knows yet what the newest one is."""
        return any(isinstance(p, Persisting | Logging) for p in self.pending)

    @property
    def lineage(self) -> Completed | None:
        """The newest completed checkpoint that the running state descends from.

        A job that began from a borrowed one owns older checkpoints at best to delete them.
        """
        if not self.completed:
            return None
        newest = self.completed[-1]
        return None if isinstance(self.beginning, Borrowed) and not newest.since else newest

    @property
    def newest(self) -> CheckpointId:
        return self.completed[-1].checkpoint if self.completed else NO_CHECKPOINT


Step = tuple[Coordinator, tuple[Action, ...]]
