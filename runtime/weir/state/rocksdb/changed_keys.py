"""Remembers which keys changed in RocksDB between captures, for the segments of a changelog.

A capture ends an interval. What changed since an earlier capture is what changed in the intervals
behind it. Where too many keys would have to be remembered, or too many intervals, the past becomes
unknown: then the whole state is written, never less than what changed (spec S5).
"""

from collections.abc import Sized
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from weir.core.ids import CheckpointId

MOST_INTERVALS = 64
MOST_KEYS = 1 << 21
"""Of all intervals together, each key counted once for each interval."""

UNKNOWN = CheckpointId(-1)

T = TypeVar("T", bound=Sized)


@dataclass(frozen=True, slots=True)
class KeyInterval(Generic[T]):
    """What changed behind that capture, up to the next; changes no more."""

    after: CheckpointId
    changed: T


@dataclass(frozen=True, slots=True)
class KnownChanges(Generic[T]):
    """The intervals before one capture, the oldest first."""

    intervals: tuple[KeyInterval[T], ...]

    @property
    def known(self) -> frozenset[int]:
        return frozenset(interval.after for interval in self.intervals)

    def since(self, capture: CheckpointId) -> list[T] | None:
        """None if the past does not reach that far."""
        for at, interval in enumerate(self.intervals):
            if interval.after == capture:
                return [later.changed for later in self.intervals[at:]]
        return None


@dataclass(slots=True)
class ChangedKeys(Generic[T]):
    """Belongs to the mailbox; what it hands out may be read by any thread."""

    _intervals: tuple[KeyInterval[T], ...] = field(default=())
    _begun_after: CheckpointId = UNKNOWN

    def begun(self, capture: CheckpointId) -> None:
        self._begun_after = capture

    def captured(self, capture: CheckpointId, changed: T) -> KnownChanges[T]:
        """These changed since the capture before this one."""
        ended = KeyInterval(self._begun_after, changed)
        self._intervals = (*self._intervals, ended)[-MOST_INTERVALS:]
        while sum(len(interval.changed) for interval in self._intervals) > MOST_KEYS:
            self._intervals = self._intervals[1:]
        self._begun_after = capture
        return KnownChanges(self._intervals)

    def truncated(self, capture: CheckpointId) -> None:
        self._intervals = tuple(i for i in self._intervals if i.after >= capture)
