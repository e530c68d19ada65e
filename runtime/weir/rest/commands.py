"""The commands to a job, and the state of the request that each of them makes."""

from dataclasses import dataclass
from enum import StrEnum

from weir.rest.body import Body


@dataclass(frozen=True, slots=True)
class TakeCheckpoint:
    """Take a checkpoint now, independent of the schedule."""


@dataclass(frozen=True, slots=True)
class TakeSavepoint:
    """Below this directory, or in the default directory if it is empty; the job continues."""

    directory: str = ""


@dataclass(frozen=True, slots=True)
class Stop:
    """Take a savepoint and end with it; ``drain`` fires all timers first, for good."""

    directory: str = ""
    drain: bool = False


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the job without a savepoint."""


Command = TakeCheckpoint | TakeSavepoint | Stop | Cancel


class RequestStatus(StrEnum):
    """The status of a request."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


class RequestState(Body):
    """A request and, once it has ended, its outcome."""

    id: str
    status: RequestStatus
    location: str | None = None
    """Of a completed checkpoint or savepoint."""
    checkpoint: int | None = None
    """Its id."""
    reason: str | None = None
    """Of a failed request: one word, as CHECKPOINT_EXPIRED."""
    message: str | None = None
    """Of a failed request: what happened, for people."""
