"""What a slot expects of an operator: the part of a subtask that knows rows and state.

The slot's one thread calls an operator; nothing here is ever called from two threads, except what a
capture hands over, which is called from an upload's thread while the operator continues.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import pyarrow as pa

from weir.core.changelog import NO_POSITION, Position
from weir.core.ids import NO_CHECKPOINT, CheckpointId, EdgeId, Millis, SubtaskId
from weir.core.rescale import NativeShare
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
    is_logged: bool = False
    """A changelog is written, so captures are numbered by their positions in it."""


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
    """The rows that changed since that checkpoint, to be laid over its files; None if unknown.

    Where a changelog is written, it is asked by position.
    """


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file of a native snapshot, on the local disk until the capture is released."""

    name: str
    path: str
    is_immutable: bool
    """No later snapshot of its instance has another file of this name."""


@dataclass(frozen=True, slots=True)
class LocalState:
    """A state inside these files."""

    name: str
    number: int
    schema: pa.Buffer
    """The Arrow file that the state would be in, without its rows."""
    next_ordinal: int = 0


@dataclass(frozen=True, slots=True)
class NativeContent:
    """All that restoring one native instance takes."""

    files: tuple[LocalFile, ...]
    states: tuple[LocalState, ...]


@dataclass(frozen=True, slots=True)
class NativeSnapshot:
    """All keyed state at a barrier in the format of its backend; an alternative to the open one."""

    groups: KeyGroupRange
    backend: str
    version: int
    instance: str
    """This and a name identify a file; an instance that is opened from a restored one keeps it."""
    write: Callable[[], NativeContent]
    """Called on an upload thread, once, and never if the open form is written."""


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
    position: Position = NO_POSITION
    """In the changelog, if one is written."""
    known: frozenset[int] | None = None
    """Since which positions, or checkpoints, changes are known; None: not said."""
    release: Callable[[], None] = nothing_to_release
    """Frees the old versions that were kept for this snapshot. Called once, from any thread."""
    native: NativeSnapshot | None = None
    """The keyed state once more, where the backend can write its own files instead."""
    keyed_in_memory: bool = False
    """Whether the old versions of keyed state are in memory, and not on the local disk."""

    @property
    def is_in_memory(self) -> bool:
        return self.keyed_in_memory or bool(self.lists)


@dataclass(frozen=True, slots=True)
class NativeInstance:
    """A native instance whose files were read and verified, in a directory on the local disk.

    The directory belongs to the backend that restores it, which opens or removes it.
    """

    share: NativeShare
    directory: str
    remove: Callable[[], None] = nothing_to_release
    """Called once, when the directory was opened elsewhere or is not needed any more."""

    @property
    def name(self) -> str:
        """What the instance is called from now on, should it be opened."""
        return self.directory.rpartition("/")[2]


def together(parts: Sequence[Captured]) -> Captured:
    """The keyed state of several captures, as one; only a single one can be native."""
    if len(parts) == 1:
        return parts[0]

    def release() -> None:
        for part in parts:
            part.release()

    known = [part.known for part in parts if part.known is not None]
    return Captured(
        keyed=tuple(piece for part in parts for piece in part.keyed),
        release=release,
        known=frozenset.intersection(*known) if known else None,
        keyed_in_memory=any(part.keyed_in_memory for part in parts),
    )


@dataclass(frozen=True, slots=True)
class RestoredState:
    """The state that a subtask starts with, read and verified."""

    keyed: Sequence[tuple[KeyGroupRange, pa.Buffer]] = ()
    """Arrow files, each with the key groups that are meant; a file may hold more. They are laid in
    this order, over what is native."""
    lists: Mapping[str, Sequence[bytes]] = field(default_factory=dict)
    watermark: Millis | None = None
    checkpoint: CheckpointId = NO_CHECKPOINT
    """Where all this comes from."""
    native: Sequence[NativeInstance] = ()


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

    def cut(self) -> Captured:
        """The keyed state as of now, for the changelog; no barrier comes with it."""

    def truncated(self, position: Position) -> None:
        """The changelog asks for no changes since an earlier position."""

    def restore(self, restored_state: RestoredState) -> None:
        """Begin with this. Called once, before anything else."""

    def completed(self, checkpoint: CheckpointId) -> None:
        """The checkpoint is complete and its output is committed."""

    def close(self) -> None:
        """The subtask has ended; it may be started again."""
