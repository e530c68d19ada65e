"""When checkpoints are taken, how, where they go and how long they stay.

Names and defaults are those of Flink's ``execution.checkpointing``, with two exceptions: two
completed checkpoints are kept, and they are kept after a job is cancelled or fails, unless the user
sets otherwise, because a default must not delete the only copy of a state. This module checks
settings only, not the graph.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field, StrictBool, StrictInt

from weir.api.bounds import Bounds
from weir.api.config_problem import Problem
from weir.api.duration import MILLISECOND, MINUTE, Duration, format_duration
from weir.api.file_merging_config import FileMergingConfig
from weir.api.model import Model
from weir.api.size import KIB, MIB, Size
from weir.api.storage_url import DurableUrl, StorageUrl, is_memory

SHORTEST_INTERVAL = 10 * MILLISECOND

_EXTERNALLY_INDUCED = (
    "externally induced checkpoints are not supported: only the coordinator starts them",
    "remove it and request savepoints from outside instead",
)


class CheckpointingMode(StrEnum):
    """What a record's effect on state may be after a failure."""

    EXACTLY_ONCE = "EXACTLY_ONCE"
    """Once: a channel that delivered its barrier waits for the others, or is overtaken."""
    AT_LEAST_ONCE = "AT_LEAST_ONCE"
    """Once or more: no channel waits."""


class Retention(StrEnum):
    """Which end of the job deletes its checkpoints. Savepoints are never deleted by a job."""

    RETAIN_ON_CANCELLATION = "RETAIN_ON_CANCELLATION"
    """Kept when the job is cancelled and when it fails, deleted when it has finished."""
    RETAIN_ON_FAILURE = "RETAIN_ON_FAILURE"
    """Kept when the job fails, deleted when it is cancelled or has finished."""
    NEVER_RETAIN_AFTER_TERMINATION = "NEVER_RETAIN_AFTER_TERMINATION"
    """Deleted when the job ends, however it ends."""


class CheckpointingConfig(Model):
    """When checkpoints are taken, how, where they go and how long they stay."""

    refused_by_name: ClassVar = {
        "externallyInduced": _EXTERNALLY_INDUCED,
        "externallyInducedCheckpoints": _EXTERNALLY_INDUCED,
        "forcedUnaligned": (
            "no graph falls back to aligned checkpoints, so there is nothing to force",
            "remove it and set unaligned to true",
        ),
        "forceCheckpointsInCycles": (
            "a job cannot describe a cycle, so there is nothing to force",
            "remove it",
        ),
    }

    removed: ClassVar = {"forcedUnaligned": False, "forceCheckpointsInCycles": False}

    interval: Duration = 0
    """Time from one periodic checkpoint to the next; below 10 ms there are none."""

    mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE
    """How often a record may count in state after a failure: EXACTLY_ONCE or AT_LEAST_ONCE."""

    timeout: Annotated[
        Duration,
        Bounds(
            least=1,
            because="no checkpoint completes in no time",
            remedy="use a duration above zero, as in 10 min",
        ),
    ] = 10 * MINUTE
    """How long a checkpoint may take before it is aborted."""

    min_pause: Duration = 0
    """Least time from the end of a checkpoint to the next periodic one."""

    max_concurrent: Annotated[
        StrictInt,
        Bounds(least=1, because="no checkpoint could ever start", remedy="use 1 or more"),
    ] = 1
    """How many checkpoints may be in progress at once."""

    tolerable_failures: Annotated[
        StrictInt,
        Bounds(
            least=0,
            because="a number of failures is never negative",
            remedy="use 0 to fail the attempt with the first failed checkpoint, or more",
        ),
    ] = 0
    """How many checkpoints in a row may fail before the attempt fails."""

    unaligned: StrictBool = False
    """Let barriers overtake queued data, which becomes part of the checkpoint."""

    aligned_timeout: Duration = 0
    """With unaligned: start aligned and turn unaligned after this time; 0 turns at once."""

    after_tasks_finish: StrictBool = True
    """Go on taking checkpoints when some subtasks have finished."""

    storage: StorageUrl | None = None
    """Directory of the checkpoints, as in s3://bucket/checkpoints; memory:// for experiments."""

    memory_limit: Annotated[
        Size,
        Bounds(
            least=1,
            most=256 * MIB,
            because="memory:// is for experiments: the driver's heap holds every checkpoint",
            remedy="use 1 B to 256 MiB, or a storage that is not memory",
        ),
    ] = 5 * MIB
    """With storage memory://: the largest checkpoint; a larger one fails."""

    inline_threshold: Annotated[
        Size,
        Bounds(
            least=0,
            most=MIB,
            because="inline state makes the manifest grow, which is written and read as a whole",
            remedy="use 1 MiB or less",
        ),
    ] = 20 * KIB
    """State up to this size is stored inside the manifest; 0 B stores every state in a file."""

    incremental: StrictBool = False
    """Upload only what changed since the last completed checkpoint: with rocksdb its new files,
    which only that backend restores; savepoints restore in every backend."""

    file_merging: FileMergingConfig = Field(default_factory=FileMergingConfig)
    """How the subtasks of a slot share the files of their snapshots."""

    retained: Annotated[
        StrictInt,
        Bounds(
            least=1,
            because="the newest completed checkpoint is what the job recovers from",
            remedy="use 1 or more",
        ),
    ] = 2
    """How many completed checkpoints are kept; older ones are deleted."""

    retention: Retention = Retention.RETAIN_ON_CANCELLATION
    """Which ends of the job delete its checkpoints; with RETAIN_ON_CANCELLATION only the end of a
    job that has finished, which leaves nothing to go on from."""

    savepoint_dir: DurableUrl | None = None
    """Directory of savepoints whose request names none."""

    @property
    def is_periodic(self) -> bool:
        """Whether checkpoints are taken by themselves."""
        return self.interval >= SHORTEST_INTERVAL

    def contradictions(self) -> Iterator[Problem]:
        """Yield what the protocol cannot do."""
        yield from self._against_concurrency()
        yield from self._against_unaligned()
        yield from self._without_unaligned()
        yield from self._against_storage()

    def _against_concurrency(self) -> Iterator[Problem]:
        if self.min_pause > 0 and self.max_concurrent > 1:
            yield self.problem(
                "min_pause",
                f"with maxConcurrent = {self.max_concurrent} the next checkpoint starts before the"
                " last ends, so there is no pause",
                "set maxConcurrent to 1 or minPause to 0 ms",
            )

    def _against_unaligned(self) -> Iterator[Problem]:
        if not self.unaligned:
            return
        if self.mode is not CheckpointingMode.EXACTLY_ONCE:
            yield self.problem(
                "unaligned",
                f"mode = {self.mode} never aligns, so there is nothing for a barrier to overtake",
                "set mode to EXACTLY_ONCE or unaligned to false",
            )
        if self.max_concurrent > 1:
            yield self.problem(
                "unaligned",
                f"with maxConcurrent = {self.max_concurrent} the same data in flight would be"
                " stored in several checkpoints",
                "set maxConcurrent to 1 or unaligned to false",
            )
        if self.aligned_timeout >= self.timeout:
            yield self.problem(
                "aligned_timeout",
                f"the checkpoint is aborted after timeout = {format_duration(self.timeout)},"
                " before it could turn unaligned",
                "set alignedTimeout below timeout",
            )

    def _without_unaligned(self) -> Iterator[Problem]:
        if self.unaligned:
            return
        if self.aligned_timeout > 0:
            yield self.problem(
                "aligned_timeout",
                "it is when a checkpoint turns unaligned, and unaligned is off",
                "set unaligned to true or alignedTimeout to 0 ms",
            )

    def _against_storage(self) -> Iterator[Problem]:
        if self.is_periodic and self.storage is None:
            yield self.problem(
                "interval",
                "there is no storage for the checkpoints",
                "set storage to a directory, as in s3://bucket/checkpoints, or interval to 0 ms",
            )
        keeps = self.retention is not Retention.NEVER_RETAIN_AFTER_TERMINATION
        if is_memory(self.storage) and keeps:
            yield self.problem(
                "retention",
                "memory:// is the driver's heap and ends with the driver, so nothing is retained",
                "set retention to NEVER_RETAIN_AFTER_TERMINATION or storage to a directory",
            )
