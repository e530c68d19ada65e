"""Feeds events to a checkpoint coordinator, in as little code as a test should need.

The job reads in one subtask, sums in two and writes in one, which is a two-phase sink. A test says
what happens next and looks at what is to be done about it; whatever a test does not care about has
one default: a snapshot is one file of ten bytes, and a sink pre-commits one transaction.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TypeVar

from weir.core.coordinator import EpochState, begin, step
from weir.core.coordinator.actions import Action
from weir.core.coordinator.coordinator_state import OwnCheckpoints, StartPoint
from weir.core.coordinator.events import (
    CheckpointRequested,
    CommitConfirmed,
    EndOfDataReached,
    EntryCreated,
    Event,
    FilesDeleted,
    LocationPrepared,
    ManifestWritten,
    NoSuccessorSeen,
    OperatorSnapshotted,
    RestartReported,
    RestorePointRequested,
    StatusReported,
    SubtaskAcked,
    SubtaskDeclined,
    Timings,
)
from weir.core.coordinator.pending_checkpoint import Collecting, Logging, Persisting, Preparing
from weir.core.ids import (
    AttemptId,
    CheckpointId,
    EdgeId,
    Epoch,
    Millis,
    OperatorId,
    RequestId,
    SubtaskId,
)
from weir.core.lifecycle import JobStatus, SubtaskFinished, SubtaskRunning, TimePassed
from weir.core.policy import Policy
from weir.core.reasons import Reason
from weir.core.snapshots import (
    CheckpointKind,
    ListHandle,
    Manifest,
    Redistribution,
    StateFile,
    SubtaskSnapshot,
    Transaction,
    Width,
)
from weir.core.topology import Edge, EdgeKind, Operator, Topology

DIRECTORY = "store/orders"
READ, SUM, WRITE = OperatorId("read"), OperatorId("sum"), OperatorId("write")
READ_0, SUM_0, SUM_1, WRITE_0 = (
    SubtaskId(READ, 0),
    SubtaskId(SUM, 0),
    SubtaskId(SUM, 1),
    SubtaskId(WRITE, 0),
)
EVERYONE = (READ_0, SUM_0, SUM_1, WRITE_0)
FIRST = AttemptId(1)

CHECKPOINT = CheckpointKind.CHECKPOINT
SAVEPOINT = CheckpointKind.SAVEPOINT
STOP = CheckpointKind.SAVEPOINT_SUSPEND
DRAIN = CheckpointKind.SAVEPOINT_TERMINATE

USUAL = Policy()
FROM_NOTHING = OwnCheckpoints()
UNTIMED = Timings()

A = TypeVar("A")


def a_topology(
    coordinated: Collection[OperatorId] = (), union: Collection[OperatorId] = ()
) -> Topology:
    def operator(name: OperatorId, parallelism: int) -> Operator:
        return Operator(
            name,
            parallelism,
            is_sink=name == WRITE,
            has_union_state=name in union,
            is_coordinated=name in coordinated,
        )

    return Topology(
        operators=(operator(READ, 1), operator(SUM, 2), operator(WRITE, 1)),
        edges=(
            Edge(EdgeId("rows"), READ, SUM, EdgeKind.HASH),
            Edge(EdgeId("sums"), SUM, WRITE, EdgeKind.GLOBAL),
        ),
    )


TOPOLOGY = a_topology()


@dataclass(frozen=True)
class Files:
    """What a snapshot in a test is made of."""

    own: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()

    def handles(self) -> tuple[ListHandle, ...]:
        files = [StateFile(path, 10) for path in self.own]
        files += [StateFile(path, 10, shared=True) for path in self.shared]
        return tuple(ListHandle("state", Redistribution.SPLIT, file, 1) for file in files)


def usual_path(checkpoint: int, subtask: SubtaskId) -> str:
    return f"{DIRECTORY}/chk-{checkpoint}/{subtask}"


def a_transaction(checkpoint: int, subtask: SubtaskId = WRITE_0) -> Transaction:
    return Transaction(subtask.operator, CheckpointId(checkpoint), f"{subtask}@{checkpoint}")


def a_snapshot(
    checkpoint: int, subtask: SubtaskId, files: Files | None = None, *, reached_end: bool = False
) -> SubtaskSnapshot:
    files = files or Files(own=(usual_path(checkpoint, subtask),))
    pre_committed = a_transaction(checkpoint, subtask)
    return SubtaskSnapshot(
        subtask,
        lists=files.handles(),
        transactions=(pre_committed,) if subtask.operator == WRITE else (),
        reached_end=reached_end,
    )


def a_manifest(
    checkpoint: int,
    kind: CheckpointKind = CHECKPOINT,
    *,
    topology: Topology = TOPOLOGY,
    snapshots: tuple[SubtaskSnapshot, ...] | None = None,
) -> Manifest:
    if snapshots is None:
        snapshots = tuple(a_snapshot(checkpoint, s) for s in topology.subtasks)
    return Manifest(
        checkpoint=CheckpointId(checkpoint),
        epoch=Epoch(1),
        kind=kind,
        taken_at=Millis(0),
        location=f"{DIRECTORY}/chk-{checkpoint}",
        fingerprint=topology.fingerprint(),
        widths=tuple(Width(o.id, o.parallelism, o.max_parallelism) for o in topology.operators),
        snapshots=snapshots,
        finished=(),
        coordinators=(),
        ledgers=(),
    )


def an_epoch(
    *owned: tuple[int, Manifest],
    start: StartPoint = FROM_NOTHING,
    next_id: int = 1,
    ids_until: int = 1000,
) -> EpochState:
    """The driver of epoch 1 has just taken entry 0 of the log, or the entry behind what it owns."""
    return EpochState(
        epoch=Epoch(1),
        driver="driver-a",
        directory=DIRECTORY,
        index=owned[-1][0] + 1 if owned else 0,
        next_id=CheckpointId(next_id),
        ids_until=CheckpointId(ids_until),
        owned=owned,
        start=start,
    )


class Story:
    """A coordinator and its events; each method returns the actions that follow."""

    def __init__(
        self,
        policy: Policy = USUAL,
        topology: Topology = TOPOLOGY,
        epoch: EpochState | None = None,
    ) -> None:
        self.state, owed = begin(policy, topology, epoch or an_epoch())
        self.owed = list(owed)
        self.asked = 0

    def hear(self, *events: Event) -> list[Action]:
        said: list[Action] = []
        for event in events:
            self.state, actions = step(self.state, event)
            said.extend(actions)
        return said

    # The job

    def up(self, *subtasks: SubtaskId, attempt: int = FIRST) -> list[Action]:
        return self.hear(*(SubtaskRunning(AttemptId(attempt), s) for s in subtasks))

    def down(self, *subtasks: SubtaskId) -> list[Action]:
        whole = set(subtasks) >= set(self.state.job.topology.subtasks)
        return self.hear(RestartReported(subtasks, whole_job=whole, why="a slot was lost"))

    def finished(self, *subtasks: SubtaskId) -> list[Action]:
        return self.hear(*(SubtaskFinished(self.state.subtasks.running[s], s) for s in subtasks))

    def at_end(self, *subtasks: SubtaskId) -> list[Action]:
        return self.hear(*(EndOfDataReached(self.state.subtasks.running[s], s) for s in subtasks))

    def status(self, status: JobStatus, draw: float = 0.5) -> list[Action]:
        return self.hear(StatusReported(status, draw))

    def at(self, now: int) -> list[Action]:
        return self.hear(TimePassed(Millis(now)))

    def later(self, millis: int) -> list[Action]:
        return self.at(self.state.clock.now + millis)

    def restore(self, *subtasks: SubtaskId, attempt: int = 2) -> list[Action]:
        """An attempt wants to restart these, and no other driver has taken the job over."""
        wanted = subtasks or self.state.job.topology.subtasks
        return self.hear(
            RestorePointRequested(AttemptId(attempt), wanted),
            NoSuccessorSeen(self.state.log.index),
        )

    # Starting a checkpoint

    def ask(
        self, kind: CheckpointKind = CHECKPOINT, name: str = "", location: str = ""
    ) -> list[Action]:
        self.asked += 1
        request = RequestId(name or f"request-{self.asked}")
        return self.hear(CheckpointRequested(request, kind, location))

    def prepare(self) -> list[Action]:
        """Operators and storage do what the checkpoint in preparation waits for."""
        (pending,) = [p for p in self.state.checkpoints.pending if isinstance(p, Preparing)]
        checkpoint = pending.properties.checkpoint
        said = [] if pending.location_ready else self.hear(LocationPrepared(checkpoint))
        for operator in sorted(pending.operators):
            said += self.hear(OperatorSnapshotted(checkpoint, operator, f"state of {operator}"))
        return said

    def start(self, kind: CheckpointKind = CHECKPOINT, name: str = "") -> list[Action]:
        """A request comes in, and the barriers go out."""
        said = self.ask(kind, name)
        if any(isinstance(p, Preparing) for p in self.state.checkpoints.pending):
            said += self.prepare()
        return said

    def trigger(self, kind: CheckpointKind = CHECKPOINT, name: str = "") -> CheckpointId:
        """The same, for a test that only wants to know the checkpoint's id."""
        self.start(kind, name)
        newest = self.state.checkpoints.pending[-1]
        assert isinstance(newest, Collecting), "no checkpoint was triggered"
        return newest.properties.checkpoint

    # Collecting

    def ack(
        self,
        checkpoint: int,
        subtask: SubtaskId,
        files: Files | None = None,
        *,
        reached_end: bool = False,
        timings: Timings = UNTIMED,
    ) -> list[Action]:
        snapshot = a_snapshot(checkpoint, subtask, files, reached_end=reached_end)
        return self.hear(SubtaskAcked(FIRST, CheckpointId(checkpoint), subtask, snapshot, timings))

    def ack_rest(self, checkpoint: int, *, reached_end: bool = False) -> list[Action]:
        """All remaining subtasks ack."""
        pending = self.state.checkpoints.find(CheckpointId(checkpoint))
        assert isinstance(pending, Collecting), "no ack is awaited"
        said: list[Action] = []
        for subtask in sorted(pending.awaiting):
            said += self.ack(checkpoint, subtask, reached_end=reached_end)
        return said

    def decline(
        self,
        checkpoint: int,
        subtask: SubtaskId,
        reason: Reason = Reason.CHECKPOINT_DECLINED,
        cause: str = "",
    ) -> list[Action]:
        return self.hear(SubtaskDeclined(FIRST, CheckpointId(checkpoint), subtask, reason, cause))

    # Completing

    def written(self, checkpoint: int) -> list[Action]:
        return self.hear(ManifestWritten(CheckpointId(checkpoint)))

    def logged(self) -> list[Action]:
        return self.hear(EntryCreated(self.state.log.index))

    def complete(self, checkpoint: int) -> list[Action]:
        """What is still missing happens; the answer is what follows from the log's entry."""
        pending = self.state.checkpoints.find(CheckpointId(checkpoint))
        if isinstance(pending, Collecting):
            self.ack_rest(checkpoint)
        if isinstance(self.state.checkpoints.find(CheckpointId(checkpoint)), Persisting):
            self.written(checkpoint)
        assert isinstance(self.state.checkpoints.find(CheckpointId(checkpoint)), Logging), (
            "it cannot complete"
        )
        return self.logged()

    def checkpoint(self, kind: CheckpointKind = CHECKPOINT) -> CheckpointId:
        """A whole one from request to completion, with all that follows from it."""
        checkpoint = self.trigger(kind)
        self.complete(checkpoint)
        self.tidy_up()
        return checkpoint

    def tidy_up(self) -> None:
        """Every deletion is done, every commit confirmed."""
        self.hear(*(FilesDeleted(cleaning.operation) for cleaning in self.state.cleanup.deletions))
        for sink in sorted(self.state.commits.ledgers):
            for commit in self.state.commits.ledgers[sink].unconfirmed:
                self.hear(CommitConfirmed(sink, commit.sequence))


def a_running_job(
    policy: Policy = USUAL, topology: Topology = TOPOLOGY, epoch: EpochState | None = None
) -> Story:
    story = Story(policy, topology, epoch)
    story.up(*topology.subtasks)
    story.status(JobStatus.RUNNING)
    return story


def each(kind: type[A], words: Iterable[object]) -> list[A]:
    return [word for word in words if isinstance(word, kind)]


def only(kind: type[A], words: Iterable[object]) -> A:
    (found,) = each(kind, words)
    return found
