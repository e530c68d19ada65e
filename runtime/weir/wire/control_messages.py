"""What a driver and its slots say to each other on the control link.

The link keeps order, so a trigger, the splits assigned before it and the ones assigned after it
arrive as they were decided (spec C4). Slots answer with the core's own events; what is only for
people (why user code failed, how busy a slot is) travels beside them.
"""

from dataclasses import dataclass

from weir.core.attempt import FailureCause
from weir.core.ids import AttemptId, CheckpointId, Epoch, SlotId, SubtaskId
from weir.core.rescale import StateAssignment
from weir.core.snapshots import CheckpointKind
from weir.wire.json_codec import register


@dataclass(frozen=True, slots=True)
class Registered:
    """To the driver, first of all: a process is ready for work."""

    slot: SlotId
    executor: str
    task_attempt: int
    """Spark's number of the task attempt that it runs in."""
    host: str
    port: int
    pid: int
    disk: str = ""
    """Where it keeps local copies of state; empty: nowhere."""
    copies: tuple[tuple[int, CheckpointId], ...] = ()
    """The indexes whose copies lie there, and the newest checkpoint that they are good for."""


@dataclass(frozen=True, slots=True)
class SubtaskAddress:
    """Where a subtask runs, and where that slot's exchange listens."""

    subtask: SubtaskId
    slot: SlotId
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class DeploySubtasks:
    """To a slot: host these subtasks, each from what it inherits."""

    epoch: Epoch
    attempt: AttemptId
    restored: CheckpointId
    """The checkpoint they begin from; zero for none."""
    state_assignments: tuple[StateAssignment, ...]
    subtask_addresses: tuple[SubtaskAddress, ...]
    """Of every subtask of the job, for the channels between them."""


@dataclass(frozen=True, slots=True)
class CancelSubtasks:
    """To a slot: stop these subtasks, whatever they are doing."""

    subtasks: tuple[SubtaskId, ...]


@dataclass(frozen=True, slots=True)
class SubtaskMessage:
    """To a subtask of that attempt: a barrier to start, a notice, a word of its enumerator."""

    subtask: SubtaskId
    attempt: AttemptId
    message: object


@dataclass(frozen=True, slots=True)
class CheckpointAborted:
    """Notice: the checkpoint is dead."""

    checkpoint: CheckpointId


@dataclass(frozen=True, slots=True)
class CheckpointCompleted:
    """Notice: the checkpoint is complete."""

    checkpoint: CheckpointId
    kind: CheckpointKind
    leaving: bool


@dataclass(frozen=True, slots=True)
class ShutDownSlot:
    """To a slot: the job is over, or this process is not wanted any more."""


@dataclass(frozen=True, slots=True)
class TerminateSlot:
    """To a slot: user code failed in this process, and nobody knows what it holds; end it."""


@dataclass(frozen=True, slots=True)
class EventReported:
    """To the driver: an event of the core."""

    event: object


@dataclass(frozen=True, slots=True)
class SubtaskFailure:
    """To the driver: a subtask cannot go on; the words are for people."""

    attempt: AttemptId
    subtask: SubtaskId
    cause: FailureCause
    words: str
    error: str = ""
    """The type of what was raised; empty if time may heal it."""


@dataclass(frozen=True, slots=True)
class SubtaskMetrics:
    """How one subtask is doing."""

    subtask: SubtaskId
    rows_in: int
    rows_out: int
    busy_ms: int
    """Since it was launched, as all counts here."""
    back_pressured: bool
    watermark: int
    late_rows: int = 0
    """Dropped, because the watermark had passed them."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """To the driver, every second: the process lives, and this is what its mailbox does."""

    turn_ms: int
    """How long the turn under way has lasted; a hung one never ends."""
    memory_bytes: int
    gauges: tuple[SubtaskMetrics, ...]


register(
    Registered,
    DeploySubtasks,
    CancelSubtasks,
    SubtaskMessage,
    CheckpointAborted,
    CheckpointCompleted,
    ShutDownSlot,
    TerminateSlot,
    EventReported,
    SubtaskFailure,
    Heartbeat,
)
