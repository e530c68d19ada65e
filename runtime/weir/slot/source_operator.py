"""The source's part of a subtask: reads the splits that its enumerator assigns.

A split is in exactly one place in every checkpoint: free in the driver's pool, or here with its
position. One that is read to its end is in neither, and so is never read again (spec C1, R5).
Splits take turns, so that one which never ends does not keep the others from being read.

Event time is that of the split which is furthest behind. Splits that are read to their ends hold it
back no longer, and where no other is open it is the latest that any of them had reached, as if they
were one split. It never turns back, and is in every checkpoint: a barrier may have overtaken the
watermark, and no later row may bring the time back (spec D4).
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from weir.core.enumerator import AssignSplit, Message, NoMoreSplits, NoSplitsYet
from weir.core.ids import CheckpointId, Millis, SplitId
from weir.core.snapshots import Redistribution
from weir.dataflow.physical import SourceHead
from weir.ports.operators import Batch, Captured, ListSnapshot, RestoredState
from weir.ports.sources import EVENT_TIME, SPLITS, CheckpointedSplit, CheckpointedTime, Reader
from weir.slot.event_time import FOREVER, LONG_AGO
from weir.slot.relay import Stateless

__all__ = ["SPLITS", "SourceOperator"]

LONGEST_REST_MS = 1000


@dataclass(slots=True)
class OpenSplit:
    """A split being read."""

    split: SplitId
    reader: Reader
    latest: Millis = LONG_AGO
    """The greatest event time that was read from it."""


class SourceOperator(Stateless):
    """Reads its splits in turns."""

    def __init__(self, head: SourceHead) -> None:
        self._head = head
        self._open: deque[OpenSplit] = deque()
        self._no_more = False
        self._has_asked = False
        self._knows_of_none = False
        self._reached = LONG_AGO
        self._exhausted = LONG_AGO
        self.rest_ms = 0
        """For how long there is nothing to read; a new split ends the rest."""

    # -- the enumerator

    @property
    def wants_split(self) -> bool:
        """Ask for one when nothing is left to read, or at once where splits never end."""
        if self._no_more or self._has_asked:
            return False
        return not self._open or self._head.source.is_endless

    def ask(self) -> None:
        self._has_asked = True

    @property
    def is_idle(self) -> bool:
        """Whether a source with event time has no split to read it from, and knows that.

        While a request is under way it is not idle: the split that comes may be behind others.
        """
        return self._knows_of_none and not self._open and bool(self._head.event_time)

    def answered(self, message: Message) -> None:
        """The enumerator's answer to a request for a split."""
        self._knows_of_none = isinstance(message, NoSplitsYet)
        self._has_asked = self._knows_of_none
        match message:
            case NoSplitsYet():
                pass
            case NoMoreSplits():
                self._no_more = True
            case AssignSplit(split):
                self._begin(split, "", LONG_AGO)

    def _begin(self, split: SplitId, position: str, latest: Millis) -> None:
        self._open.append(OpenSplit(split, self._head.source.open(split, position), latest))

    # -- reading

    @property
    def is_over(self) -> bool:
        return self._no_more and not self._open

    def poll(self, rows: int) -> Batch | None:
        """What the next split has to give; None when none has anything at the moment."""
        rests = []
        for _ in range(len(self._open)):
            current = self._open[0]
            batch = current.reader.read(rows)
            self._open.rotate(-1)
            is_exhausted = current.reader.is_exhausted
            if batch is not None and batch.num_rows:
                self._note_time(current, batch)
            if is_exhausted:
                self._exhausted = max(self._exhausted, current.latest)
                self._open.remove(current)
                current.reader.close()
            self._reached = max(self._reached, self._low())
            if batch is not None and batch.num_rows:
                return batch
            if not is_exhausted:
                rests.append(current.reader.rest_ms)
        self.rest_ms = 0 if self.wants_split else min(rests, default=LONGEST_REST_MS)
        return None

    def _note_time(self, current: OpenSplit, batch: Batch) -> None:
        if self._head.event_time:
            current.latest = Millis(max(current.latest, self.latest_time(batch)))

    def latest_time(self, batch: Batch) -> Millis:
        """The greatest event time in the batch."""
        latest = pc.max(batch.column(self._head.event_time))
        return Millis(_millis(latest)) if latest.is_valid else LONG_AGO

    def _low(self) -> Millis:
        return min((o.latest for o in self._open), default=self._exhausted)

    def low_watermark(self) -> Millis:
        """No older row follows, but late ones."""
        if not self._head.event_time:
            return LONG_AGO
        if self.is_over:
            return FOREVER
        low = self._reached
        return Millis(low - self._head.delay_ms) if low > LONG_AGO else low

    # -- state

    def capture(self, checkpoint: CheckpointId) -> Captured:
        del checkpoint
        items = tuple(
            CheckpointedSplit(o.split, o.reader.position, o.latest).encode() for o in self._open
        )
        splits = ListSnapshot(SPLITS, Redistribution.SPLIT, items)
        if not self._head.event_time:
            return Captured(lists=(splits,))
        time = CheckpointedTime(self._reached, self._exhausted).encode()
        return Captured(lists=(splits, ListSnapshot(EVENT_TIME, Redistribution.SPLIT, (time,))))

    def restore(self, restored_state: RestoredState) -> None:
        self._restore_splits(restored_state.lists.get(SPLITS, ()))
        self._restore_time(restored_state.lists.get(EVENT_TIME, ()))

    def _restore_splits(self, items: Sequence[bytes]) -> None:
        for item in items:
            self._begin(*CheckpointedSplit.decode(item))

    def _restore_time(self, items: Sequence[bytes]) -> None:
        """At another parallelism it may be that of several readers, or of none."""
        times = [CheckpointedTime.decode(item) for item in items]
        self._exhausted = max((time.exhausted for time in times), default=LONG_AGO)
        reached = min((time.reached for time in times), default=LONG_AGO)
        self._reached = max(reached, self._low())

    def close(self) -> None:
        while self._open:
            self._open.pop().reader.close()


def _millis(time: pa.Scalar) -> int:
    """Whatever the column's unit is, a watermark is never ahead of its rows."""
    return int(pc.floor_temporal(time, unit="millisecond").cast(pa.timestamp("ms")).value)
