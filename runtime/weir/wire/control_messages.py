"""The messages between a driver and its slots on the control link.

The link keeps the order of messages, so a trigger, the splits assigned before it and those assigned
after it arrive in the order of the decisions (spec C4). Slots report the core's own events;
information for people (why user code failed, how busy a slot is) has separate messages.

The names under which messages are written are part of the wire format and stay when a class or a
field is renamed here.
"""

from dataclasses import dataclass

from weir.core.attempt import FailureCause
from weir.core.ids import AttemptId, CheckpointId, Epoch, SlotId, SubtaskId
from weir.core.rescale import StateAssignment
from weir.core.snapshots import CheckpointKind
from weir.wire.json_codec import register, register_as


@dataclass(frozen=True, slots=True)
class Registered:
    """To the driver, as the first message: a slot process is ready for work."""

    slot: SlotId
    executor: str
    task_attempt: int
    """Spark's number of the task attempt that it runs in."""
    host: str
    port: int
    pid: int
    disk: str = ""
    """Where it keeps local copies of state; empty if it keeps none."""
    copies: tuple[tuple[int, CheckpointId], ...] = ()
    """The indexes with copies there, and the newest checkpoint that each can restore."""


@dataclass(frozen=True, slots=True)
class SubtaskAddress:
    """The slot of a subtask, and where that slot's exchange listens."""

    subtask: SubtaskId
    slot: SlotId
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class DeploySubtasks:
    """To a slot: start these subtasks, each from the state assigned to it."""

    epoch: Epoch
    attempt: AttemptId
    restored: CheckpointId
    """The checkpoint they start from; zero for none."""
    state_assignments: tuple[StateAssignment, ...]
    subtask_addresses: tuple[SubtaskAddress, ...]
    """Of every subtask of the job, for the channels between them."""


@dataclass(frozen=True, slots=True)
class CancelSubtasks:
    """To a slot: stop these subtasks at once."""

    subtasks: tuple[SubtaskId, ...]


@dataclass(frozen=True, slots=True)
class SubtaskMessage:
    """To a subtask of that attempt: a barrier to start, a notification, or an operator event."""

    subtask: SubtaskId
    attempt: AttemptId
    message: object


@dataclass(frozen=True, slots=True)
class CheckpointAborted:
    """Notification: the checkpoint is aborted."""

    checkpoint: CheckpointId


@dataclass(frozen=True, slots=True)
class CheckpointCompleted:
    """Notification: the checkpoint is complete."""

    checkpoint: CheckpointId
    kind: CheckpointKind
    leaving: bool
    """The subtask may finish now."""


@dataclass(frozen=True, slots=True)
class ShutDownSlot:
    """To a slot: the job has ended, or this process is not needed any more."""


@dataclass(frozen=True, slots=True)
class TerminateSlot:
    """To a slot: user code failed in this process, so its memory cannot be trusted; exit."""


@dataclass(frozen=True, slots=True)
class EventReported:
    """To the driver: an event of the core."""

    event: object


@dataclass(frozen=True, slots=True)
class SubtaskFailure:
    """To the driver: a subtask cannot continue; the reason is for people."""

    attempt: AttemptId
    subtask: SubtaskId
    cause: FailureCause
    reason: str
    error: str = ""
    """The type of the exception; empty if a retry may succeed."""


@dataclass(frozen=True, slots=True)
class SubtaskMetrics:
    """The metrics of one subtask."""

    subtask: SubtaskId
    rows_in: int
    rows_out: int
    busy_ms: int
    """Since the subtask started, as all counts here."""
    back_pressured: bool
    watermark: int
    late_rows: int = 0
    """Dropped, because the watermark had passed them."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """To the driver, every second: the process is alive, with the state of its mailbox."""

    turn_ms: int
    """How long the current turn has lasted; a turn that hangs never ends."""
    memory_bytes: int
    gauges: tuple[SubtaskMetrics, ...]


register(Registered)
register_as(
    "HostSubtasks", DeploySubtasks, state_assignments="inheritances", subtask_addresses="seats"
)
register_as("Reset", CancelSubtasks)
register_as("Tell", SubtaskMessage)
register_as("Abort", CheckpointAborted)
register_as("Completed", CheckpointCompleted)
register_as("Leave", ShutDownSlot)
register_as("Die", TerminateSlot)
register_as("Said", EventReported)
register_as("Failed", SubtaskFailure, reason="words")
register_as("Pulse", Heartbeat)
