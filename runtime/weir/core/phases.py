"""The phases of a job's attempts, each with what is known in it.

A phase names the subtasks that are being restarted; all others run or have finished. There is one
such set at a time, and subtasks that fail meanwhile join it, so a job has one phase however many
regions it has. The transitions between phases are decided elsewhere.
"""

from dataclasses import dataclass
from typing import assert_never

from weir.core.execution_graph import ExecutionGraph
from weir.core.ids import AttemptId, Millis, SubtaskId
from weir.core.lifecycle import JobStatus


@dataclass(frozen=True, slots=True)
class Created:
    """Nothing has been asked for yet."""


@dataclass(frozen=True, slots=True)
class WaitingForSlots:
    """These subtasks start as soon as there is a slot for each of their indexes."""

    attempt: AttemptId
    subtasks: tuple[SubtaskId, ...]
    missing: int


@dataclass(frozen=True, slots=True)
class Restoring:
    """The slots are there; the coordinator is looking for the restore point."""

    attempt: AttemptId
    subtasks: tuple[SubtaskId, ...]


@dataclass(frozen=True, slots=True)
class Deploying:
    """These subtasks were deployed; those awaited have not reported that they run."""

    attempt: AttemptId
    awaiting: frozenset[SubtaskId]
    subtasks: tuple[SubtaskId, ...]


@dataclass(frozen=True, slots=True)
class Running:
    """Every subtask runs or has finished."""


@dataclass(frozen=True, slots=True)
class Stopping:
    """The last savepoint is complete; every subtask ends by itself, and none comes back."""


@dataclass(frozen=True, slots=True)
class BackingOff:
    """These subtasks are down until the restart strategy's delay is over."""

    until: Millis
    subtasks: tuple[SubtaskId, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """Nothing runs and nothing will."""

    status: JobStatus
    why: str


Phase = Created | WaitingForSlots | Restoring | Deploying | Running | Stopping | BackingOff | Ended


def status_of(phase: Phase, graph: ExecutionGraph) -> tuple[JobStatus, int]:
    """And how many slots are missing.

    A job with a part still running is RUNNING, unless another part waits for slots.
    """
    match phase:
        case Created():
            return JobStatus.CREATED, 0
        case WaitingForSlots(missing=missing):
            return JobStatus.WAITING_FOR_SLOTS, missing
        case Restoring(subtasks=subtasks) | Deploying(subtasks=subtasks):
            whole = graph.is_whole_job(subtasks)
            return JobStatus.DEPLOYING if whole else JobStatus.RUNNING, 0
        case BackingOff(subtasks=subtasks):
            whole = graph.is_whole_job(subtasks)
            return JobStatus.RESTARTING if whole else JobStatus.RUNNING, 0
        case Running() | Stopping():
            return JobStatus.RUNNING, 0
        case Ended(status=status):
            return status, 0
        case _:
            assert_never(phase)
