"""Counts checkpoints that failed in a row, and detects when they are too many.

Only reasons that indicate an unhealthy job count, each checkpoint at most once, and a newer success
resets the count (Flink's CheckpointFailureManager). Savepoints never count: the user who requested
them gets an answer.
"""

from dataclasses import dataclass, replace

from weir.core.ids import NO_CHECKPOINT, CheckpointId
from weir.core.reasons import Reason


@dataclass(frozen=True, slots=True)
class FailureCounter:
    """Consecutive counted failures, and the newest checkpoint among them."""

    in_a_row: int = 0
    counted: CheckpointId = NO_CHECKPOINT
    forgiven: CheckpointId = NO_CHECKPOINT

    def after_failure(self, checkpoint: CheckpointId, reason: Reason) -> "FailureCounter":
        if not reason.counts or checkpoint <= max(self.counted, self.forgiven):
            return self
        return replace(self, in_a_row=self.in_a_row + 1, counted=checkpoint)

    def after_success(self, checkpoint: CheckpointId) -> "FailureCounter":
        if checkpoint < self.counted:
            return self
        return FailureCounter(forgiven=max(checkpoint, self.forgiven))
