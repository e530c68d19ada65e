"""A job comes back from every failure as long as it may, ends when it should, and stays ended."""

import pytest

from attempt_scenario import (
    APART,
    DELAY,
    EVERYTHING,
    FIRST,
    FORWARDED,
    READ_0,
    READ_1,
    SECOND,
    SUM_0,
    SUM_1,
    Job,
    a_deploying_job,
    a_running_job,
    each,
    only,
    statuses,
)
from weir.core.attempt import (
    AttemptFailed,
    CancelRequested,
    FailureCause,
    FindRestorePoint,
    JobStarted,
    RecycleSlot,
    ReportRestart,
    ReportStatus,
    ResetSubtasks,
    RestorePointReady,
    SlotLost,
    SlotRegistered,
    StopConfirmed,
    SubtaskFailed,
    next_deadline,
)
from weir.core.lifecycle import JobStatus, SubtaskFinished, SubtaskRunning, TimePassed
from weir.core.phases import BackingOff, Ended, WaitingForSlots
from weir.core.restarts import FixedDelay, NoRestart

USER_CODE, _, CONNECTION, CHECKPOINT = FailureCause


# Failing again, while a restart is under way


def test_nothing_comes_back_before_the_delay_is_over():
    """R2."""
    job = a_running_job()
    job.failed(SUM_0)

    assert next_deadline(job.state) == DELAY
    assert job.later(DELAY - 1) == []
    assert FindRestorePoint(2, EVERYTHING) in job.later(1)
    assert next_deadline(job.state) is None


def test_a_region_that_fails_during_the_delay_joins_without_a_new_one():
    """R2: one restart, one delay."""
    job = a_running_job(FORWARDED, FixedDelay(attempts=1, delay_ms=DELAY))
    job.failed(SUM_0)
    job.later(DELAY - 1)

    assert job.failed(SUM_1) == [
        ReportRestart(1, EVERYTHING, whole_job=True, why="sum-1: a connection broke"),
        ResetSubtasks("b", SECOND),
        ReportStatus(JobStatus.RESTARTING, 0),
    ]
    assert FindRestorePoint(2, EVERYTHING) in job.later(1)


def test_a_region_that_fails_while_slots_are_awaited_joins_the_same_attempt():
    """R2: waiting is not running, so nothing new has failed."""
    job = a_running_job(FORWARDED, FixedDelay(attempts=1, delay_ms=DELAY))
    job.lost("a")
    job.later()

    assert job.state.phase == WaitingForSlots(2, FIRST, missing=1)
    assert only(ReportRestart, job.failed(SUM_1)).subtasks == EVERYTHING
    assert FindRestorePoint(2, EVERYTHING) in job.slots("c")


def test_a_subtask_that_joined_a_waiting_attempt_belongs_to_it():
    """R1: events of its former attempt are void."""
    job = a_running_job(FORWARDED)
    job.lost("a")
    job.later()
    job.failed(SUM_1)
    job.slots("c")
    job.restored()

    assert job.tell(SubtaskFailed(1, SUM_1, CONNECTION, 0.5)) == []
    assert job.up(*EVERYTHING) == [ReportStatus(JobStatus.RUNNING, 0)]


def test_a_region_that_fails_during_the_search_asks_the_strategy_again():
    """R2: the attempt had begun, so this is another failure; both regions come back together."""
    job = a_running_job(FORWARDED)
    job.failed(SUM_0)
    job.later()

    assert only(ReportRestart, job.failed(SUM_1)).subtasks == EVERYTHING
    assert job.state.phase == BackingOff(2 * DELAY, EVERYTHING)
    assert job.tell(RestorePointReady(2)) == []


def test_a_failure_during_deployment_asks_the_strategy_again():
    """R2: a job that cannot start must run out of restarts, too."""
    job = a_deploying_job(strategy=FixedDelay(attempts=1, delay_ms=DELAY))
    job.failed(SUM_0)
    job.later()
    job.restored()

    assert statuses(job.failed(SUM_0)) == [JobStatus.FAILED]


def test_a_region_whose_peers_still_deploy_restarts_with_the_failed_one():
    """R4: what has come up completely goes on."""
    job = a_deploying_job(APART)
    job.up(READ_0)

    actions = job.failed(READ_1)

    assert only(ReportRestart, actions).subtasks == (READ_1, SUM_0, SUM_1)
    assert each(ResetSubtasks, actions) == [
        ResetSubtasks("a", (SUM_0,)),
        ResetSubtasks("b", (READ_1, SUM_1)),
    ]


def test_a_region_that_is_half_up_restarts_as_a_whole():
    """R4: its subtasks must start from one point."""
    job = a_deploying_job(FORWARDED)
    job.up(READ_0)

    assert only(ReportRestart, job.failed(READ_1)).subtasks == EVERYTHING


def test_a_restore_that_fails_is_tried_again_by_the_strategy():
    """R1, R2: the coordinator dooms an attempt that it finds nothing for."""
    job = Job()
    job.slots("a", "b")
    job.tell(JobStarted())

    assert statuses(job.doomed()) == [JobStatus.RESTARTING]
    assert FindRestorePoint(2, EVERYTHING) in job.later()


# Giving up


def test_a_strategy_that_gives_up_fails_the_job_and_ends_what_runs():
    """R2: the unharmed regions too."""
    job = a_running_job(FORWARDED, NoRestart())

    assert job.failed(SUM_0, USER_CODE) == [
        RecycleSlot("a"),
        ResetSubtasks("b", SECOND),
        ReportStatus(JobStatus.FAILED, 0),
    ]


def test_a_failed_job_knows_why():
    """R2: the last failure, and why there was no restart after it."""
    job = a_running_job(strategy=NoRestart())
    job.failed(SUM_0)

    why = "sum-0: a connection broke; the restart strategy allows no restart"
    assert job.state.phase == Ended(JobStatus.FAILED, why)


# Ending


def test_a_job_has_finished_when_all_of_it_has():
    """R6."""
    job = a_running_job()

    assert job.finished(READ_0, READ_1, SUM_0) == []
    assert job.finished(SUM_1) == [ReportStatus(JobStatus.FINISHED, 0)]


def test_a_job_that_finishes_after_its_last_savepoint_was_stopped():
    """C11."""
    job = a_running_job()

    assert job.tell(StopConfirmed()) == []
    assert job.finished(*EVERYTHING) == [ReportStatus(JobStatus.STOPPED, 0)]


@pytest.mark.parametrize(
    "bad_news",
    [
        SlotLost("b", 0.5),
        SubtaskFailed(1, READ_1, CONNECTION, 0.5),
        AttemptFailed("no checkpoint for too long", 0.5),
    ],
)
def test_after_the_last_savepoint_a_failure_is_just_another_end(bad_news):
    """C11: the savepoint is complete, so nothing is lost and nothing restarts."""
    job = a_running_job(strategy=NoRestart())
    job.tell(StopConfirmed())

    actions = job.tell(bad_news)

    assert each(ReportRestart, actions) == []
    assert ResetSubtasks("a", FIRST) in actions
    assert statuses(actions) == [JobStatus.STOPPED]


def test_a_savepoint_that_completes_after_a_failure_still_stops_the_job():
    """C11: the subtasks that would have ended with it are down and stay down."""
    job = a_running_job(FORWARDED)
    job.failed(SUM_0)

    assert job.tell(StopConfirmed()) == [
        ResetSubtasks("b", SECOND),
        ReportStatus(JobStatus.STOPPED, 0),
    ]
    assert job.later() == []


def test_a_canceled_job_ends_at_once():
    """C12."""
    job = a_running_job()

    assert job.tell(CancelRequested()) == [
        ResetSubtasks("a", FIRST),
        ResetSubtasks("b", SECOND),
        ReportStatus(JobStatus.CANCELED, 0),
    ]


def test_a_job_can_be_canceled_before_it_starts():
    """C12."""
    job = Job()

    assert job.tell(CancelRequested(), JobStarted()) == [ReportStatus(JobStatus.CANCELED, 0)]


def test_nothing_moves_an_ended_job():
    """R1: late news of any kind."""
    job = a_running_job(slots=("a", "b", "c"))
    job.tell(CancelRequested())

    assert job.slots("d") == []
    assert job.lost("a") == []
    assert job.failed(SUM_0, USER_CODE) == []
    assert job.up(SUM_0) == []
    assert job.finished(SUM_0) == []
    assert job.doomed() == []
    assert job.later() == []
    assert job.tell(StopConfirmed(), CancelRequested(), JobStarted(), RestorePointReady(2)) == []
    assert sorted(job.state.graph.slots) == ["b", "c", "d"]


# Events that are late or repeated


def test_words_of_an_older_attempt_change_nothing():
    """R1: the attempt's number fences every subtask."""
    job = a_running_job()
    job.failed(SUM_0)
    job.later()
    job.restored()
    before = job.state

    stale = [
        SubtaskRunning(1, SUM_0),
        SubtaskFinished(1, SUM_0),
        SubtaskFailed(1, SUM_0, USER_CODE, 0.5),
    ]
    assert job.tell(*stale) == []
    assert job.state == before


def test_words_of_a_subtask_that_was_taken_down_change_nothing():
    """R1: it was sent before the reset."""
    job = a_running_job()
    job.failed(SUM_0)
    before = job.state

    assert job.up(READ_0) == job.finished(READ_0) == job.failed(READ_0) == []
    assert job.state == before


def test_a_subtask_that_has_finished_says_nothing_more():
    """R1: neither that it runs nor that it failed."""
    job = a_running_job()
    job.finished(SUM_0)

    assert job.up(SUM_0) == job.failed(SUM_0) == job.failed(SUM_0, USER_CODE) == []


@pytest.mark.parametrize(
    "event",
    [
        JobStarted(),
        TimePassed(0),
        SlotRegistered("a", "e1"),
        SlotLost("a", 0.5),
        SubtaskRunning(1, SUM_0),
        SubtaskFinished(1, SUM_0),
        SubtaskFailed(1, SUM_0, USER_CODE, 0.5),
        SubtaskFailed(1, SUM_0, CONNECTION, 0.5),
        AttemptFailed("no checkpoint for too long", 0.5),
        RestorePointReady(1),
        StopConfirmed(),
        CancelRequested(),
    ],
)
def test_a_repeated_event_changes_nothing(event):
    """R1: links repeat themselves."""
    job = a_running_job()
    job.tell(event)
    once = job.state

    assert job.tell(event) == []
    assert job.state == once


def test_time_never_runs_backwards():
    """R2: whatever the clock does."""
    job = a_running_job()
    job.later(1_000)
    job.tell(TimePassed(5))
    job.failed(SUM_0)

    assert next_deadline(job.state) == 1_000 + DELAY


def test_a_job_that_was_not_started_cannot_fail():
    """R2: the strategy is not asked about nothing."""
    job = Job(strategy=NoRestart())

    assert job.doomed() == job.tell(StopConfirmed()) == []
    assert job.state == Job(strategy=NoRestart()).state
