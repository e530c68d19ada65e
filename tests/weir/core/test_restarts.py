"""A failed job restarts as its strategy decides, and fails when the strategy gives up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.core.ids import Millis, OperatorId
from weir.core.restarts import (
    DEFAULT_STRATEGY,
    NO_FAILURES,
    UNLIMITED,
    ExponentialDelay,
    FailureRate,
    FixedDelay,
    GiveUp,
    Kind,
    NoRestart,
    Restart,
    restart,
)

MIDDLE = 0.5  # the draw that leaves a delay as it is
HIGHEST = 1 - 2**-53

SECOND = 1_000
HOUR = 3_600 * SECOND

draws = st.floats(0, 1, exclude_max=True)


def verdicts(strategy, *failures):
    """The answers to failures at these times; a failure is a time, or a time and a draw."""
    history, answers = NO_FAILURES, []
    for failure in failures:
        at, draw = failure if isinstance(failure, tuple) else (failure, MIDDLE)
        history, answer = restart(strategy, history, Millis(at), draw)
        answers.append(answer)
    return answers


def delays(strategy, *failures):
    return [answer.delay_ms for answer in verdicts(strategy, *failures)]


def test_without_restarts_the_first_failure_is_the_last():
    """R2: none."""
    assert verdicts(NoRestart(), 0) == [GiveUp("the restart strategy allows no restart")]


def test_fixed_delay_grants_its_restarts_and_no_more():
    """R2: fixed delay."""
    assert verdicts(FixedDelay(attempts=2, delay_ms=700), 0, 10, 20) == [
        Restart(700),
        Restart(700),
        GiveUp("all 2 restarts are used up"),
    ]


def test_fixed_delay_does_not_forget_with_time():
    """R2: fixed delay counts all restarts of a job, however far apart."""
    assert isinstance(verdicts(FixedDelay(attempts=1), 0, 1_000 * HOUR)[-1], GiveUp)


def test_an_unlimited_fixed_delay_never_gives_up():
    """R2: fixed delay."""
    assert set(delays(FixedDelay(UNLIMITED, 5), *range(1_000))) == {5}


def test_the_default_grows_by_half_from_one_second_to_one_minute():
    """R2: exponential delay is the default, with Flink's numbers."""
    growing = delays(DEFAULT_STRATEGY, *[0] * 13)

    assert growing[:5] == [1_000, 1_500, 2_250, 3_375, 5_062]
    assert growing[-2:] == [60_000, 60_000]


def test_the_exponential_delay_outlasts_any_number_of_failures():
    """R2: exponential delay has no last attempt, and no number in it overflows."""
    assert delays(DEFAULT_STRATEGY, *[0] * 5_000)[-1] == 60_000


def test_a_long_run_makes_the_delay_short_again():
    """R2: exponential delay starts anew after a quiet time."""
    recovered = 1_500 + HOUR + 1

    assert delays(DEFAULT_STRATEGY, 0, 0, recovered) == [1_000, 1_500, 1_000]


def test_waiting_for_a_restart_is_not_a_quiet_time():
    """R2: an hour since the failure is less than an hour of running."""
    assert delays(DEFAULT_STRATEGY, 0, 0, HOUR + 1)[-1] == 2_250


def test_a_growth_after_a_reset_starts_from_the_beginning():
    """R2: exponential delay forgets all failures before the reset, not just the last."""
    later = HOUR + 60_000

    assert delays(DEFAULT_STRATEGY, 0, 0, 0, later, later) == [1_000, 1_500, 2_250, 1_000, 1_500]


def test_the_draw_shortens_and_lengthens_the_delay_by_the_jitter():
    """R2: exponential delay with jitter."""
    strategy = ExponentialDelay(jitter=0.1)

    assert [delays(strategy, (0, draw))[0] for draw in (0.0, 0.5, HIGHEST)] == [900, 1_000, 1_100]


def test_jitter_does_not_add_up():
    """R2: a delay grows from the last one as it was before its jitter."""
    assert delays(DEFAULT_STRATEGY, (0, 0.0), (0, MIDDLE)) == [900, 1_500]


def test_failures_up_to_the_rate_are_survived():
    """R2: failure rate."""
    strategy = FailureRate(max_failures=2, window_ms=100, delay_ms=7)

    assert verdicts(strategy, 0, 50, 99) == [
        Restart(7),
        Restart(7),
        GiveUp("3 failures within 100 ms, and 2 are allowed"),
    ]


def test_a_failure_leaves_the_window_and_is_forgotten():
    """R2: failure rate looks at one window only."""
    strategy = FailureRate(max_failures=2, window_ms=100, delay_ms=7)

    assert delays(strategy, *range(0, 5_000, 50)) == [7] * 100


@given(st.lists(st.tuples(st.integers(0, 2 * HOUR), draws), max_size=30))
def test_an_exponential_delay_never_leaves_its_bounds(gaps):
    """R2: at least the first delay less its jitter, at most the longest."""
    at, failures = 0, []
    for gap, draw in gaps:
        at += gap
        failures.append((at, draw))

    assert all(900 <= delay <= 60_000 for delay in delays(DEFAULT_STRATEGY, *failures))


@given(st.lists(st.integers(0, 300), max_size=40), st.integers(1, 5))
def test_no_window_ever_holds_more_survived_failures_than_allowed(gaps, allowed):
    """R2: failure rate, whatever the order of the failures."""
    strategy = FailureRate(max_failures=allowed, window_ms=100, delay_ms=0)
    history, at, survived = NO_FAILURES, 0, []
    for gap in gaps:
        at += gap
        history, answer = restart(strategy, history, Millis(at), MIDDLE)
        if isinstance(answer, Restart):
            survived.append(at)

    assert all(
        sum(begin <= other < begin + 100 for other in survived) <= allowed for begin in survived
    )


@pytest.mark.parametrize("strategy", [FixedDelay(UNLIMITED), DEFAULT_STRATEGY, FailureRate(3)])
def test_the_memory_of_a_strategy_is_bounded(strategy):
    """R2: a job that fails for years remembers no more than one that failed thrice."""
    history = NO_FAILURES
    for at in range(0, 500_000, 100):
        history, _ = restart(strategy, history, Millis(at), MIDDLE)

    assert len(history.recent) <= 3


@pytest.mark.parametrize(
    "nonsense",
    [
        lambda: FixedDelay(attempts=-1),
        lambda: FixedDelay(delay_ms=-1),
        lambda: ExponentialDelay(initial_ms=2, max_ms=1),
        lambda: ExponentialDelay(multiplier=0.9),
        lambda: ExponentialDelay(jitter=1.1),
        lambda: FailureRate(max_failures=-1),
        lambda: FailureRate(window_ms=0),
        lambda: restart(NoRestart(), NO_FAILURES, Millis(0), 1.0),
    ],
)
def test_a_strategy_that_means_nothing_cannot_be_made(nonsense):
    """R2: the configuration refuses it for users; here it would be a bug."""
    with pytest.raises(AssertionError):
        nonsense()


# The same failure again and again


SUM, READ = OperatorId("sum"), OperatorId("read")
POISON = Kind(SUM, "ValueError")
MUTE = Kind(READ, "KeyError", in_driver=True)
THRICE = ExponentialDelay(max_same_failures=3)


def judged(strategy, *kinds, history=NO_FAILURES, every=SECOND):
    """The history and the last verdict after failures of these kinds, one after another."""
    verdict = None
    for number, kind in enumerate(kinds):
        at = Millis(history.resumed + (number + 1) * every)
        history, verdict = restart(strategy, history, at, MIDDLE, kind)
    return history, verdict


def test_the_same_failure_without_progress_ends_the_job_with_its_reason():
    """R2: time will not heal it."""
    history, verdict = judged(THRICE, POISON, POISON)
    assert isinstance(verdict, Restart)
    _, verdict = judged(THRICE, POISON, history=history)
    assert verdict == GiveUp("it has failed 3 times in this way without progress")


def test_failures_of_two_kinds_do_not_hide_each_other():
    """R2: two rows that cannot be processed are no better than one."""
    _, verdict = judged(THRICE, POISON, MUTE, POISON, MUTE, POISON)
    assert isinstance(verdict, GiveUp)


def test_other_failures_in_between_are_not_progress():
    """R2, R1: a lost slot is unrelated to the row."""
    _, verdict = judged(THRICE, POISON, None, POISON, None, POISON)
    assert isinstance(verdict, GiveUp)


@pytest.mark.parametrize("kind", [None, Kind(SUM, ""), Kind(READ, "", in_driver=True)], ids=str)
def test_a_failure_that_time_may_heal_is_restarted_for_ever(kind):
    """R2, R1: lost slots, broken connections, services that are away."""
    _, verdict = judged(THRICE, *[kind] * 50)
    assert isinstance(verdict, Restart)


def test_a_completed_checkpoint_is_progress_of_the_subtasks_alone():
    """R2: an enumerator that always raises completes no look by it."""
    history, _ = judged(THRICE, POISON, MUTE, POISON, MUTE)
    after = history.after_progress(OperatorId(""))
    assert isinstance(judged(THRICE, POISON, history=after)[1], Restart)
    assert isinstance(judged(THRICE, MUTE, history=after)[1], GiveUp)


def test_an_answer_is_progress_of_that_coordinator_alone():
    """R2."""
    history, _ = judged(THRICE, POISON, MUTE, POISON, MUTE)
    after = history.after_progress(READ)
    assert isinstance(judged(THRICE, MUTE, history=after)[1], Restart)
    assert isinstance(judged(THRICE, POISON, history=after)[1], GiveUp)
    assert history.after_progress(SUM) == history


def test_a_job_that_ran_long_enough_has_recovered():
    """R2: as its delay starts anew, so does the count."""
    history, _ = judged(THRICE, POISON, POISON)
    _, verdict = judged(THRICE, POISON, history=history, every=2 * HOUR)
    assert isinstance(verdict, Restart)


@pytest.mark.parametrize(
    "strategy",
    [ExponentialDelay(max_same_failures=UNLIMITED), FixedDelay(UNLIMITED), FailureRate(100, 1)],
    ids=["without a limit", "fixed delay", "failure rate"],
)
def test_only_the_exponential_delay_has_this_limit(strategy):
    """R2: the others end by their own."""
    _, verdict = judged(strategy, *[POISON] * 50)
    assert isinstance(verdict, Restart)


def test_the_kinds_that_are_remembered_are_bounded():
    """R2: however many types of errors there are."""
    kinds = [Kind(SUM, f"Error{number}") for number in range(500)]
    history, _ = judged(THRICE, *kinds)
    assert len(history.same) <= 32
