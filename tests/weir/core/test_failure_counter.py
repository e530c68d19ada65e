"""Which failed checkpoints count against the job, and what wipes the slate."""

import pytest

from weir.core.failure_counter import FailureCounter
from weir.core.reasons import Reason

EXPIRED = Reason.CHECKPOINT_EXPIRED


def failed(*checkpoints, reason=EXPIRED, before=None):
    failures = before or FailureCounter()
    for checkpoint in checkpoints:
        failures = failures.after_failure(checkpoint, reason)
    return failures


def test_failures_in_a_row_add_up():
    """C9: consecutive failures are counted."""
    assert failed(1, 2, 3).in_a_row == 3


def test_a_checkpoint_counts_once_however_often_its_failure_is_reported():
    """C9: ten declining subtasks are one failed checkpoint."""
    assert failed(1, 1, 1).in_a_row == 1


def test_a_newer_success_forgives_all_failures_before_it():
    """C9: consecutive means without a success in between."""
    forgiven = failed(1, 2).after_success(3)

    assert forgiven.in_a_row == 0
    assert failed(4, before=forgiven).in_a_row == 1


def test_a_checkpoint_older_than_the_last_success_does_not_count():
    """C9: with several in flight, a late failure of an older one does not count again."""
    assert failed(1, before=FailureCounter().after_success(2)).in_a_row == 0


def test_an_older_success_does_not_forgive_a_newer_failure():
    """C9: what failed last is what the job is like now."""
    assert failed(2).after_success(1).in_a_row == 1


COUNTED = {
    Reason.IO_EXCEPTION,
    Reason.CHECKPOINT_ASYNC_EXCEPTION,
    Reason.CHECKPOINT_EXPIRED,
    Reason.CHECKPOINT_DECLINED,
    Reason.FINALIZE_CHECKPOINT_FAILURE,
}


@pytest.mark.parametrize("reason", Reason)
def test_a_failure_counts_or_does_not_by_its_reason(reason):
    """C9 C10: the reason's own rule, as in Flink's CheckpointFailureManager."""
    assert failed(1, reason=reason).in_a_row == (1 if reason in COUNTED else 0)


NAMES_IN_FLINK = {
    "PERIODIC_SCHEDULER_SHUTDOWN",
    "TOO_MANY_CHECKPOINT_REQUESTS",
    "MINIMUM_TIME_BETWEEN_CHECKPOINTS",
    "NOT_ALL_REQUIRED_TASKS_RUNNING",
    "IO_EXCEPTION",
    "CHECKPOINT_ASYNC_EXCEPTION",
    "CHANNEL_STATE_SHARED_STREAM_EXCEPTION",
    "CHECKPOINT_EXPIRED",
    "CHECKPOINT_SUBSUMED",
    "CHECKPOINT_DECLINED",
    "CHECKPOINT_DECLINED_TASK_NOT_READY",
    "CHECKPOINT_DECLINED_TASK_CLOSING",
    "CHECKPOINT_DECLINED_SUBSUMED",
    "CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER",
    "CHECKPOINT_DECLINED_INPUT_END_OF_STREAM",
    "CHECKPOINT_COORDINATOR_SHUTDOWN",
    "CHECKPOINT_COORDINATOR_SUSPEND",
    "JOB_FAILOVER_REGION",
    "TASK_FAILURE",
    "TASK_CHECKPOINT_FAILURE",
    "FINALIZE_CHECKPOINT_FAILURE",
    "TRIGGER_CHECKPOINT_FAILURE",
}


def test_the_reasons_are_those_that_an_operator_of_flink_knows():
    """C10: the enumerated set, but for blocking outputs, which Weir does not have."""
    assert {reason.name for reason in Reason} == NAMES_IN_FLINK


def test_the_reasons_that_end_a_request_before_any_barrier_are_known_as_such():
    """C10: pre-flight."""
    assert {reason for reason in Reason if reason.is_pre_flight} == {
        Reason.PERIODIC_SCHEDULER_SHUTDOWN,
        Reason.TOO_MANY_CHECKPOINT_REQUESTS,
        Reason.MINIMUM_TIME_BETWEEN_CHECKPOINTS,
        Reason.NOT_ALL_REQUIRED_TASKS_RUNNING,
        Reason.IO_EXCEPTION,
    }


def test_every_reason_is_a_sentence_of_its_own():
    """C10: two reasons with the same text could not be distinguished in a log."""
    assert len({reason.value for reason in Reason}) == len(Reason)
