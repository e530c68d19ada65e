"""Provides a monotonic clock to measure by, and the wall clock for timestamps.

The wall clock can be set while a job runs, by an hour and backwards. So intervals and timeouts use
the monotonic clock. The wall clock is for timestamps, which people and other processes read, and
for processing-time timers, whose users mean that clock.
"""

import time

from weir.core.ids import Millis
from weir.ports.operators import Clock


def wall_clock() -> Millis:
    return Millis(time.time_ns() // 1_000_000)


def monotonic_clock() -> Millis:
    return Millis(time.monotonic_ns() // 1_000_000)


class ProcessClock:
    """The time as one process sees it."""

    def __init__(self, monotonic: Clock = monotonic_clock, wall: Clock = wall_clock) -> None:
        self.wall = wall
        self._monotonic = monotonic
        self._origin = wall() - monotonic()

    def now(self) -> Millis:
        """Counts on from the first time of the wall clock, even if that is set later."""
        return Millis(self._origin + self._monotonic())

    def ahead(self) -> int:
        """How far the wall clock is ahead of ``now``: zero until the wall clock is set."""
        return self.wall() - self.now()
