"""The settings that decisions depend on, already checked.

A policy is built once, from a configuration that other code has validated with messages for users.
A bad combination here is a bug in Weir, so it fails an assertion.
"""

from dataclasses import dataclass
from enum import StrEnum

SHORTEST_INTERVAL_MS = 10
"""A shorter interval means that periodic checkpoints are off."""


class Mode(StrEnum):
    """What a barrier promises about the rows around it."""

    EXACTLY_ONCE = "exactly once"
    AT_LEAST_ONCE = "at least once"


class Retention(StrEnum):
    """What becomes of the retained checkpoints when the job ends."""

    RETAIN_ON_CANCELLATION = "retain on cancellation"
    RETAIN_ON_FAILURE = "retain on failure"
    NEVER_RETAIN_AFTER_TERMINATION = "never retain after termination"


@dataclass(frozen=True, slots=True)
class Policy:
    """How one job takes its checkpoints."""

    interval_ms: int = 0
    min_pause_ms: int = 0
    timeout_ms: int = 600_000
    max_concurrent: int = 1
    tolerable_failures: int = 0
    mode: Mode = Mode.EXACTLY_ONCE
    unaligned: bool = False
    aligned_timeout_ms: int = 0
    after_tasks_finish: bool = True
    retained: int = 2
    retention: Retention = Retention.RETAIN_ON_CANCELLATION
    incremental: bool = False
    managed: bool = False
    """An operator owns the job: nothing is deleted on cancellation or suspension."""
    max_queued: int = 1000

    def __post_init__(self) -> None:
        assert self.max_concurrent >= 1, "at least one checkpoint may run"
        assert self.retained >= 1, "at least one completed checkpoint is kept"
        assert self.timeout_ms > 0, "a checkpoint has a deadline"
        assert not (self.min_pause_ms and self.max_concurrent > 1), "a pause needs one at a time"
        if self.unaligned:
            assert self.mode is Mode.EXACTLY_ONCE, "overtaking needs exactly once"
            assert self.max_concurrent == 1, "overtaking needs one checkpoint at a time"

    @property
    def is_periodic(self) -> bool:
        return self.interval_ms >= SHORTEST_INTERVAL_MS

    @property
    def period_ms(self) -> int:
        """Two checkpoints are never closer than the pause, so a shorter interval is stretched."""
        return max(self.interval_ms, self.min_pause_ms)
