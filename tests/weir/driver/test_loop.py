"""The driver's loop: an event at a time into the core, its actions to the hands, until the end."""

import logging
import threading
import time

import pytest

from coordinated_job import EVERYONE, READ, SUM_0, WRITE
from driven_job import ASKED, SLOTS, ObligingHands, a_beginning, a_loop, drive
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
from weir.core.job import Launch, OperatorCoordinatorFailed, step
from weir.core.journal import JobClosed
from weir.core.lifecycle import JobStatus, SubtaskRunning, TimePassed
from weir.core.restarts import ExponentialDelay, FixedDelay
from weir.errors import JobRejected


@pytest.fixture
def hands():
    return ObligingHands()


def test_a_job_is_launched_checkpointed_and_ended(hands):
    """C8, R1: what the core orders is carried out, and what that causes is heard."""
    end = drive(hands)
    assert end == EndDriver(JobStatus.CANCELED, fenced=False)
    (launch,) = hands.of(Launch)
    assert [subtask for subtask, _, _ in launch.placements] == list(EVERYONE)
    (answer,) = hands.of(actions.CompleteRequest)
    assert answer.request == ASKED
    assert isinstance(answer.outcome, RequestSucceeded)


def test_the_order_of_a_checkpoint_is_barriers_manifest_entry_commit_notice(hands):
    """C8: the log's entry is the one commit point, and consequences follow it."""
    drive(hands)
    order = [
        type(action)
        for action in hands.done
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


def test_nothing_is_carried_out_behind_the_end(hands):
    """C17: whoever is fenced touches nothing on the way out."""
    taken = {actions.LookForSuccessor: lambda action, _: [events.EntryTaken(action.index)]}
    hands.says.update(taken)
    end = drive(hands)
    assert end.fenced
    assert hands.of(Launch) == []
    assert hands.of(actions.DeleteFiles) == []


def test_time_passes_before_an_event_is_judged(hands):
    """C6: an event is judged by when it was heard; time never runs backwards."""
    heard = []
    drive(hands, lambda event, *_: heard.append(event))
    times = [event.now for event in heard if isinstance(event, TimePassed)]
    assert isinstance(heard[0], TimePassed)
    assert times == sorted(set(times))


def test_a_deadline_wakes_the_loop_though_nobody_says_anything(hands):
    """R2: a restart's delay passes by itself."""
    beginning = a_beginning(strategy=FixedDelay(1, 5))
    lost = []

    def answer(launch, _):
        if not lost:
            lost.append(launch)
            return [SlotLost(SLOTS[0], 0.5), SlotRegistered("slot-2", "executor")]
        return [SubtaskRunning(launch.attempt, subtask) for subtask, _, _ in launch.placements]

    hands.says[Launch] = answer
    end = drive(hands, beginning=beginning)
    assert end.status is JobStatus.CANCELED
    assert [launch.attempt for launch in hands.of(Launch)] == [1, 2]


def test_a_clock_that_is_set_back_delays_no_restart(hands, monkeypatch):
    """C6 R2: intervals and timeouts are not measured by a clock that people set."""
    wall = time.time_ns
    lost = []

    def answer(launch, _):
        if not lost:
            lost.append(launch)
            monkeypatch.setattr(time, "time_ns", lambda: wall() - 3_600 * 10**9)
            return [SlotLost(SLOTS[0], 0.5), SlotRegistered("slot-2", "executor")]
        return [CancelRequested()]

    hands.says[Launch] = answer
    loop, owed = a_loop(hands, beginning=a_beginning(strategy=FixedDelay(1, 5)))
    for event in (*(SlotRegistered(slot, "executor") for slot in SLOTS), JobStarted()):
        loop.tell(event)
    watchdog = threading.Timer(
        60.0, loop.fail, [JobRejected("the loop stands still", "a bug", "read the test")]
    )
    watchdog.start()
    try:
        assert loop.run(owed).status is JobStatus.CANCELED
    finally:
        watchdog.cancel()
    assert [launch.attempt for launch in hands.of(Launch)] == [1, 2]


def test_a_strategy_that_gives_up_ends_the_driver(hands):
    """R2."""
    hands.says[Launch] = lambda launch, _: [
        SubtaskFailed(launch.attempt, SUM_0, FailureCause.USER_CODE, 0.5)
    ]
    assert drive(hands) == EndDriver(JobStatus.FAILED, fenced=False)


def refused(action, _):
    """The sink's own code raises, whenever it is asked to commit."""
    commit = action.commit
    return [events.CommitInDoubt(commit.sink, commit.sequence, "KeyError: 'account'", "KeyError")]


def test_a_commit_that_the_sink_refuses_fails_the_job_by_its_restart_strategy(hands):
    """R2, R5: with the type none at once; the log stays open, so the next driver repeats it."""
    hands.says[actions.CommitTransactions] = refused
    hands.says[actions.CompleteRequest] = lambda *_: []
    assert drive(hands) == EndDriver(JobStatus.FAILED, fenced=False)
    entries = [created.entry for created in hands.of(actions.CreateEntry)]
    assert not [entry for entry in entries if isinstance(entry, JobClosed)]


@pytest.mark.parametrize("refusals", [1, 3])
def test_a_commit_that_is_refused_when_the_job_ends_does_not_keep_it_for_ever(hands, refusals):
    """R2, R5: a sink that takes it in the end lets the job end well, any other fails it."""
    tries = []

    def commit(action, job):
        tries.append(action)
        if len(tries) <= refusals:
            return refused(action, job)
        return [events.CommitConfirmed(action.commit.sink, action.commit.sequence)]

    hands.says[actions.CommitTransactions] = commit
    hands.says[ReportRestart] = lambda *_: [CancelRequested()]
    hands.says[actions.CompleteRequest] = lambda *_: []
    end = drive(hands, beginning=a_beginning(strategy=FixedDelay(2, 5)))
    assert end.status is (JobStatus.CANCELED if refusals == 1 else JobStatus.FAILED)


def test_an_abort_that_is_refused_when_the_job_ends_does_not_keep_it_for_ever(hands):
    """R2, R5: the next driver tries it again."""
    hands.says[actions.ResolveTransactions] = lambda action, _: [
        events.TransactionsUnresolved(action.operation, WRITE, "KeyError: 'account'", "KeyError")
    ]
    assert drive(hands) == EndDriver(JobStatus.FAILED, fenced=False)


def test_an_enumerator_that_raises_fails_the_job_by_its_restart_strategy(hands):
    """R2, C4: with the type none at once, and the reason is known."""
    why = []

    def raised(*_):
        return [OperatorCoordinatorFailed(READ, "KeyError: 'topic'", "KeyError")]

    hands.says[Launch] = raised
    end = drive(hands, lambda _, job, __: why.append(getattr(job.attempt.phase, "why", "")))
    assert end == EndDriver(JobStatus.FAILED, fenced=False)
    assert why[-1].startswith("read: KeyError: 'topic'; ")


def test_an_enumerator_that_raises_again_and_again_ends_the_job(hands):
    """R2: though its checkpoints go on, for they say nothing about the next look."""

    def raised(launch, _):
        up = [SubtaskRunning(launch.attempt, subtask) for subtask, _, _ in launch.placements]
        return [*up, OperatorCoordinatorFailed(READ, "KeyError: 'topic'", "KeyError")]

    hands.says[Launch] = raised
    hands.says[actions.CompleteRequest] = lambda *_: []
    strategy = ExponentialDelay(initial_ms=1, max_ms=2, max_same_failures=3)
    assert drive(hands, beginning=a_beginning(strategy=strategy)).status is JobStatus.FAILED
    assert len(hands.of(Launch)) == 3


def test_a_witness_sees_every_step_with_what_was_decided(hands):
    """C21: the events of a life are one sequence, and the decisions follow from them alone."""
    beginning = a_beginning()
    seen = []
    drive(hands, lambda *step: seen.append(step), beginning=beginning)
    job, _ = beginning.job()
    for event, after, said in seen:
        job, decided = step(job, event)
        assert (job, decided) == (after, said)


def test_the_life_of_a_checkpoint_is_in_the_log(hands, caplog):
    """C21: as an operator of Flink expects it."""
    caplog.set_level(logging.DEBUG, "weir.driver")
    drive(hands)
    for words in ("Triggering Checkpoint 1", "Completed checkpoint 1"):
        assert words.lower() in caplog.text.lower()


def test_a_problem_that_only_the_user_can_solve_ends_the_loop(hands):
    """U3: nothing that the core could decide would help."""
    loop, owed = a_loop(hands)
    loop.fail(JobRejected("no commit", "the table has another schema", "change it back"))
    with pytest.raises(JobRejected, match="another schema"):
        loop.run(owed)


def test_what_is_told_before_the_loop_runs_is_heard(hands):
    """R1: slots register at any time."""
    heard = []
    loop, owed = a_loop(hands, lambda event, *_: heard.append(event))
    loop.tell(JobStarted())
    loop.tell(events.EntryTaken(1))
    assert loop.run(owed).fenced
    assert JobStarted() in heard
