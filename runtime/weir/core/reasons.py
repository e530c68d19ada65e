"""Lists every way a checkpoint can end without completing, each with its own consequences.

The names are those of Flink's CheckpointFailureReason, so that a person with Flink experience
recognises them. Flink's BLOCKING_OUTPUT_EXIST is absent, since Weir has no blocking exchange, and
so is UNKNOWN_TASK_CHECKPOINT_NOTIFICATION_FAILURE, since no user code runs at a completion.
"""

from enum import StrEnum


class Reason(StrEnum):
    """Why a checkpoint, or the request for one, failed."""

    PERIODIC_SCHEDULER_SHUTDOWN = "the periodic scheduler was shut down"
    TOO_MANY_CHECKPOINT_REQUESTS = "the queue of checkpoint requests is full"
    MINIMUM_TIME_BETWEEN_CHECKPOINTS = "the minimum pause since the last checkpoint has not passed"
    NOT_ALL_REQUIRED_TASKS_RUNNING = "not all required subtasks are running"
    IO_EXCEPTION = "the checkpoint's place in storage could not be prepared"
    CHECKPOINT_ASYNC_EXCEPTION = "the asynchronous part of a snapshot failed"
    CHANNEL_STATE_SHARED_STREAM_EXCEPTION = "the slot's file of in-flight data could not be written"
    CHECKPOINT_EXPIRED = "the checkpoint did not complete before its timeout"
    CHECKPOINT_SUBSUMED = "a newer checkpoint completed first"
    CHECKPOINT_DECLINED = "a subtask declined the checkpoint"
    CHECKPOINT_DECLINED_TASK_NOT_READY = "a subtask was not ready"
    CHECKPOINT_DECLINED_TASK_CLOSING = "a subtask was closing"
    CHECKPOINT_DECLINED_SUBSUMED = "a subtask saw a newer barrier first"
    CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER = "a subtask received a cancel marker"
    CHECKPOINT_DECLINED_INPUT_END_OF_STREAM = "an input of a subtask ended during alignment"
    CHECKPOINT_COORDINATOR_SHUTDOWN = "the checkpoint coordinator was shut down"
    CHECKPOINT_COORDINATOR_SUSPEND = "the checkpoint coordinator was suspended"
    JOB_FAILOVER_REGION = "a region of the job was restarted"
    TASK_FAILURE = "a subtask failed"
    TASK_CHECKPOINT_FAILURE = "the synchronous part of a snapshot failed"
    FINALIZE_CHECKPOINT_FAILURE = "the manifest or the log entry could not be written"
    TRIGGER_CHECKPOINT_FAILURE = "an operator's part in the driver could not be snapshotted"

    @property
    def is_pre_flight(self) -> bool:
        """Ended before any barrier was injected."""
        return self in PRE_FLIGHT

    @property
    def counts(self) -> bool:
        """Counts against the tolerable consecutive failures."""
        return self in COUNTED


PRE_FLIGHT = frozenset(
    {
        Reason.PERIODIC_SCHEDULER_SHUTDOWN,
        Reason.TOO_MANY_CHECKPOINT_REQUESTS,
        Reason.MINIMUM_TIME_BETWEEN_CHECKPOINTS,
        Reason.NOT_ALL_REQUIRED_TASKS_RUNNING,
        Reason.IO_EXCEPTION,
    }
)

COUNTED = frozenset(
    {
        Reason.IO_EXCEPTION,
        Reason.CHECKPOINT_ASYNC_EXCEPTION,
        Reason.CHECKPOINT_EXPIRED,
        Reason.CHECKPOINT_DECLINED,
        Reason.FINALIZE_CHECKPOINT_FAILURE,
    }
)
