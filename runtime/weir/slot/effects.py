"""Values that a subtask's runner returns and the mailbox performs, in the order of the list.

A runner decides and calls nothing: what has to reach other subtasks, the driver or storage is one
of these values. Batches, markers and credits leave as the task's own orders, so that a batch costs
no second object.
"""

from dataclasses import dataclass

from weir.core.attempt import FailureCause
from weir.core.ids import ChannelId
from weir.core.snapshots import Side, SubtaskSnapshot
from weir.core.task import Grant, Transmit
from weir.ports.operators import Captured
from weir.slot.snapshot_uploads import Upload
from weir.slot.state_log import SegmentToWrite
from weir.storage.local_copies import Owner

InFlight = tuple[tuple[ChannelId, Side, tuple[object, ...]], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Send this event to the driver."""

    event: object


@dataclass(frozen=True, slots=True)
class ScheduleWakeup:
    """Do not poll the source again before this time has passed."""

    delay_ms: int


@dataclass(frozen=True, slots=True)
class ResumePolling:
    """PollSource the source again at once: its enumerator has answered."""


@dataclass(frozen=True, slots=True)
class StartUpload:
    """Write the captured state to storage, and post the result."""

    upload: Upload
    captured: Captured
    snapshot: SubtaskSnapshot
    """Without its files."""


@dataclass(frozen=True, slots=True)
class WriteSegment:
    """Write changes that no checkpoint has asked for to storage."""

    start: SegmentToWrite


@dataclass(frozen=True, slots=True)
class DeleteUnneeded:
    """Delete files that the changelog does not need any more."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StartInFlightUpload:
    """Write the rows that a barrier overtook to storage, and post the result."""

    upload: Upload
    rows: InFlight


@dataclass(frozen=True, slots=True)
class DiscardUpload:
    """Delete the files of an upload that has ended."""

    upload: Upload


@dataclass(frozen=True, slots=True)
class DropLocalCopies:
    """Delete the owner's local copies, except those of these files."""

    owner: Owner
    referenced: frozenset[str]


@dataclass(frozen=True, slots=True)
class SubtaskDone:
    """The subtask has finished: remove it."""


@dataclass(frozen=True, slots=True)
class FailSubtask:
    """The subtask cannot go on: stop its turns and report why."""

    cause: FailureCause
    reason: str
    error: str = ""
    """The type of the exception; empty if a retry may succeed."""


StorageEffect = (
    StartUpload
    | StartInFlightUpload
    | DiscardUpload
    | DropLocalCopies
    | WriteSegment
    | DeleteUnneeded
)
"""Done by upload threads."""

Effect = (
    Transmit
    | Grant
    | Report
    | ScheduleWakeup
    | ResumePolling
    | SubtaskDone
    | FailSubtask
    | StorageEffect
)
