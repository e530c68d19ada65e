"""Tells the core how time passes, and the loop how long it may wait (spec C6, R2).

Deadlines are on the count that only grows, so a clock that is set back delays nothing and one that
is set forward expires nothing. The wall clock comes along for the stamps.
"""

from collections.abc import Callable

from weir.core.ids import Millis
from weir.core.lifecycle import TimePassed
from weir.wire.clocks import ProcessClock


class LoopClock:
    """The time of one driver."""

    def __init__(self, clock: ProcessClock | None = None) -> None:
        self._clock = clock or ProcessClock()
        self._told = Millis(0)

    def passed(self, draw: Callable[[], float]) -> TimePassed | None:
        """What the core should hear now; None if no time has passed since it last heard."""
        now = self._clock.now()
        if now <= self._told:
            return None
        self._told = now
        return TimePassed(now, draw(), self._clock.ahead())

    def left_ms(self, deadline: Millis) -> int:
        return max(deadline - self._clock.now(), 0)
