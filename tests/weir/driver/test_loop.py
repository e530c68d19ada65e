"""The loop passes events to the core one at a time, and actions to the action runner."""

import logging
import threading
import time

import pytest

from coordinated_job import EVERYONE, READ, SUM_0, WRITE
from scripted_loop import ASKED, SLOTS, ImmediateActionRunner, a_loop, an_initial_state, drive
from weir.core.attempt import (
    CancelRequested,
    FailureCause,
    JobStarted,
    ReportRestart,
    SlotLost,
    SlotRegistered,
    SubtaskFailed,
)
from weir.core.coordinator import actions, events
from weir.core.coordinator.actions import EndDriver, RequestSucceeded
from weir.core.job_master import Launch, OperatorCoordinatorFailed, step
from weir.core.lifecycle import JobStatus, SubtaskRunning, TimePassed
from weir.core.log_entries import JobClosed
from weir.core.restarts import ExponentialDelay, FixedDelay
from weir.errors import JobRejected


@pytest.fixture
def action_runner():
    return ImmediateActionRunner()


def test_a_job_is_launched_checkpointed_and_ended(action_runner):
    """C8, R1: actions are carried out, and their results come back as events."""
    end = drive(action_runner)
    assert end == EndDriver(JobStatus.CANCELED, fenced=False)
    (launch,) = action_runner.of(Launch)
    assert [subtask for subtask, _, _ in launch.placements] == list(EVERYONE)
    (answer,) = action_runner.of(actions.CompleteRequest)
    assert answer.request == ASKED
    assert isinstance(answer.outcome, RequestSucceeded)


def test_the_order_of_a_checkpoint_is_barriers_manifest_entry_commit_notice(action_runner):
    """C8: the log's entry is the one commit point, and consequences follow it."""
    drive(action_runner)
    order = [
        type(action)
        for action in action_runner.done
        if isinstance(
            action,
            actions.Trigger
            | actions.WriteManifest
            | actions.CommitTransactions
            | actions.NotifyCompleted,
        )
        or (isinstance(action, actions.CreateEntry) and hasattr(action.entry, "checkpoint"))
    ]
    assert order == [
        actions.Trigger,
        actions.WriteManifest,
        actions.CreateEntry,
        actions.CommitTransactions,
        actions.NotifyCompleted,
    ]


def test_nothing_is_carried_out_behind_the_end(action_runner):
    """C17: a fenced driver changes nothing when it ends."""
    taken = {actions.LookForSuccessor: lambda action, _: [events.EntryTaken(action.index)]}
    action_runner.says.update(taken)
    end = drive(action_runner)
    assert end.fenced
    assert action_runner.of(Launch) == []
    assert action_runner.of(actions.DeleteFiles) == []


def test_time_passes_before_an_event_is_judged(action_runner):
    """C6: an event is processed at the time of its arrival; time never runs backwards."""
    heard = []
    drive(action_runner, lambda event, *_: heard.append(event))
    times = [event.now for event in heard if isinstance(event, TimePassed)]
    assert isinstance(heard[0], TimePassed)
    assert times == sorted(set(times))


def test_a_deadline_wakes_the_loop_without_an_event(action_runner):
    """R2: a restart's delay passes by itself."""
    initial_state = an_initial_state(strategy=FixedDelay(1, 5))
    lost = []

    def answer(launch, _):
        if not lost:
            lost.append(launch)
            return [SlotLost(SLOTS[0], 0.5), SlotRegistered("slot-2", "executor")]
        return [SubtaskRunning(launch.attempt, subtask) for subtask, _, _ in launch.placements]

    action_runner.says[Launch] = answer
    end = drive(action_runner, initial_state=initial_state)
    assert end.status is JobStatus.CANCELED
    assert [launch.attempt for launch in action_runner.of(Launch)] == [1, 2]


def test_a_clock_that_is_set_back_delays_no_restart(action_runner, monkeypatch):
    """C6 R2: intervals and timeouts are not measured by a clock that people set."""
    wall = time.time_ns
    lost = []

    def answer(launch, _):
        if not lost:
            lost.append(launch)
            monkeypatch.setattr(time, "time_ns", lambda: wall() - 3_600 * 10**9)
            return [SlotLost(SLOTS[0], 0.5), SlotRegistered("slot-2", "executor")]
        return [CancelRequested()]

    action_runner.says[Launch] = answer
    loop, owed = a_loop(action_runner, initial_state=an_initial_state(strategy=FixedDelay(1, 5)))
    for event in (*(SlotRegistered(slot, "executor") for slot in SLOTS), JobStarted()):
        loop.enqueue(event)
    watchdog = threading.Timer(
        60.0, loop.fail, [JobRejected("the loop stands still", "a bug", "read the test")]
    )
    watchdog.start()
    try:
        assert loop.run(owed).status is JobStatus.CANCELED
    finally:
        watchdog.cancel()
    assert [launch.attempt for launch in action_runner.of(Launch)] == [1, 2]


def test_a_strategy_that_gives_up_ends_the_driver(action_runner):
    """R2."""
    action_runner.says[Launch] = lambda launch, _: [
        SubtaskFailed(launch.attempt, SUM_0, FailureCause.USER_CODE, 0.5)
    ]
    assert drive(action_runner) == EndDriver(JobStatus.FAILED, fenced=False)


def refused(action, _):
    """The sink's own code raises, whenever it is asked to commit."""
    commit = action.commit
    return [events.CommitInDoubt(commit.sink, commit.sequence, "KeyError: 'account'", "KeyError")]


def test_a_commit_that_the_sink_refuses_fails_the_job_by_its_restart_strategy(action_runner):
    """R2, R5: with the type none at once; the log stays open, so the next driver repeats it."""
    action_runner.says[actions.CommitTransactions] = refused
    action_runner.says[actions.CompleteRequest] = lambda *_: []
    assert drive(action_runner) == EndDriver(JobStatus.FAILED, fenced=False)
    entries = [created.entry for created in action_runner.of(actions.CreateEntry)]
    assert not [entry for entry in entries if isinstance(entry, JobClosed)]


@pytest.mark.parametrize("refusals", [1, 3])
def test_a_commit_that_is_refused_when_the_job_ends_does_not_keep_it_for_ever(
    action_runner, refusals
):
    """R2, R5: a sink that takes it in the end lets the job end well, any other fails it."""
    tries = []

    def commit(action, job):
        tries.append(action)
        if len(tries) <= refusals:
            return refused(action, job)
        return [events.CommitConfirmed(action.commit.sink, action.commit.sequence)]

    action_runner.says[actions.CommitTransactions] = commit
    action_runner.says[ReportRestart] = lambda *_: [CancelRequested()]
    action_runner.says[actions.CompleteRequest] = lambda *_: []
    end = drive(action_runner, initial_state=an_initial_state(strategy=FixedDelay(2, 5)))
    assert end.status is (JobStatus.CANCELED if refusals == 1 else JobStatus.FAILED)


def test_an_abort_that_is_refused_when_the_job_ends_does_not_keep_it_for_ever(action_runner):
    """R2, R5: the next driver tries it again."""
    action_runner.says[actions.ResolveTransactions] = lambda action, _: [
        events.TransactionsUnresolved(action.operation, WRITE, "KeyError: 'account'", "KeyError")
    ]
    assert drive(action_runner) == EndDriver(JobStatus.FAILED, fenced=False)


def test_an_enumerator_that_raises_fails_the_job_by_its_restart_strategy(action_runner):
    """R2, C4: with the type none at once, and the reason is known."""
    why = []

    def raised(*_):
        return [OperatorCoordinatorFailed(READ, "KeyError: 'topic'", "KeyError")]

    action_runner.says[Launch] = raised
    end = drive(action_runner, lambda _, job, __: why.append(getattr(job.attempt.phase, "why", "")))
    assert end == EndDriver(JobStatus.FAILED, fenced=False)
    assert why[-1].startswith("read: KeyError: 'topic'; ")


def test_an_enumerator_that_raises_again_and_again_ends_the_job(action_runner):
    """R2: though its checkpoints complete, because they are unrelated to discovery."""

    def raised(launch, _):
        up = [SubtaskRunning(launch.attempt, subtask) for subtask, _, _ in launch.placements]
        return [*up, OperatorCoordinatorFailed(READ, "KeyError: 'topic'", "KeyError")]

    action_runner.says[Launch] = raised
    action_runner.says[actions.CompleteRequest] = lambda *_: []
    strategy = ExponentialDelay(initial_ms=1, max_ms=2, max_same_failures=3)
    assert (
        drive(action_runner, initial_state=an_initial_state(strategy=strategy)).status
        is JobStatus.FAILED
    )
    assert len(action_runner.of(Launch)) == 3


def test_a_witness_sees_every_step_with_what_was_decided(action_runner):
    """C21: the events of a life are one sequence, and the decisions follow from them alone."""
    initial_state = an_initial_state()
    seen = []
    drive(action_runner, lambda *step: seen.append(step), initial_state=initial_state)
    job, _ = initial_state.job()
    for event, after, said in seen:
        job, decided = step(job, event)
        assert (job, decided) == (after, said)


def test_the_life_of_a_checkpoint_is_in_the_log(action_runner, caplog):
    """C21: as an operator of Flink expects it."""
    caplog.set_level(logging.DEBUG, "weir.driver")
    drive(action_runner)
    for words in ("Triggering Checkpoint 1", "Completed checkpoint 1"):
        assert words.lower() in caplog.text.lower()


def test_a_problem_that_only_the_user_can_solve_ends_the_loop(action_runner):
    """U3: nothing that the core could decide would help."""
    loop, owed = a_loop(action_runner)
    loop.fail(JobRejected("no commit", "the table has another schema", "change it back"))
    with pytest.raises(JobRejected, match="another schema"):
        loop.run(owed)


def test_an_event_queued_before_the_loop_runs_is_handled(action_runner):
    """R1: slots register at any time."""
    heard = []
    loop, owed = a_loop(action_runner, lambda event, *_: heard.append(event))
    loop.enqueue(JobStarted())
    loop.enqueue(events.EntryTaken(1))
    assert loop.run(owed).fenced
    assert JobStarted() in heard
