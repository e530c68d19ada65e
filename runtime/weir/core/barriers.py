"""The markers on a channel besides rows, which the driver also sends to sources.

A barrier carries its alignment type, so that a subtask needs no configuration: the coordinator
decides the alignment of each checkpoint when it triggers it.
"""

from dataclasses import dataclass
from enum import StrEnum

from weir.core.ids import CheckpointId, Millis
from weir.core.snapshots import CheckpointKind


class AlignmentType(StrEnum):
    """How a subtask treats the barriers of one checkpoint."""

    AT_LEAST_ONCE = "at least once"
    ALIGNED = "aligned"
    UNALIGNED = "unaligned"
    FORCED_ALIGNED = "forced aligned"


@dataclass(frozen=True, slots=True)
class Barrier:
    """The marker of a checkpoint: rows before it belong to it, rows behind it do not."""

    checkpoint: CheckpointId
    kind: CheckpointKind
    alignment: AlignmentType
    triggered_at: Millis
    location: str
    """Where the snapshot's own files go."""
    aligned_timeout_ms: int = 0
    """Above zero: an aligned barrier that may turn unaligned once it has waited this long."""
    base: CheckpointId = CheckpointId(0)
    """The newest completed checkpoint; an incremental snapshot builds on it or on nothing."""

    @property
    def overtakes(self) -> bool:
        return self.alignment is AlignmentType.UNALIGNED

    @property
    def may_time_out(self) -> bool:
        return self.alignment is AlignmentType.ALIGNED and self.aligned_timeout_ms > 0


@dataclass(frozen=True, slots=True)
class CancelMarker:
    """The checkpoint is aborted: release the channels that wait for it."""

    checkpoint: CheckpointId


@dataclass(frozen=True, slots=True)
class Watermark:
    """No row behind this one is older."""

    time: Millis


@dataclass(frozen=True, slots=True)
class Idle:
    """The sender has nothing to read: its time holds nothing back until a watermark follows."""


@dataclass(frozen=True, slots=True)
class EndOfData:
    """No rows follow; barriers still may."""


@dataclass(frozen=True, slots=True)
class EndOfInput:
    """Nothing follows at all: the sender has finished."""


Marker = Barrier | CancelMarker | Watermark | Idle | EndOfData | EndOfInput
