"""The clock: when periodic checkpoints are asked for, and what stopping it ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinated_job import (
    EVERYONE,
    SAVEPOINT,
    SUM_0,
    Story,
    a_running_job,
    each,
    only,
)
from weir.core.coordinator import next_deadline
from weir.core.coordinator.actions import (
    CompleteRequest,
    FailAttempt,
    NotifyAborted,
    ReportAborted,
    ReportTriggered,
    RequestFailed,
    Trigger,
)
from weir.core.coordinator.coordinator_state import Scheduled, Unscheduled
from weir.core.lifecycle import JobStatus
from weir.core.policy import Policy
from weir.core.reasons import Reason

RUNNING = JobStatus.RUNNING
OTHER = [status for status in JobStatus if status is not RUNNING]
EVERY_100 = Policy(interval_ms=100)


def triggers(said):
    return [report.checkpoint for report in each(ReportTriggered, said)]


def a_scheduled_job(policy=EVERY_100, draw=0.0):
    story = Story(policy)
    story.up(*EVERYONE)
    story.status(RUNNING, draw)
    return story


# Starting and stopping


def test_the_clock_starts_when_the_job_runs():
    """C2: the periodic scheduler starts when the job is RUNNING."""
    story = Story(EVERY_100)
    story.up(*EVERYONE)
    assert story.state.requests.periodic == Unscheduled()

    story.status(RUNNING, draw=0.5)

    assert story.state.requests.periodic == Scheduled(50)


@pytest.mark.parametrize("status", OTHER)
def test_the_clock_stops_on_any_other_status(status):
    """C2: and stops on any other status."""
    story = a_scheduled_job()

    story.status(status)

    assert story.state.requests.periodic == Unscheduled()
    assert triggers(story.at(1000)) == []


def test_an_interval_under_ten_milliseconds_means_disabled():
    """C2: an interval under 10 ms means disabled."""
    assert a_scheduled_job(Policy(interval_ms=9)).state.requests.periodic == Unscheduled()
    assert a_scheduled_job(Policy(interval_ms=10)).state.requests.periodic == Scheduled(0)


def test_periodic_checkpoints_are_disabled_unless_an_interval_is_given():
    """C2: the default is disabled."""
    story = a_scheduled_job(Policy())

    assert next_deadline(story.state) is None
    assert triggers(story.at(10_000_000)) == []


def test_starting_it_twice_never_leaves_two_timers():
    """C2: the second start changes nothing."""
    story = a_scheduled_job(draw=0.5)
    story.status(RUNNING, draw=0.9)

    assert story.state.requests.periodic == Scheduled(50)
    assert triggers(story.at(50)) == [1]
    story.complete(1)
    assert triggers(story.at(99)) == []


def test_a_job_that_runs_again_has_a_clock_again():
    """C2: with a separate first delay."""
    story = a_scheduled_job()
    story.status(JobStatus.RESTARTING)
    story.at(1000)

    story.status(RUNNING, draw=0.25)

    assert story.state.requests.periodic == Scheduled(1025)


# The rate


def test_the_first_delay_lies_between_the_pause_and_the_interval():
    """C2: first delay random in [min pause, interval], the random number coming in as data."""
    policy = Policy(interval_ms=100, min_pause_ms=40)

    assert a_scheduled_job(policy, draw=0.0).state.requests.periodic == Scheduled(40)
    assert a_scheduled_job(policy, draw=0.5).state.requests.periodic == Scheduled(70)


@given(st.floats(0, 1, exclude_max=True), st.integers(10, 5000), st.integers(0, 5000))
def test_the_first_delay_is_never_outside_of_its_bounds(draw, interval, pause):
    """C2: whatever is drawn; a pause above the interval stretches it."""
    clock = a_scheduled_job(
        Policy(interval_ms=interval, min_pause_ms=pause), draw
    ).state.requests.periodic

    assert pause <= clock.due <= max(interval, pause)


def test_then_it_goes_on_at_a_fixed_rate():
    """C2: not counted from the end of the last checkpoint."""
    story = a_scheduled_job()
    started = []
    for now in range(0, 350, 10):
        started += [now for _ in triggers(story.at(now))]
        if story.state.checkpoints.pending:
            story.complete(story.state.checkpoints.pending[0].properties.checkpoint)
            story.tidy_up()

    assert started == [0, 100, 200, 300]


def test_a_clock_that_slept_asks_once_and_keeps_its_rate():
    """C2: missed ticks are not made up for."""
    story = a_scheduled_job()

    assert triggers(story.at(570)) == [1]
    assert story.state.requests.periodic == Scheduled(600)


def test_a_queued_periodic_request_absorbs_the_next():
    """C2: a checkpoint that takes longer than the interval leaves one waiting and not a crowd."""
    story = a_scheduled_job()
    story.at(0)

    story.at(100)
    story.at(200)

    assert [request.is_periodic for request in story.state.requests.queue] == [True]


def test_time_does_not_run_backwards():
    """C2: a clock that jumps back asks for nothing twice."""
    story = a_scheduled_job()
    story.at(500)

    story.at(10)

    assert story.state.clock.now == 500
    assert story.state.requests.periodic == Scheduled(600)


def test_the_shell_need_not_wake_before_something_is_due():
    """C2: the next deadline is the tick, or a checkpoint's timeout before it."""
    story = a_scheduled_job(Policy(interval_ms=100, timeout_ms=30))

    assert next_deadline(story.state) == 0
    story.at(0)
    assert next_deadline(story.state) == 30


# What stopping ends


@pytest.mark.parametrize("status", [JobStatus.RESTARTING, JobStatus.WAITING_FOR_SLOTS])
def test_stopping_the_clock_aborts_what_is_pending(status):
    """C3: every pending checkpoint, with reason CHECKPOINT_COORDINATOR_SUSPEND."""
    story = a_scheduled_job(Policy(interval_ms=100, max_concurrent=2))
    story.at(0)
    story.at(100)

    said = story.status(status)

    assert [(r.checkpoint, r.reason) for r in each(ReportAborted, said)] == [
        (1, Reason.CHECKPOINT_COORDINATOR_SUSPEND),
        (2, Reason.CHECKPOINT_COORDINATOR_SUSPEND),
    ]
    assert [notice.checkpoint for notice in each(NotifyAborted, said)] == [1, 2]
    assert story.state.checkpoints.pending == ()


def test_stopping_the_clock_ends_queued_requests_and_tells_who_asked():
    """C3: every queued one too."""
    story = a_scheduled_job(Policy(interval_ms=100, unaligned=True))
    story.at(0)
    story.ask(SAVEPOINT, name="ada")

    said = story.status(JobStatus.RESTARTING)

    assert story.state.requests.queue == ()
    answer = only(CompleteRequest, said)
    assert answer.request == "ada"
    assert answer.outcome.reason is Reason.CHECKPOINT_COORDINATOR_SUSPEND


def test_stopping_the_clock_resets_the_counter_of_unsuccessful_triggers():
    """C3: and resets the counters of unsuccessful triggers."""
    story = a_scheduled_job()
    story.down(SUM_0)
    (failed,) = each(ReportAborted, story.at(0))
    (again,) = each(ReportAborted, story.at(100))
    assert (failed.failed_triggers, again.failed_triggers) == (1, 2)

    story.status(JobStatus.RESTARTING)

    assert story.state.requests.failed_triggers == 0


def test_a_trigger_that_succeeds_ends_the_row_of_unsuccessful_ones():
    """C3: the counter is about triggers in a row."""
    story = a_scheduled_job()
    story.down(SUM_0)
    story.at(0)
    story.up(SUM_0, attempt=2)

    story.at(100)

    assert story.state.requests.failed_triggers == 0


def test_a_stop_of_the_clock_does_not_count_as_a_failure():
    """C3 C9: a restart must not lead to the next restart."""
    story = a_scheduled_job()
    story.at(0)

    assert each(FailAttempt, story.status(JobStatus.RESTARTING)) == []


def test_a_request_to_a_job_that_does_not_run_is_refused_at_once():
    """C4 C2: no request waits for a job that may never run."""
    story = Story(EVERY_100)

    (report, answer) = story.ask(name="ada")

    assert report.reason is Reason.NOT_ALL_REQUIRED_TASKS_RUNNING
    assert answer == CompleteRequest(
        "ada",
        RequestFailed(
            Reason.NOT_ALL_REQUIRED_TASKS_RUNNING, "not all required subtasks are running"
        ),
    )


# Settings


def test_the_defaults_are_the_documented_ones():
    """C6: max concurrent 1, min pause 0, timeout 10 min, tolerable failures 0."""
    policy = Policy()

    assert policy.max_concurrent == 1
    assert policy.min_pause_ms == 0
    assert policy.timeout_ms == 10 * 60 * 1000
    assert policy.tolerable_failures == 0
    assert policy.max_queued == 1000


def test_a_pause_together_with_concurrency_is_no_policy():
    """C6: refused with a reason at submission; one that gets here is a bug in Weir."""
    with pytest.raises(AssertionError):
        Policy(min_pause_ms=1, max_concurrent=2)


def test_the_pause_is_counted_from_the_last_completion():
    """C6 C5: the periodic request is put off, and the clock comes back when the pause is over."""
    story = a_scheduled_job(Policy(interval_ms=100, min_pause_ms=70), draw=0.0)
    story.at(70)
    story.at(130)
    story.complete(1)

    early = story.at(170)

    assert triggers(early) == []
    assert only(ReportAborted, early).reason is Reason.MINIMUM_TIME_BETWEEN_CHECKPOINTS
    assert story.state.requests.periodic == Scheduled(200)
    assert triggers(story.at(200)) == [2]


def test_a_second_checkpoint_waits_for_the_first_unless_more_are_allowed():
    """C6: max concurrent."""
    one, two = a_running_job(), a_running_job(Policy(max_concurrent=2))

    assert triggers([*one.ask(), *one.ask()]) == [1]
    assert triggers([*two.ask(), *two.ask(), *two.ask()]) == [1, 2]


def test_a_request_that_waited_starts_as_soon_as_there_is_room():
    """C5: no user has to ask again."""
    story = a_running_job()
    first = story.trigger()
    story.ask()

    assert only(Trigger, story.complete(first)).barrier.checkpoint == 2
