"""What a slot expects of an operator: the part of a subtask that knows rows and state.

The slot's one thread calls an operator; nothing here is ever called from two threads, except what a
capture hands over, which is called from an upload's thread while the operator continues.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import pyarrow as pa

from weir.core.ids import NO_CHECKPOINT, CheckpointId, EdgeId, Millis, SubtaskId
from weir.core.snapshots import KeyGroupRange, Redistribution, Transaction

Batch: TypeAlias = pa.RecordBatch
Clock = Callable[[], Millis]


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """The subtask that an operator belongs to, and its clock."""

    subtask: SubtaskId
    parallelism: int
    max_parallelism: int
    epoch: int
    attempt: int
    clock: Clock
    is_incremental: bool = False
    """Checkpoints build on each other, so keyed state should remember what changed."""


def no_known_changes(checkpoint: CheckpointId) -> pa.Buffer | None:
    """For states that do not remember what changed."""
    del checkpoint
    return None


@dataclass(frozen=True, slots=True)
class KeyedSnapshot:
    """One keyed state at a barrier, to be written on an upload thread, once, in one of two ways."""

    groups: KeyGroupRange
    write: Callable[[], pa.Buffer]
    """The whole state as an Arrow file."""
    name: str = ""
    since: Callable[[CheckpointId], pa.Buffer | None] = no_known_changes
    """The rows that changed since that checkpoint, to be laid over its files; None if unknown."""


@dataclass(frozen=True, slots=True)
class ListSnapshot:
    """Operator state at a barrier: encoded items, to be shared out by its redistribution."""

    name: str
    redistribution: Redistribution
    items: Sequence[bytes]
    """May be encoded when they are read, which is once and on an upload thread."""


def nothing_to_release() -> None:
    """For captures that hold nothing on to."""


@dataclass(frozen=True, slots=True)
class Captured:
    """The synchronous part of a snapshot: cheap to take, regardless of the size of the state."""

    keyed: tuple[KeyedSnapshot, ...] = ()
    lists: tuple[ListSnapshot, ...] = ()
    transactions: tuple[Transaction, ...] = ()
    before_ack: tuple[Callable[[], None], ...] = ()
    """Makes sealed transactions durable; runs on an upload thread, and raising is a decline."""
    release: Callable[[], None] = nothing_to_release
    """Frees the old versions that were kept for this snapshot. Called once, from any thread."""
    keyed_in_memory: bool = False
    """Whether the old versions of keyed state are in memory, and not on the local disk."""

    @property
    def is_in_memory(self) -> bool:
        return self.keyed_in_memory or bool(self.lists)


@dataclass(frozen=True, slots=True)
class RestoredState:
    """The state that a subtask starts with, read and verified."""

    keyed: Sequence[tuple[KeyGroupRange, pa.Buffer]] = ()
    """Arrow files, each with the key groups that are meant; a file may hold more."""
    lists: Mapping[str, Sequence[bytes]] = field(default_factory=dict)
    watermark: Millis | None = None
    checkpoint: CheckpointId = NO_CHECKPOINT
    """Where all this comes from."""


class Operator(Protocol):
    """The part of a subtask that knows rows and state. All it returns goes downstream, in order."""

    late_rows: int
    """How many rows were dropped because the watermark had passed them."""

    def process(self, edge: EdgeId, batch: Batch) -> Iterable[Batch]:
        """Take the whole batch; the slot cuts batches so that a call is short."""

    def advance(self, watermark: Millis) -> None:
        """Event time has come this far."""

    def is_due(self) -> bool:
        """Whether a timer waits to be fired, by event time or by the clock."""

    def fire(self) -> Iterable[Batch]:
        """Fire a bounded number of due timers; ``is_due`` is true if more wait."""

    def next_timer(self) -> Millis | None:
        """When the clock alone will make a timer due."""

    def flush(self) -> Iterable[Batch]:
        """Emit what is buffered: a barrier is next, or the input has run dry."""

    def finish(self) -> Iterable[Batch]:
        """No row follows."""

    def capture(self, checkpoint: CheckpointId) -> Captured:
        """The state as of now. Must not grow with the state."""

    def restore(self, restored_state: RestoredState) -> None:
        """Begin with this. Called once, before anything else."""

    def completed(self, checkpoint: CheckpointId) -> None:
        """The checkpoint is complete and its output is committed."""

    def close(self) -> None:
        """The subtask has ended; it may be started again."""
