"""The API's models of checkpoints, with the names of Flink's REST API.

A figure that Weir does not have is left out rather than invented.
"""

from collections.abc import Iterable
from enum import StrEnum

from pydantic import Field

from weir.rest.body import Body


class CheckpointStatus(StrEnum):
    """How a checkpoint stands."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


class Spread(Body):
    """Of several figures the least, the mean and the greatest."""

    min: int
    avg: int
    max: int

    @classmethod
    def of(cls, figures: Iterable[int]) -> "Spread":
        known = list(figures)
        if not known:
            return cls(min=0, avg=0, max=0)
        return cls(min=min(known), avg=sum(known) // len(known), max=max(known))


class Share(Body):
    """How far a checkpoint, or one operator's part of it, has come. Times are milliseconds."""

    status: CheckpointStatus
    latest_ack_timestamp: int | None
    checkpointed_size: int
    """Bytes that were written for it."""
    state_size: int
    """Bytes of all the state that it holds, older files included."""
    end_to_end_duration: int
    """From the trigger to the last ack."""
    processed_data: int
    """Bytes that operators took in between their first barrier and their last."""
    persisted_data: int
    """Bytes of rows that an unaligned barrier overtook, and that are part of it therefore."""
    num_subtasks: int
    num_acknowledged_subtasks: int


class Checkpoint(Share):
    """One checkpoint or savepoint."""

    id: int
    is_savepoint: bool
    checkpoint_type: str
    """CHECKPOINT, FULL_CHECKPOINT, SAVEPOINT, SAVEPOINT_SUSPEND or SAVEPOINT_TERMINATE."""
    trigger_timestamp: int
    external_path: str | None = None
    """Of a completed one: restore from here."""
    failure_timestamp: int | None = None
    failure_message: str | None = None


class CheckpointDetails(Checkpoint):
    """One checkpoint with the part that each operator has in it."""

    tasks: dict[str, Share]


class Phases(Body):
    """The two parts of a subtask's snapshot."""

    sync: int
    async_: int = Field(alias="async")


class Alignment(Body):
    """From a subtask's first barrier to its last."""

    processed: int
    """Bytes that it took in meanwhile."""
    persisted: int
    """Bytes of rows that the barrier overtook."""
    duration: int


class SubtaskPart(Body):
    """One subtask's part in a checkpoint, once it has acknowledged."""

    index: int
    ack_timestamp: int
    end_to_end_duration: int
    checkpointed_size: int
    state_size: int
    checkpoint: Phases
    alignment: Alignment
    start_delay: int
    """From the trigger to the first barrier."""


class PhaseSpreads(Body):
    """The two parts of the snapshots of an operator."""

    sync: Spread
    async_: Spread = Field(alias="async")


class AlignmentSpread(Body):
    """The alignments of an operator."""

    processed: Spread
    persisted: Spread
    duration: Spread


class TaskSummary(Body):
    """What an operator's acknowledged subtasks have in common."""

    checkpointed_size: Spread
    state_size: Spread
    end_to_end_duration: Spread
    checkpoint_duration: PhaseSpreads
    alignment: AlignmentSpread
    start_delay: Spread


class TaskDetails(Share):
    """One operator's part in a checkpoint."""

    id: int
    """Of the checkpoint."""
    summary: TaskSummary
    subtasks: tuple[SubtaskPart, ...]


class Counts(Body):
    """Over the life of this driver."""

    restored: int
    total: int
    in_progress: int
    completed: int
    failed: int


class Summary(Body):
    """Of the completed checkpoints in the history."""

    checkpointed_size: Spread
    state_size: Spread
    end_to_end_duration: Spread
    processed_data: Spread
    persisted_data: Spread


class Restored(Body):
    """What the running attempt started from."""

    id: int
    restore_timestamp: int
    is_savepoint: bool
    external_path: str


class Latest(Body):
    """The newest of each sort, as far as the history goes back."""

    completed: Checkpoint | None
    savepoint: Checkpoint | None
    failed: Checkpoint | None
    restored: Restored | None


class CheckpointStatistics(Body):
    """Everything about a job's checkpoints."""

    counts: Counts
    summary: Summary
    latest: Latest
    history: tuple[Checkpoint, ...]
    """The newest first; older ones are dropped."""


class Externalization(Body):
    """Whether checkpoints outlive the job."""

    enabled: bool
    delete_on_cancellation: bool


class CheckpointingSettings(Body):
    """The checkpointing settings of the job. Times are milliseconds."""

    mode: str
    interval: int
    timeout: int
    min_pause: int
    max_concurrent: int
    externalization: Externalization
    state_backend: str
    checkpoint_storage: str
    unaligned_checkpoints: bool
    tolerable_failed_checkpoints: int
    aligned_checkpoint_timeout: int
    checkpoints_after_tasks_finish: bool
