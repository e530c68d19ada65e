"""Remembers what changed between captures, so that a snapshot can hold only that.

A capture ends an interval. What changed since an earlier capture is what changed in the intervals
behind it. Intervals before the newest completed checkpoint will never be asked for; those of
checkpoints that do not complete are kept, but not for ever: an unknown past means a whole snapshot,
never a wrong one (spec S4).
"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from weir.core.ids import NO_CHECKPOINT, CheckpointId
from weir.state.changed_rows import ChangedRows, RowNumbers, distinct

MOST_INTERVALS = 64
FEW_REMOVED = 1 << 14
"""So many removed keys are always remembered, however few keys there are."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The rows that changed behind that checkpoint's capture, up to the next."""

    after: CheckpointId
    changed: ChangedRows
    """Changes no more; which rows they are is found out by the thread that writes them."""
    removed: tuple[pa.Table, ...] = ()
    """The keys that were removed; some may be there again."""


@dataclass(frozen=True, slots=True)
class CapturedChanges:
    """The intervals before one capture, the oldest first."""

    intervals: tuple[Interval, ...]

    @property
    def known(self) -> frozenset[int]:
        return frozenset(interval.after for interval in self.intervals)

    def changed_since(self, checkpoint: CheckpointId) -> RowNumbers | None:
        """Each row once; None if the past does not reach that far."""
        later = [interval.changed.row_numbers() for interval in self._after(checkpoint)]
        if not later:
            return None
        return later[0] if len(later) == 1 else distinct(np.concatenate(later))

    def removed_since(self, checkpoint: CheckpointId) -> list[pa.Table]:
        return [keys for interval in self._after(checkpoint) for keys in interval.removed]

    def _after(self, checkpoint: CheckpointId) -> tuple[Interval, ...]:
        for position, interval in enumerate(self.intervals):
            if interval.after == checkpoint:
                return self.intervals[position:]
        return ()


@dataclass(slots=True)
class ChangeHistory:
    """Belongs to the mailbox; what it hands out may be read by any thread."""

    _current: ChangedRows = field(default_factory=ChangedRows)
    _removed: list[pa.Table] = field(default_factory=list)
    _removed_rows: int = 0
    _begun_after: CheckpointId = NO_CHECKPOINT
    _intervals: tuple[Interval, ...] = ()

    def restored(self, checkpoint: CheckpointId) -> None:
        self._begun_after = checkpoint

    def changed(self, row_numbers: RowNumbers, size: int) -> None:
        self._current.add(row_numbers, size)

    def removed(self, keys: pa.Table, size: int) -> None:
        """These keys went, out of ``size`` rows; where most have gone, a whole snapshot is best."""
        self._removed.append(keys)
        self._removed_rows += keys.num_rows
        if self._removed_rows > max(size, FEW_REMOVED):
            self._begun_after, self._intervals = NO_CHECKPOINT, ()
            self._removed, self._removed_rows = [], 0

    def captured(self, checkpoint: CheckpointId) -> CapturedChanges:
        """The interval ends here, and the next begins."""
        ended = Interval(self._begun_after, self._current, tuple(self._removed))
        self._current, self._removed, self._removed_rows = ChangedRows(), [], 0
        self._intervals = (*self._intervals, ended)[-MOST_INTERVALS:]
        self._begun_after = checkpoint
        return CapturedChanges(self._intervals)

    def completed(self, checkpoint: CheckpointId) -> None:
        """No snapshot builds on an older one any more."""
        self._intervals = tuple(i for i in self._intervals if i.after >= checkpoint)
