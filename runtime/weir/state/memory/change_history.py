"""Remembers which rows changed between captures, so that a snapshot can hold only those.

A capture ends an interval. What changed since an earlier capture is what changed in the intervals
behind it. Intervals before the newest completed checkpoint will never be asked for; those of
checkpoints that do not complete are kept, but not for ever: an unknown past means a whole snapshot,
never a wrong one (spec S4).
"""

from dataclasses import dataclass, field

import numpy as np

from weir.core.ids import NO_CHECKPOINT, CheckpointId
from weir.state.changed_rows import ChangedRows, RowNumbers, distinct

MOST_INTERVALS = 64


@dataclass(frozen=True, slots=True)
class Interval:
    """The rows that changed behind that checkpoint's capture, up to the next."""

    after: CheckpointId
    changed: ChangedRows
    """Changes no more; which rows they are is found out by the thread that writes them."""


@dataclass(frozen=True, slots=True)
class CapturedChanges:
    """The intervals before one capture, the oldest first."""

    intervals: tuple[Interval, ...]

    def changed_since(self, checkpoint: CheckpointId) -> RowNumbers | None:
        """Each row once; None if the past does not reach that far."""
        for position, interval in enumerate(self.intervals):
            if interval.after == checkpoint:
                later = [other.changed.row_numbers() for other in self.intervals[position:]]
                return later[0] if len(later) == 1 else distinct(np.concatenate(later))
        return None


@dataclass(slots=True)
class ChangeHistory:
    """Belongs to the mailbox; what it hands out may be read by any thread."""

    _current: ChangedRows = field(default_factory=ChangedRows)
    _begun_after: CheckpointId = NO_CHECKPOINT
    _intervals: tuple[Interval, ...] = ()

    def restored(self, checkpoint: CheckpointId) -> None:
        self._begun_after = checkpoint

    def changed(self, row_numbers: RowNumbers, size: int) -> None:
        self._current.add(row_numbers, size)

    def captured(self, checkpoint: CheckpointId) -> CapturedChanges:
        """The interval ends here, and the next begins."""
        ended = Interval(self._begun_after, self._current)
        self._current = ChangedRows()
        self._intervals = (*self._intervals, ended)[-MOST_INTERVALS:]
        self._begun_after = checkpoint
        return CapturedChanges(self._intervals)

    def completed(self, checkpoint: CheckpointId) -> None:
        """No snapshot builds on an older one any more."""
        self._intervals = tuple(i for i in self._intervals if i.after >= checkpoint)
