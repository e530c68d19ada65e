"""Provides the events of passing time, and how long the loop may wait (spec C6, R2).

Deadlines use the monotonic clock, so setting the wall clock back delays nothing and setting it
forward expires nothing. The wall clock is only for timestamps.
"""

from collections.abc import Callable

from weir.core.ids import Millis
from weir.core.lifecycle import TimePassed
from weir.wire.clocks import ProcessClock


class LoopClock:
    """The time of one driver."""

    def __init__(self, clock: ProcessClock | None = None) -> None:
        self._clock = clock or ProcessClock()
        self._reported = Millis(0)

    def passed(self, draw: Callable[[], float]) -> TimePassed | None:
        """The next event of time; None if no time has passed since the last one."""
        now = self._clock.now()
        if now <= self._reported:
            return None
        self._reported = now
        return TimePassed(now, draw(), self._clock.ahead())

    def left_ms(self, deadline: Millis) -> int:
        return max(deadline - self._clock.now(), 0)
