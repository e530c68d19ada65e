"""What a subtask has done since it was deployed; gauges and metrics read it."""

from dataclasses import dataclass


@dataclass(slots=True)
class SubtaskCounts:
    """Rows in and out, and the time spent in the operator."""

    rows_in: int = 0
    rows_out: int = 0
    busy_seconds: float = 0.0
