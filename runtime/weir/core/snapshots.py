"""The parts of a checkpoint: files, which part each subtask may read, and open transactions.

A handle refers to state and never contains it: the coordinator, retention and rescaling decide on
handles alone, and only slots read the files. A manifest is the whole checkpoint as a value;
``weir.storage`` writes it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from weir.core.ids import ChannelId, CheckpointId, EdgeId, Epoch, Millis, OperatorId, SubtaskId


class CheckpointKind(StrEnum):
    """What was asked for."""

    CHECKPOINT = "checkpoint"
    FULL_CHECKPOINT = "full checkpoint"
    SAVEPOINT = "savepoint"
    SAVEPOINT_SUSPEND = "savepoint, then stop"
    SAVEPOINT_TERMINATE = "savepoint, then drain and stop"

    @property
    def is_savepoint(self) -> bool:
        return self not in (CheckpointKind.CHECKPOINT, CheckpointKind.FULL_CHECKPOINT)

    @property
    def is_synchronous(self) -> bool:
        """Nothing may leave a source behind its barrier, for the job ends with it."""
        return self in (CheckpointKind.SAVEPOINT_SUSPEND, CheckpointKind.SAVEPOINT_TERMINATE)

    @property
    def drains(self) -> bool:
        return self is CheckpointKind.SAVEPOINT_TERMINATE

    @property
    def commits(self) -> bool:
        """A plain savepoint is a copy on the side: it neither commits output nor recovers a job."""
        return self is not CheckpointKind.SAVEPOINT


Content = bytes
"""Under another name, because a file has a field of this one."""


class StateFile(NamedTuple):
    """A piece of a snapshot: a segment of a file in storage or, when it is small, its content."""

    path: str
    """Empty when the content travels in the manifest."""
    bytes: int
    shared: bool = False
    """Later checkpoints may refer to it; only the registry knows when it may go."""
    checksum: str = ""
    content: Content = b""
    offset: int = 0
    """Where it begins in its file; a separate file has it at the beginning (spec S6)."""

    @property
    def segment(self) -> str:
        """A name that no other piece has, while one file may hold the pieces of many."""
        return f"{self.path}@{self.offset}" if self.offset else self.path


class KeyGroupRange(NamedTuple):
    """Key groups from first to last, both included."""

    first: int
    last: int

    def __contains__(self, group: object) -> bool:
        return isinstance(group, int) and self.first <= group <= self.last


class Redistribution(StrEnum):
    """How the items of a list state are distributed after a restore."""

    SPLIT = "split"
    UNION = "union"
    BROADCAST = "broadcast"


class KeyedHandle(NamedTuple):
    """Keyed state of one old subtask, sorted by key group within the file."""

    groups: KeyGroupRange
    file: StateFile


class NativeFile(NamedTuple):
    """A file of a backend's own format, under the name that the backend opens it by."""

    name: str
    file: StateFile


class NativeState(NamedTuple):
    """A state inside a native instance."""

    name: str
    number: int
    """Stands for the state in the keys of its entries."""
    schema: StateFile
    """The Arrow file that the state would be in, without its rows: what they are made of."""
    next_ordinal: int = 0
    """Of a list state: all ordinals that it has are below."""


class NativeHandle(NamedTuple):
    """Keyed state of one old subtask in the files of one instance of its backend (spec S2)."""

    groups: KeyGroupRange
    backend: str
    version: int
    """Of the layout of the entries inside the files."""
    files: tuple[NativeFile, ...]
    states: tuple[NativeState, ...]

    @property
    def bytes(self) -> int:
        return sum(native.file.bytes for native in self.files)


class ListHandle(NamedTuple):
    """Operator state of one old subtask: so many items in one file."""

    name: str
    redistribution: Redistribution
    file: StateFile
    items: int


class Side(StrEnum):
    """Where in-flight rows were caught."""

    INPUT = "input"
    OUTPUT = "output"


class InFlightHandle(NamedTuple):
    """Rows of one channel that an unaligned barrier overtook."""

    channel: ChannelId
    side: Side
    file: StateFile


class Transaction(NamedTuple):
    """Output that a sink's subtask has pre-committed at a barrier."""

    sink: OperatorId
    checkpoint: CheckpointId
    name: str


@dataclass(frozen=True, slots=True)
class SubtaskSnapshot:
    """One subtask's part of a checkpoint."""

    subtask: SubtaskId
    keyed: tuple[KeyedHandle, ...] = ()
    """Laid in this order, over what is native."""
    lists: tuple[ListHandle, ...] = ()
    in_flight: tuple[InFlightHandle, ...] = ()
    transactions: tuple[Transaction, ...] = ()
    watermarks: tuple[tuple[EdgeId, Millis], ...] = ()
    """The low watermark of each input edge when the barrier came."""
    reached_end: bool = False
    """Taken after the subtask's end of data: it has nothing left to process."""
    native: tuple[NativeHandle, ...] = ()
    """Only incremental checkpoints have some; savepoints are in the open form."""

    def pieces(self) -> Iterator[StateFile]:
        for instance in self.native:
            yield from (native.file for native in instance.files)
            yield from (state.schema for state in instance.states)
        yield from (handle.file for handle in self.keyed)
        yield from (handle.file for handle in self.lists)
        yield from (handle.file for handle in self.in_flight)

    def files(self) -> Iterator[StateFile]:
        """The pieces that are in storage and must be deleted later."""
        return (piece for piece in self.pieces() if piece.path)

    @property
    def bytes(self) -> int:
        return sum(piece.bytes for piece in self.pieces())

    @property
    def in_flight_bytes(self) -> int:
        """Of all that, the data that the barrier overtook."""
        return sum(handle.file.bytes for handle in self.in_flight)


@dataclass(frozen=True, slots=True)
class Commit:
    """One turn of a sink's commit sequence: these transactions, under this number."""

    sink: OperatorId
    sequence: int
    transactions: tuple[Transaction, ...]


@dataclass(frozen=True, slots=True)
class SinkLedger:
    """How far a sink's commits have come."""

    sink: OperatorId
    sequence: int = 0
    """The number given out last; the next commit gets the one after it."""
    covered: CheckpointId = CheckpointId(0)
    """Every transaction pre-committed at or before this checkpoint has its number."""
    unconfirmed: tuple[Commit, ...] = ()
    """Given out and not yet known to have happened; repeated until it is."""


class CoordinatorSnapshot(NamedTuple):
    """The state of an operator's part in the driver: an enumerator, or a user's hook."""

    operator: OperatorId
    state: object


class Width(NamedTuple):
    """How wide an operator was when the checkpoint was taken."""

    operator: OperatorId
    parallelism: int
    max_parallelism: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """A whole checkpoint, ready to be written down."""

    checkpoint: CheckpointId
    epoch: Epoch
    kind: CheckpointKind
    taken_at: Millis
    location: str
    fingerprint: tuple[object, ...]
    widths: tuple[Width, ...]
    snapshots: tuple[SubtaskSnapshot, ...]
    finished: tuple[SubtaskId, ...]
    coordinators: tuple[CoordinatorSnapshot, ...]
    ledgers: tuple[SinkLedger, ...]

    def files(self) -> Iterator[StateFile]:
        for snapshot in self.snapshots:
            yield from snapshot.files()

    @property
    def bytes(self) -> int:
        return sum(snapshot.bytes for snapshot in self.snapshots)
