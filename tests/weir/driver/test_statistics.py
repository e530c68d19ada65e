"""What people see of a job's checkpoints, gathered from the steps of its driver."""

import pytest

from coordinated_job import EVERYONE, READ_0, SUM_0
from scripted_loop import ImmediateActionRunner, an_initial_state, drive
from weir.core.attempt import (
    FailureCause,
    ReportRestart,
    SlotLost,
    SlotRegistered,
    SubtaskFailed,
)
from weir.core.coordinator import actions, events
from weir.core.ids import CheckpointId, Millis
from weir.core.job_master import Launch
from weir.core.lifecycle import JobStatus, SubtaskRunning, TimePassed
from weir.core.reasons import Reason
from weir.core.restarts import FixedDelay
from weir.core.snapshots import CheckpointKind
from weir.driver.statistics import KEPT, Fate, Statistics


@pytest.fixture
def action_runner():
    return ImmediateActionRunner()


@pytest.fixture
def statistics():
    return Statistics()


def test_a_completed_checkpoint_is_counted_with_its_bytes_and_subtasks(action_runner, statistics):
    """U1, C21."""
    drive(action_runner, statistics.on_step)
    assert (statistics.counts.completed, statistics.counts.failed) == (1, 0)
    (record,) = statistics.history()
    assert (record.checkpoint, record.fate) == (1, Fate.COMPLETED)
    assert record.bytes == 10 * len(EVERYONE)
    assert set(record.subtasks) == set(EVERYONE)
    assert record.ended_at >= record.triggered_at
    assert record.location.endswith("chk-1")


def test_a_checkpoint_that_came_to_nothing_keeps_its_reason(action_runner, statistics):
    """C10, U1."""
    action_runner.says[actions.Trigger] = lambda trigger, job: [
        events.SubtaskDeclined(
            job.coordinator.subtasks.running[READ_0],
            trigger.barrier.checkpoint,
            READ_0,
            Reason.CHECKPOINT_ASYNC_EXCEPTION,
            "the disk is full",
        )
    ]
    drive(action_runner, statistics.on_step)
    (record,) = statistics.history()
    assert (statistics.counts.completed, statistics.counts.failed) == (0, 1)
    assert record.fate is Fate.FAILED
    assert record.reason.startswith("CHECKPOINT_ASYNC_EXCEPTION: ")
    assert "the disk is full" in record.reason


def test_a_request_that_never_became_a_checkpoint_is_no_failed_one(statistics):
    """C10."""
    refused = actions.ReportAborted(CheckpointId(0), Reason.TOO_MANY_CHECKPOINT_REQUESTS, "")
    statistics.on_step(TimePassed(1), None, (refused,))
    assert statistics.counts.failed == 0
    assert statistics.history() == []


def test_the_status_is_the_one_reported_last(action_runner, statistics):
    """K7."""
    drive(action_runner, statistics.on_step)
    assert statistics.status is JobStatus.CANCELED


def test_restarts_and_restores_are_counted(action_runner, statistics):
    """U1, R1."""
    launched = []

    def answer(launch, _):
        launched.append(launch)
        running = [SubtaskRunning(launch.attempt, subtask) for subtask, _, _ in launch.placements]
        lost = [SlotLost("slot-0", 0.5), SlotRegistered("slot-2", "executor")]
        return running if len(launched) > 1 else [*running, *lost]

    action_runner.says[Launch] = answer
    drive(
        action_runner, statistics.on_step, initial_state=an_initial_state(strategy=FixedDelay(1, 1))
    )
    assert statistics.counts.restarts == 1
    assert "slot-0" in statistics.last_failure


def test_a_job_that_gave_up_says_why_though_it_never_restarted(action_runner, statistics):
    """U3: the last failure and the strategy's own reason."""
    action_runner.says[Launch] = lambda launch, _: [
        SubtaskFailed(launch.attempt, SUM_0, FailureCause.USER_CODE, 0.5)
    ]
    drive(action_runner, statistics.on_step)
    assert statistics.status is JobStatus.FAILED
    assert statistics.last_failure.startswith("sum-0: user code failed; ")
    assert statistics.failed_subtask is not None
    assert statistics.failed_subtask.subtask == SUM_0


def test_a_restart_for_a_failed_checkpoint_is_reported_with_its_cause(statistics):
    """U3: the log has it with the checkpoint, and a status stands alone."""
    doom = actions.FailAttempt(Reason.CHECKPOINT_ASYNC_EXCEPTION, "it failed", "the disk is full")
    restart = ReportRestart(1, (SUM_0,), whole_job=True, why="it failed")
    statistics.on_step(TimePassed(1), None, (doom, restart))
    assert statistics.last_failure == "it failed: the disk is full"

    another = ReportRestart(2, (SUM_0,), whole_job=True, why="slot-1 was lost")
    statistics.on_step(TimePassed(2), None, (another,))
    assert statistics.last_failure == "slot-1 was lost"


def test_only_the_newest_are_kept_in_detail(statistics):
    """R7: a long life does not fill the memory."""
    for number in range(1, KEPT + 3):
        begun = actions.ReportTriggered(CheckpointId(number), CheckpointKind.CHECKPOINT, 0)
        statistics.on_step(TimePassed(number), None, (begun,))
    history = statistics.history()
    assert [record.checkpoint for record in history] == list(range(KEPT + 2, 2, -1))
    assert statistics.find(1) is None


def test_a_clock_that_is_set_during_a_checkpoint_changes_its_duration_by_nothing(statistics):
    """C21 U1: its stamps are by the clock of its trigger, the next one's by the clock as set."""
    first, second = (
        actions.ReportTriggered(CheckpointId(1), CheckpointKind.CHECKPOINT, Millis(1_010)),
        actions.ReportTriggered(CheckpointId(2), CheckpointKind.CHECKPOINT, Millis(540)),
    )
    aborted = actions.ReportAborted(CheckpointId(1), Reason.CHECKPOINT_EXPIRED, "late")
    statistics.on_step(TimePassed(1_000, ahead=10), None, (first,))
    statistics.on_step(TimePassed(1_030, ahead=-490), None, (aborted, second))

    newer, older = statistics.history()
    assert (older.triggered_at, older.ended_at) == (1_010, 1_040)
    assert newer.triggered_at == 540


def test_a_reader_has_copies_that_do_not_change_under_its_eyes(action_runner, statistics):
    """U1: pages are made beside the loop."""
    seen = []

    def look(event, *_):
        if isinstance(event, events.SubtaskAcked):
            seen.extend([statistics.find(1), *statistics.history()])

    drive(action_runner, statistics.on_step, look)
    assert [len(record.subtasks) for record in seen] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert {record.fate for record in seen} == {Fate.IN_PROGRESS}


def test_a_subtask_that_acks_twice_is_one_part(action_runner, statistics):
    """C7: a duplicate changes nothing."""
    begun = actions.ReportTriggered(CheckpointId(1), CheckpointKind.CHECKPOINT, 0)
    statistics.on_step(TimePassed(1), None, (begun,))
    drive(action_runner, statistics.on_step)
    acks = len(statistics.find(1).subtasks)
    assert acks == len(EVERYONE)
