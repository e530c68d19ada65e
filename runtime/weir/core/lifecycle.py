"""The events about a job's status that the parts of the job master exchange.

They are separate from those parts, so that the attempt and the checkpoint coordinator can be
combined without knowing each other.
"""

from dataclasses import dataclass
from enum import StrEnum

from weir.core.ids import AttemptId, Millis, OperatorId, SubtaskId


class JobStatus(StrEnum):
    """What a job is doing; the periodic scheduler runs in RUNNING and in no other."""

    CREATED = "created"
    WAITING_FOR_SLOTS = "waiting for slots"
    DEPLOYING = "deploying"
    RUNNING = "running"
    RESTARTING = "restarting"
    FINISHED = "finished"
    """Every source ended and every result is committed."""
    STOPPED = "stopped"
    """A savepoint was taken and the job ended with it."""
    CANCELED = "canceled"
    """A user cancelled the job."""
    FAILED = "failed"
    """The restart strategy gave up."""

    @property
    def is_terminal(self) -> bool:
        return self in (
            JobStatus.FINISHED,
            JobStatus.STOPPED,
            JobStatus.CANCELED,
            JobStatus.FAILED,
        )


@dataclass(frozen=True, slots=True)
class TimePassed:
    """It is now at least this late. Time never runs backwards here, even if the clock does."""

    now: Millis
    draw: float = 0.5
    """A random number in [0, 1), should a decision need one."""
    ahead: int = 0
    """How far the wall clock is ahead of this, in ms: for stamps, never for intervals."""


@dataclass(frozen=True, slots=True)
class ProgressMade:
    """An operator's coordinator in the driver works again, or a checkpoint is complete."""

    operator: OperatorId = OperatorId("")
    """Empty: a checkpoint."""


@dataclass(frozen=True, slots=True)
class SubtaskRunning:
    """A deployed subtask has restored its state and takes part."""

    attempt: AttemptId
    subtask: SubtaskId


@dataclass(frozen=True, slots=True)
class SubtaskFinished:
    """A subtask has finished and does not run again."""

    attempt: AttemptId
    subtask: SubtaskId
