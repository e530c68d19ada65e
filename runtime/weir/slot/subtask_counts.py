"""What a subtask has done since it was deployed; gauges and metrics read it."""

from dataclasses import dataclass, replace

from weir.core.coordinator.events import Timings
from weir.core.task import Ack


@dataclass(slots=True)
class SubtaskCounts:
    """Rows in and out, and the time spent in the operator."""

    rows_in: int = 0
    rows_out: int = 0
    busy_seconds: float = 0.0


def timings_of(order: Ack, uploaded: Timings) -> Timings:
    """Of a checkpoint: how its barrier came, and how its upload went."""
    return replace(
        uploaded,
        start_delay_ms=order.start_delay_ms,
        alignment_ms=order.alignment_ms,
        processed_bytes=order.processed_bytes,
    )
