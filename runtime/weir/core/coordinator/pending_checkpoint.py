"""The stages of a pending checkpoint, each a type that holds what is known in it.

A checkpoint moves Preparing → Collecting → Collected → Persisting → Logging → Completed. Up to
Collected it can be aborted by anything; from Persisting on it ends only by what storage answers,
because the entry that completes it may already exist.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from weir.core.checkpoint_plan import CheckpointPlan
from weir.core.coordinator.actions import SendToSubtask
from weir.core.coordinator.events import Phase, SubtaskAcked
from weir.core.ids import CheckpointId, Millis, OperatorId, SubtaskId
from weir.core.request_decider import Request
from weir.core.snapshots import CoordinatorSnapshot, Manifest


@dataclass(frozen=True, slots=True)
class CheckpointProperties:
    """What is fixed about a checkpoint the moment it starts."""

    checkpoint: CheckpointId
    request: Request
    plan: CheckpointPlan
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
    """The operators' coordinators are being snapshotted; no barrier exists yet."""

    properties: CheckpointProperties
    operators: frozenset[OperatorId]
    location_ready: bool
    states: tuple[CoordinatorSnapshot, ...] = ()
    held: tuple[SendToSubtask, ...] = ()
    """Messages of operators that are snapshotted already; they follow the trigger."""


@dataclass(frozen=True, slots=True)
class Collecting:
    """Barriers are in flight; some subtasks have not acked."""

    properties: CheckpointProperties
    states: tuple[CoordinatorSnapshot, ...]
    awaiting: frozenset[SubtaskId]
    acks: Mapping[SubtaskId, SubtaskAcked] = field(default_factory=dict)
    phases: Mapping[SubtaskId, Phase] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Collected:
    """Every subtask acked; another checkpoint's manifest or entry is still being written."""

    properties: CheckpointProperties
    states: tuple[CoordinatorSnapshot, ...]
    acks: Mapping[SubtaskId, SubtaskAcked]
    at: Millis


@dataclass(frozen=True, slots=True)
class Persisting:
    """The manifest is being written."""

    properties: CheckpointProperties
    acks: Mapping[SubtaskId, SubtaskAcked]
    manifest: Manifest
    at: Millis


@dataclass(frozen=True, slots=True)
class Logging:
    """The manifest is durable and the entry that completes the checkpoint is being created."""

    properties: CheckpointProperties
    acks: Mapping[SubtaskId, SubtaskAcked]
    manifest: Manifest
    at: Millis


Pending = Preparing | Collecting | Collected | Persisting | Logging
Abortable = Preparing | Collecting | Collected


def acks_of(pending: Pending) -> tuple[SubtaskAcked, ...]:
    match pending:
        case Collecting() | Collected() | Persisting() | Logging():
            return tuple(pending.acks[subtask] for subtask in sorted(pending.acks))
        case Preparing():
            return ()
