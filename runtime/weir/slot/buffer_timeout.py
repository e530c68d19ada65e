"""Decides when an operator emits what it has buffered although more input waits.

An aggregation emits a changed key once for all its changes since the last flush. It flushes when
the input has run dry, but a source that always has a few more rows never lets it run dry, so
buffered rows also leave after a timeout (spec R9). Flink calls this the buffer timeout.

A flush costs time, and the more often it happens, the fewer changes share an emitted row. So an
operator with a backlog, whose rows are late anyway, spends a twentieth of its time on it at most,
and one that keeps up spends a quarter.
"""

from dataclasses import dataclass

TIMEOUT_SECONDS = 0.01
"""Rows are not buffered longer, unless flushes are expensive."""

LONGEST_SECONDS = 1.0
"""However expensive a flush is, rows are not buffered longer."""

KEEPING_UP, BACKLOG = 4, 20
"""Rows are buffered so many times as long as the last flush took."""


@dataclass(slots=True)
class BufferTimeout:
    """Of one operator. Times are in seconds."""

    buffering_since: float | None = None
    """When the oldest row since the last flush was processed; None if nothing is buffered."""
    flush_seconds: float = 0.0
    """What the last flush took."""

    @property
    def is_buffering(self) -> bool:
        return self.buffering_since is not None

    def processed(self, began: float) -> None:
        """A turn that began then may have left rows in the buffer."""
        if self.buffering_since is None:
            self.buffering_since = began

    def flushed(self, began: float, ended: float) -> None:
        """Nothing is buffered any more. A flush of nothing says nothing of what flushes cost."""
        if self.buffering_since is not None:
            self.flush_seconds = ended - began
            self.buffering_since = None

    def is_due(self, now: float, *, has_backlog: bool) -> bool:
        """Whether the buffered rows should leave now."""
        if self.buffering_since is None:
            return False
        affordable = self.flush_seconds * (BACKLOG if has_backlog else KEEPING_UP)
        longest = min(max(TIMEOUT_SECONDS, affordable), LONGEST_SECONDS)
        return now - self.buffering_since >= longest
