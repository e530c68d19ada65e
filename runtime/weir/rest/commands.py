"""What a client may ask a job to do, and how the asking stands."""

from dataclasses import dataclass
from enum import StrEnum

from weir.rest.body import Body


@dataclass(frozen=True, slots=True)
class TakeCheckpoint:
    """Now, whatever the schedule says."""


@dataclass(frozen=True, slots=True)
class TakeSavepoint:
    """Below this directory, or at the usual place if it is empty; the job goes on."""

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
    """How a request stands."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


class RequestState(Body):
    """A request and, once it has ended, what came of it."""

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
