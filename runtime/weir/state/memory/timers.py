"""Keeps timers by key and finds those that are due, in the order in which they expire.

A timer is a key and a time, so registering one twice makes one timer. The times of a key are a
sorted tuple in the key's row, which makes them part of every snapshot like any other state. Beside
it each time has the rows that wait for it, and a heap has the times; this second form is made
anew from the first after a restore.

A timer is due when the watermark or the clock has reached its time, as in Spark. One that is set
for the past is due at once.
"""

import heapq
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from weir.core.ids import Millis
from weir.errors import JobRejected
from weir.ports.keyed_state import TIMERS, Key, Row, TimeMode
from weir.state.memory.chunks import Chunks
from weir.state.memory.row_index import RowIndex
from weir.state.state_columns import TIMER, TIMER_FIELDS

Expiries: TypeAlias = tuple[int, ...]

_STALE_TIMES_KEPT = 1024


class Timers:
    """The timers of one operator's keys; the cursor selects the key."""

    name = TIMERS
    kind = TIMER
    fields = TIMER_FIELDS

    def __init__(self, row_index: RowIndex, mode: TimeMode) -> None:
        self.column: Chunks[Expiries] = row_index.column()
        self.mode = mode
        self._row_index = row_index
        self._cursor = row_index.cursor
        self._waiting: dict[int, dict[int, None]] = {}
        self._times: list[int] = []
        """A heap of all times that have waiting rows, and of some that have none any more."""

    def register(self, expiry: int) -> None:
        row_number = self._cursor.row_number
        expiries = self.column.at(row_number) or ()
        at = bisect_left(expiries, expiry)
        if expiry not in expiries[at : at + 1]:
            self.column.put(row_number, (*expiries[:at], expiry, *expiries[at:]))
            self._await(row_number, expiry)

    def delete(self, expiry: int) -> None:
        row_number = self._cursor.row_number
        expiries = self.column.at(row_number) or ()
        if expiry not in expiries:
            return
        self.column.put(row_number, tuple(e for e in expiries if e != expiry) or None)
        self._cursor.may_be_empty = True
        waiting = self._waiting[expiry]
        del waiting[row_number]
        if not waiting:
            del self._waiting[expiry]

    def of_key(self) -> Iterator[int]:
        """The times of the key at hand, the earliest first."""
        return iter(self.column.at(self._cursor.row_number) or ())

    def earliest(self) -> Millis | None:
        times = self._times
        while times and times[0] not in self._waiting:
            heapq.heappop(times)
        return Millis(times[0]) if times else None

    def is_due(self, now: Millis) -> bool:
        earliest = self.earliest()
        return earliest is not None and earliest <= now

    def seek_earliest(self) -> tuple[Key, Millis]:
        """Move the cursor to the key whose timer comes first; there must be one."""
        earliest = self.earliest()
        assert earliest is not None, "someone waits for a timer"
        key = self._row_index.key_at(next(iter(self._waiting[earliest])))
        self._row_index.seek(key)
        return key, earliest

    def flat(self, stored: Expiries, now: Millis) -> Sequence[Row]:
        del now
        return [(expiry, self.mode.value) for expiry in stored]

    def load(self, row_number: int, rows: list[Row], now: Millis) -> None:
        del now
        if others := sorted({str(mode) for _, mode in rows} - {self.mode.value}):
            raise JobRejected(
                f"the restored timers go by {others[0]}",
                f"the processor now runs with time mode {self.mode.value}",
                f"set the time mode back to {others[0]}",
            )
        expiries = sorted(expiry for expiry, _ in rows if isinstance(expiry, int))
        self.column.put(row_number, tuple(expiries))
        for expiry in expiries:
            self._await(row_number, expiry)

    def _await(self, row_number: int, expiry: int) -> None:
        waiting = self._waiting.get(expiry)
        if waiting is None:
            waiting = self._waiting[expiry] = {}
            self._push(expiry)
        waiting[row_number] = None

    def _push(self, time: int) -> None:
        """Deleted timers leave their times in the heap; clean up before they are the most of it."""
        if len(self._times) > 2 * len(self._waiting) + _STALE_TIMES_KEPT:
            self._times = list(self._waiting)
            heapq.heapify(self._times)
        else:
            heapq.heappush(self._times, time)
