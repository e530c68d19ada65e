"""Detects a job that runs without progress: no checkpoint completes for too long.

Such a job would have to repeat more and more after its next failure, and often nothing else shows
that it is stuck; so it is restarted with this reason (spec R8). The window counts while the job
runs, and starts again at each completed checkpoint.
"""

from dataclasses import dataclass, replace

from weir.core.ids import Millis


@dataclass(frozen=True, slots=True)
class StallDetector:
    """Until when the next checkpoint must be complete."""

    window_ms: int = 0
    """Zero disables the detection."""
    deadline: Millis | None = None
    """None while the job does not run."""

    def begin(self, now: Millis) -> "StallDetector":
        """The job runs, or has just completed a checkpoint."""
        return replace(self, deadline=Millis(now + self.window_ms)) if self.window_ms else self

    def pause(self) -> "StallDetector":
        return replace(self, deadline=None)

    def is_overdue(self, now: Millis) -> bool:
        return self.deadline is not None and self.deadline <= now
