"""Decides which request for a checkpoint runs next, and which must wait or go.

Requests come from people, from the clock and from the end of the data, faster than checkpoints can
be taken. The rules are those of Flink's CheckpointRequestDecider, as functions of a queue and a few
facts: no callback is completed here and no timer is touched.
"""

from dataclasses import dataclass
from enum import StrEnum

from weir.core.ids import Millis, RequestId
from weir.core.snapshots import CheckpointKind


class Origin(StrEnum):
    """The origin of a request."""

    CLOCK = "clock"
    USER = "user"
    END_OF_DATA = "end of data"


@dataclass(frozen=True, slots=True)
class Request:
    """A request for one checkpoint."""

    number: int
    """Grows with every request: its age."""
    origin: Origin
    kind: CheckpointKind
    id: RequestId
    forced: bool = False
    location: str = ""

    @property
    def is_periodic(self) -> bool:
        return self.origin is Origin.CLOCK

    @property
    def rank(self) -> tuple[bool, bool, bool, int]:
        """Savepoints first, then forced, then not periodic, then the oldest."""
        return (not self.kind.is_savepoint, not self.forced, self.is_periodic, self.number)


Queue = tuple[Request, ...]


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The queue afterwards, and the requests dropped from it."""

    queue: Queue
    dropped: tuple[Request, ...] = ()


def enqueue(queue: Queue, request: Request, limit: int) -> Enqueued:
    """A full queue gives way only at the cost of a periodic request."""
    if len(queue) >= limit and not queue[-1].is_periodic:
        return Enqueued(queue, (request,))
    longer = tuple(sorted((*queue, request), key=lambda r: r.rank))
    return Enqueued(longer[:limit], longer[limit:])


@dataclass(frozen=True, slots=True)
class Traffic:
    """What else is going on."""

    now: Millis
    in_flight: int
    cleaning: int
    max_concurrent: int
    pause_over_at: Millis


@dataclass(frozen=True, slots=True)
class Start:
    """This one, now."""

    request: Request


@dataclass(frozen=True, slots=True)
class PutOff:
    """This periodic one came too early; the clock may ask again then."""

    request: Request
    until: Millis


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing may start yet."""


Choice = Start | PutOff | Wait


def choose(queue: Queue, traffic: Traffic) -> Choice:
    if not queue or traffic.cleaning > traffic.max_concurrent:
        return Wait()
    first = queue[0]
    if traffic.in_flight >= traffic.max_concurrent and not first.forced:
        return Wait()
    if first.is_periodic and not first.forced and traffic.now < traffic.pause_over_at:
        return PutOff(first, traffic.pause_over_at)
    return Start(first)
