"""The checkpoint coordinator's whole state, as one value of a few parts.

Each part holds the fields that change together, and each module of this package works mainly on
one or two parts: ``trigger`` on the requests and the pending checkpoints, ``job_log`` on the log,
``deletion`` on the cleanup, and so on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from weir.core.coordinator.actions import Action, ResolveTransactions, Target
from weir.core.coordinator.events import RestorePointRequested
from weir.core.coordinator.pending_checkpoint import Logging, Pending, Persisting
from weir.core.failure_counter import FailureCounter
from weir.core.ids import (
    NO_CHECKPOINT,
    AttemptId,
    CheckpointId,
    Epoch,
    Millis,
    OperatorId,
    SubtaskId,
)
from weir.core.lifecycle import JobStatus
from weir.core.log_entries import Entry
from weir.core.policy import Policy
from weir.core.request_decider import Queue, Request
from weir.core.shared_state_registry import SharedStateRegistry
from weir.core.snapshots import CheckpointKind, Manifest, SinkLedger
from weir.core.topology import Topology

RETRY_MS = 200
"""How long a failed try of anything rests before the next."""


@dataclass(frozen=True, slots=True)
class JobIdentity:
    """What never changes during the epoch of one driver."""

    policy: Policy
    topology: Topology
    epoch: Epoch
    driver: str
    directory: str


@dataclass(frozen=True, slots=True)
class Clock:
    """The driver's time, as the last TimePassed reported it."""

    now: Millis = Millis(0)
    """Monotonic, even if the wall clock is set: every deadline is measured by it."""
    ahead: int = 0
    """How far the wall clock is ahead of that."""

    @property
    def stamp(self) -> Millis:
        """What the wall clock shows, for people and for other processes."""
        return Millis(self.now + self.ahead)

    def after(self, delay_ms: int) -> Millis:
        return Millis(self.now + delay_ms)


@dataclass(frozen=True, slots=True)
class Active:
    """The job runs."""


@dataclass(frozen=True, slots=True)
class ShuttingDown:
    """The job has ended; what is under way is being brought to its end."""

    status: JobStatus
    settled: bool = False
    """The transactions that will never be committed are being aborted, or have been."""


@dataclass(frozen=True, slots=True)
class LogClosed:
    """The log is closed; only deletions are still under way."""

    status: JobStatus


@dataclass(frozen=True, slots=True)
class Terminated:
    """The coordinator decides nothing more: the job is closed, or another driver has it."""

    fenced: bool


Stage = Active | ShuttingDown | LogClosed | Terminated


@dataclass(frozen=True, slots=True)
class FinalNotice:
    """A completion after which these subtasks have nothing left to do."""

    checkpoint: CheckpointId
    kind: CheckpointKind
    leaving: frozenset[SubtaskId]
    due: Millis


@dataclass(frozen=True, slots=True)
class Subtasks:
    """Which subtasks run, in which attempt, and which have nothing left to do."""

    running: Mapping[SubtaskId, AttemptId] = field(default_factory=dict)
    finished: frozenset[SubtaskId] = frozenset()
    at_end: frozenset[SubtaskId] = frozenset()
    """Running subtasks that have processed their last row."""
    final_notice: FinalNotice | None = None
    """The completion that lets subtasks leave, repeated until they have left."""

    def runs(self, subtask: SubtaskId, attempt: AttemptId) -> bool:
        return self.running.get(subtask) == attempt

    def targets(self, subtasks: Iterable[SubtaskId]) -> tuple[Target, ...]:
        """Those of them that run, each with the attempt that it runs in."""
        return tuple((s, self.running[s]) for s in subtasks if s in self.running)

    def without(self, gone: frozenset[SubtaskId]) -> "Subtasks":
        running = {s: attempt for s, attempt in self.running.items() if s not in gone}
        return replace(self, running=running, at_end=self.at_end - gone)


@dataclass(frozen=True, slots=True)
class Unscheduled:
    """The periodic scheduler is off."""


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The next periodic request is due then."""

    due: Millis


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests for checkpoints that wait, and what decides when the next may start."""

    queue: Queue = ()
    count: int = 0
    """Of all requests so far."""
    periodic: Unscheduled | Scheduled = Unscheduled()
    pause_over_at: Millis = Millis(0)
    final_due: Millis = Millis(0)
    """Before this a failed final checkpoint is not tried again."""
    failed_triggers: int = 0

    def without(self, dropped: tuple[Request, ...]) -> "Requests":
        return replace(self, queue=tuple(r for r in self.queue if r not in dropped))


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
class Checkpoints:
    """The checkpoints in progress, the retained ones, and the files that they share."""

    pending: tuple[Pending, ...] = ()
    completed: tuple[Completed, ...] = ()
    savepoints: tuple[CheckpointId, ...] = ()
    """Recently completed savepoints, whose files a late ack must not delete."""
    shared: SharedStateRegistry = SharedStateRegistry()
    failures: FailureCounter = FailureCounter()

    def find(self, checkpoint: CheckpointId) -> Pending | None:
        for pending in self.pending:
            if pending.properties.checkpoint == checkpoint:
                return pending
        return None

    def with_pending(self, changed: Pending) -> "Checkpoints":
        """The same checkpoint, further on."""
        checkpoint = changed.properties.checkpoint
        pending = tuple(
            changed if p.properties.checkpoint == checkpoint else p for p in self.pending
        )
        return replace(self, pending=pending)

    def without(self, ended: Pending) -> "Checkpoints":
        return replace(self, pending=tuple(p for p in self.pending if p is not ended))

    @property
    def is_writing(self) -> bool:
        """A manifest or an entry is under way, so the newest checkpoint is not known yet."""
        return any(isinstance(p, Persisting | Logging) for p in self.pending)

    @property
    def newest(self) -> CheckpointId:
        return self.completed[-1].checkpoint if self.completed else NO_CHECKPOINT


@dataclass(frozen=True, slots=True)
class EpochLog:
    """This epoch's end of the job's log, and the checkpoint ids that the log reserves for it."""

    epoch_index: int
    """The number of the epoch's own entry."""
    index: int
    """The number that the next entry takes."""
    next_id: CheckpointId
    ids_until: CheckpointId
    writing: tuple[Entry, ...] = ()
    """The entry being created, and those that wait behind it."""
    in_doubt: bool = False
    """A try to create the first one may have succeeded without an answer."""

    def expects(self, index: int) -> bool:
        """Whether an answer about this number is about the entry being created now."""
        return bool(self.writing) and index == self.index


@dataclass(frozen=True, slots=True)
class Commits:
    """What the sinks still have to commit, and the open transactions being aborted."""

    ledgers: Mapping[OperatorId, SinkLedger] = field(default_factory=dict)
    resolving: tuple[ResolveTransactions, ...] = ()


class Deletion(NamedTuple):
    """A deletion of files under way."""

    operation: int
    paths: tuple[str, ...]
    tries: int


@dataclass(frozen=True, slots=True)
class Cleanup:
    """Files that no checkpoint refers to any more, on their way out."""

    deletions: tuple[Deletion, ...] = ()
    deferred: tuple[Deletion, ...] = ()
    """Deletions that failed too often to hold anything up, the next to be tried first."""

    def without(self, ended: Deletion) -> "Cleanup":
        return replace(self, deletions=tuple(d for d in self.deletions if d is not ended))


@dataclass(frozen=True, slots=True)
class OwnCheckpoints:
    """The job starts empty or from a checkpoint that it owns."""


@dataclass(frozen=True, slots=True)
class Unclaimed:
    """The job starts from a checkpoint that it does not own and must not touch (NO_CLAIM)."""

    manifest: Manifest


StartPoint = OwnCheckpoints | Unclaimed


@dataclass(frozen=True, slots=True)
class Restore:
    """What the epoch started from, and the attempts that wait for a restore point."""

    start: StartPoint = OwnCheckpoints()
    requested: tuple[RestorePointRequested, ...] = ()
    looking: bool = False
    """The driver is looking whether another one has taken the job over."""


class Retry(NamedTuple):
    """An action whose last try failed or stayed without an answer."""

    due: Millis
    action: Action


@dataclass(frozen=True, slots=True)
class Operations:
    """Deletions and resolutions by number, and actions of any kind that are tried again."""

    count: int = 0
    retries: tuple[Retry, ...] = ()


@dataclass(frozen=True, slots=True)
class Coordinator:
    """One driver's knowledge of all checkpoints of its job."""

    job: JobIdentity
    log: EpochLog
    clock: Clock = Clock()
    status: JobStatus = JobStatus.CREATED
    stage: Stage = Active()
    subtasks: Subtasks = Subtasks()
    requests: Requests = Requests()
    checkpoints: Checkpoints = Checkpoints()
    commits: Commits = Commits()
    cleanup: Cleanup = Cleanup()
    restore: Restore = Restore()
    operations: Operations = Operations()

    def with_pending(self, changed: Pending) -> "Coordinator":
        """The same checkpoint, further on."""
        return replace(self, checkpoints=self.checkpoints.with_pending(changed))

    def with_retry(self, action: Action) -> "Coordinator":
        """The action is tried again after a rest."""
        retry = Retry(self.clock.after(RETRY_MS), action)
        retries = (*self.operations.retries, retry)
        return replace(self, operations=replace(self.operations, retries=retries))

    @property
    def lineage(self) -> Completed | None:
        """The newest completed checkpoint that the running state descends from.

        A job that starts from an unclaimed one owns older checkpoints at best to delete them.
        """
        completed = self.checkpoints.completed
        if not completed:
            return None
        newest = completed[-1]
        return None if isinstance(self.restore.start, Unclaimed) and not newest.since else newest


Step = tuple[Coordinator, tuple[Action, ...]]
