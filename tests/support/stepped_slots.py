"""Real slots without processes: the test steps each mailbox, and plays the driver.

Exchanges are real and talk over loopback. Work beside the mailbox is done at once, or when the test
says so; uploads and reads have an executor each. Nothing waits: a step that has nothing to
do returns.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TypeVar

from weir.core.barriers import AlignmentType, Barrier
from weir.core.coordinator.events import SubtaskAcked
from weir.core.enumerator import AssignSplit, NoMoreSplits
from weir.core.ids import (
    NO_CHECKPOINT,
    AttemptId,
    CheckpointId,
    Epoch,
    Millis,
    SlotId,
    SplitId,
    SubtaskId,
)
from weir.core.lifecycle import SubtaskRunning
from weir.core.policy import Mode
from weir.core.rescale import StateAssignment, assign_state
from weir.core.snapshots import CheckpointKind, Manifest, Width
from weir.dataflow.physical import JobGraph
from weir.exchange import Exchange
from weir.slot.mailbox import Mailbox
from weir.slot.snapshot_storage import SnapshotStorage, SnapshotStorageSettings
from weir.slot.subtask_deployment import (
    AlignmentSettings,
    SlotExecutors,
    StageFactory,
    SubtaskDeployer,
)
from weir.state.memory.memory_backend import MemoryBackend
from weir.wire.clocks import ProcessClock
from weir.wire.control_messages import (
    CancelSubtasks,
    CheckpointAborted,
    CheckpointCompleted,
    DeploySubtasks,
    SubtaskAddress,
    SubtaskMessage,
)

SECRET = b"the secret of this very job....."
EPOCH = Epoch(1)
FIRST, SECOND = AttemptId(1), AttemptId(2)
USUAL = AlignmentSettings(Mode.EXACTLY_ONCE, declines_after_end=False)
IN_MEMORY = SnapshotStorageSettings("memory://weir", inline_threshold=1 << 20, memory_limit=1 << 20)

_LONG_ENOUGH = 20.0
_QUIET_STEPS = 40

T = TypeVar("T")


class SteppedExecutor(Executor):
    """Does the work at once, or keeps it until it is released."""

    def __init__(self) -> None:
        self.is_held = False
        self._kept: list[Callable[[], None]] = []

    def submit(self, fn: Callable[..., T], /, *args: object, **kwargs: object) -> Future[T]:
        future: Future[T] = Future()

        def work() -> None:
            future.set_result(fn(*args, **kwargs))

        if self.is_held:
            self._kept.append(work)
        else:
            work()
        return future

    def release(self) -> None:
        """Do what was kept, and go on doing at once what comes."""
        self.is_held = False
        kept, self._kept = self._kept, []
        for work in kept:
            work()


@dataclass
class SteppedSlot:
    """One slot."""

    exchange: Exchange
    mailbox: Mailbox
    uploading: SteppedExecutor
    """Uploads and deletes."""
    reading: SteppedExecutor
    """Reads what is restored."""

    def step(self) -> None:
        self.exchange.wake()
        self.mailbox.step()


@dataclass
class SteppedSlots:
    """All slots of a job and what they have reported."""

    graph: JobGraph
    slots: list[SteppedSlot]
    subtask_addresses: dict[SubtaskId, int]
    reports: list[object] = field(default_factory=list)
    now: int = 0
    """By the slots' clock, which goes on by one with every step."""
    skew: int = 0
    """How far the wall clock of their machine was set."""

    # -- the driver's part

    def host(
        self,
        attempt: AttemptId = FIRST,
        restored: Manifest | None = None,
        *,
        only: int | None = None,
    ) -> None:
        """Launch everything, in all slots or in one of them."""
        restored_state = _restored_state(self.graph, restored)
        subtask_addresses = tuple(
            SubtaskAddress(subtask, self.slots[at].exchange.name, *self.slots[at].exchange.address)
            for subtask, at in self.subtask_addresses.items()
        )
        checkpoint = restored.checkpoint if restored else NO_CHECKPOINT
        for number, slot in enumerate(self.slots):
            own = tuple(
                restored_state[s] for s, at in self.subtask_addresses.items() if at == number
            )
            if only in (None, number):
                slot.mailbox.post(
                    DeploySubtasks(EPOCH, attempt, checkpoint, own, subtask_addresses)
                )

    def reset(self, *subtasks: SubtaskId) -> None:
        for subtask in subtasks:
            self._home(subtask).mailbox.post(CancelSubtasks((subtask,)))

    def send(self, subtask: SubtaskId, mail: object, attempt: AttemptId = FIRST) -> None:
        self._home(subtask).mailbox.post(SubtaskMessage(subtask, attempt, mail))

    def assign(
        self, subtask: SubtaskId, *splits: SplitId, last: bool = False, attempt: AttemptId = FIRST
    ) -> None:
        """As an enumerator does: to a reader that runs."""
        self.until(
            lambda: SubtaskRunning(attempt, subtask) in self.reports,
            self.subtask_addresses[subtask],
        )
        for split in splits:
            self.send(subtask, AssignSplit(split), attempt)
        if last:
            self.send(subtask, NoMoreSplits(), attempt)

    def complete(
        self, barrier: Barrier, *, leaving: bool = False, attempt: AttemptId = FIRST
    ) -> None:
        for subtask in self.graph.topology.subtasks:
            self.send(
                subtask, CheckpointCompleted(barrier.checkpoint, barrier.kind, leaving), attempt
            )

    def abort(self, checkpoint: int) -> None:
        for subtask in self.graph.topology.subtasks:
            self.send(subtask, CheckpointAborted(CheckpointId(checkpoint)))

    # -- time

    def step(self, *numbers: int) -> None:
        self.now += 1
        for number in numbers or range(len(self.slots)):
            self.slots[number].step()

    def until(self, done: Callable[[], object], *numbers: int) -> None:
        deadline = monotonic() + _LONG_ENOUGH
        while not done():
            assert monotonic() < deadline, f"these are all reports: {self.reports}"
            self.step(*numbers)

    def settle(self, *numbers: int) -> None:
        """Long enough for everything that can happen to have happened."""
        for _ in range(_QUIET_STEPS):
            self.step(*numbers)

    # -- what was reported

    def reported(self, kind: type[T]) -> list[T]:
        return [event for event in self.reports if isinstance(event, kind)]

    def acks(self, checkpoint: int) -> dict[SubtaskId, SubtaskAcked]:
        acked = self.reported(SubtaskAcked)
        return {ack.subtask: ack for ack in acked if ack.checkpoint == checkpoint}

    def is_acked(self, checkpoint: int) -> bool:
        return len(self.acks(checkpoint)) == len(self.graph.topology.subtasks)

    def manifest(self, checkpoint: int) -> Manifest:
        """The checkpoint as the driver would write it down."""
        topology, acks = self.graph.topology, self.acks(checkpoint)
        assert len(acks) == len(topology.subtasks), "every subtask has acked"
        return Manifest(
            CheckpointId(checkpoint),
            EPOCH,
            CheckpointKind.CHECKPOINT,
            Millis(0),
            "chk",
            topology.fingerprint(),
            tuple(Width(o.id, o.parallelism, o.max_parallelism) for o in topology.operators),
            tuple(acks[subtask].snapshot for subtask in sorted(acks)),
            (),
            (),
            (),
        )

    def _home(self, subtask: SubtaskId) -> SteppedSlot:
        return self.slots[self.subtask_addresses[subtask]]


@contextmanager
def stepped_slots(
    graph: JobGraph,
    subtask_addresses: dict[SubtaskId, int] | None = None,
    *,
    alignment: AlignmentSettings = USUAL,
    storage: SnapshotStorageSettings = IN_MEMORY,
) -> Iterator[SteppedSlots]:
    """As many slots as the addresses name; by default one slot runs all subtasks."""
    placed = subtask_addresses or dict.fromkeys(graph.topology.subtasks, 0)
    job = SteppedSlots(graph, [], placed)
    for number in range(max(placed.values()) + 1):
        exchange = Exchange(SlotId(f"slot-{number}"), "127.0.0.1", SECRET, None)
        uploading, reading = SteppedExecutor(), SteppedExecutor()
        executors = SlotExecutors(uploading, reading, uploading)
        factory = StageFactory(graph, alignment, MemoryBackend)
        deployer = SubtaskDeployer(factory, SnapshotStorage(storage), executors)
        clock = ProcessClock(lambda: Millis(job.now), lambda: Millis(job.now + job.skew))
        mailbox = Mailbox(deployer, exchange, job.reports.append, clock)
        job.slots.append(SteppedSlot(exchange, mailbox, uploading, reading))
    try:
        yield job
    finally:
        for slot in job.slots:
            slot.exchange.close()


def a_barrier(
    checkpoint: int,
    kind: CheckpointKind = CheckpointKind.CHECKPOINT,
    alignment: AlignmentType = AlignmentType.ALIGNED,
    location: str = "memory://weir/chk",
) -> Barrier:
    return Barrier(CheckpointId(checkpoint), kind, alignment, Millis(0), location)


def _restored_state(graph: JobGraph, restored: Manifest | None) -> dict[SubtaskId, StateAssignment]:
    if restored is not None:
        return dict(assign_state(restored, graph.topology, without_in_flight=False))
    return _nothing(graph.topology.subtasks)


def _nothing(subtasks: Iterable[SubtaskId]) -> dict[SubtaskId, StateAssignment]:
    return {subtask: StateAssignment(subtask) for subtask in subtasks}
