"""Decides whether a failed job tries again, and how long it waits first.

A strategy is what the user chose, a history is what has happened so far, and both are values: the
same failures at the same times with the same draws give the same answers. Nothing here knows what
failed or what a restart involves, reads a clock or draws a number; time and chance come as data.

Only failures that need a decision count. A failure during a restart belongs to that restart, and
the caller does not ask about it.

The exponential delay restarts for ever, because time heals most failures. It does not heal a row
that the user's code cannot process: such a job fails in the same way after every restart and never
gets further. So failures of one kind are counted until the job makes progress, and too many of
them end the job (spec R2). The other strategies have separate limits.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, NamedTuple, assert_never

from weir.core.ids import Millis, OperatorId

MOST_KINDS = 32
"""So many kinds of failures are counted at once; the oldest are forgotten."""


class Kind(NamedTuple):
    """What two failures have in common that are the same failure again."""

    operator: OperatorId
    error: str
    """The type of what was raised; empty if time may heal it, and then it is not counted."""
    in_driver: bool = False
    """In the operator's coordinator (enumerator, committer) and not in a subtask."""

    def survives(self, operator: OperatorId) -> bool:
        """Whether progress of that coordinator, or of the subtasks, leaves its count unchanged."""
        if not operator:
            return self.in_driver
        return not self.in_driver or operator != self.operator


class Unlimited(Enum):
    """A number of attempts that never runs out."""

    UNLIMITED = "unlimited"


UNLIMITED: Final = Unlimited.UNLIMITED


@dataclass(frozen=True, slots=True)
class NoRestart:
    """The first failure is the last."""


@dataclass(frozen=True, slots=True)
class FixedDelay:
    """So many restarts in all, each after the same delay."""

    attempts: int | Unlimited = 1
    delay_ms: int = 1_000

    def __post_init__(self) -> None:
        assert self.attempts is UNLIMITED or self.attempts >= 0, "restarts are counted from zero"
        assert self.delay_ms >= 0, "a delay is not negative"


@dataclass(frozen=True, slots=True)
class ExponentialDelay:
    """Endless restarts; the delay grows while failures follow each other closely."""

    initial_ms: int = 1_000
    multiplier: float = 1.5
    max_ms: int = 60_000
    reset_after_ms: int = 3_600_000
    """A job that ran longer than this has recovered: its next failure counts as the first."""
    jitter: float = 0.1
    """The share of the delay by which it is shortened or lengthened at random."""
    max_same_failures: int | Unlimited = 10
    """So many failures of one kind without progress in between end the job."""

    def __post_init__(self) -> None:
        assert 0 <= self.initial_ms <= self.max_ms, "the first delay is at most the longest"
        assert self.multiplier >= 1, "delays do not shrink"
        assert 0 <= self.jitter <= 1, "jitter is a share of the delay"
        assert self.reset_after_ms >= 0, "a run has a length"
        is_limit = self.max_same_failures is UNLIMITED or self.max_same_failures >= 1
        assert is_limit, "failures are counted from one"


@dataclass(frozen=True, slots=True)
class FailureRate:
    """Endless restarts, unless more than so many failures fall into one window."""

    max_failures: int = 1
    window_ms: int = 60_000
    delay_ms: int = 1_000

    def __post_init__(self) -> None:
        assert self.max_failures >= 0, "failures are counted from zero"
        assert self.window_ms > 0, "a window has a length"
        assert self.delay_ms >= 0, "a delay is not negative"


Strategy = NoRestart | FixedDelay | ExponentialDelay | FailureRate

DEFAULT_STRATEGY: Final = ExponentialDelay()


@dataclass(frozen=True, slots=True)
class History:
    """What a strategy remembers; bounded, however long the job lives."""

    restarts: int
    """How many were granted: in all, or since the backoff was last reset."""
    backoff_ms: int
    """The delay granted last, before its jitter."""
    resumed: Millis
    """When the delay granted last was over, and the job could run again."""
    recent: tuple[Millis, ...]
    """Failures that are still within the window, oldest first."""
    same: tuple[tuple[Kind, int], ...] = ()
    """How often each kind was seen without progress in between."""

    def after_progress(self, operator: OperatorId) -> "History":
        """Without an operator a checkpoint is complete, which only subtasks have to do with."""
        left = ((kind, times) for kind, times in self.same if kind.survives(operator))
        return replace(self, same=tuple(left))


NO_FAILURES: Final = History(restarts=0, backoff_ms=0, resumed=Millis(0), recent=())


@dataclass(frozen=True, slots=True)
class Restart:
    """Try again after this delay."""

    delay_ms: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The job has failed and is not restarted."""

    reason: str


Verdict = Restart | GiveUp


def restart(
    strategy: Strategy, history: History, now: Millis, draw: float, kind: Kind | None = None
) -> tuple[History, Verdict]:
    """Judge one failure. ``draw`` in [0, 1) is the chance that the jitter leaves open."""
    assert 0 <= draw < 1, "a draw is in [0, 1)"
    match strategy:
        case NoRestart():
            return history, GiveUp("the restart strategy allows no restart")
        case FixedDelay():
            return _after_fixed_delay(strategy, history)
        case ExponentialDelay():
            recovered = now - history.resumed > strategy.reset_after_ms
            counted = _counted(replace(history, same=()) if recovered else history, kind)
            times = dict(counted.same).get(kind, 0) if kind else 0
            if strategy.max_same_failures is not UNLIMITED and times >= strategy.max_same_failures:
                return counted, GiveUp(f"it has failed {times} times in this way without progress")
            return _after_growing_delay(strategy, counted, now, draw)
        case FailureRate():
            return _within_rate(strategy, history, now)
        case _:
            assert_never(strategy)


def _after_fixed_delay(strategy: FixedDelay, history: History) -> tuple[History, Verdict]:
    if strategy.attempts is not UNLIMITED and history.restarts >= strategy.attempts:
        return history, GiveUp(f"all {strategy.attempts} restarts are used up")
    return replace(history, restarts=history.restarts + 1), Restart(strategy.delay_ms)


def _after_growing_delay(
    strategy: ExponentialDelay, history: History, now: Millis, draw: float
) -> tuple[History, Verdict]:
    # The time spent waiting is not time spent running, so it does not count towards the reset.
    recovered = now - history.resumed > strategy.reset_after_ms
    if history.restarts == 0 or recovered:
        restarts, backoff = 1, strategy.initial_ms
    else:
        # Grown from the last delay: a power of the count would overflow in a job that never heals.
        restarts = history.restarts + 1
        backoff = min(strategy.max_ms, round(history.backoff_ms * strategy.multiplier))
    swing = strategy.jitter * (2 * draw - 1)
    delay = min(strategy.max_ms, round(backoff * (1 + swing)))
    resumed = Millis(now + delay)
    memory = replace(history, restarts=restarts, backoff_ms=backoff, resumed=resumed)
    return memory, Restart(delay)


def _counted(history: History, kind: Kind | None) -> History:
    """The kind that was seen last stands at the end."""
    if kind is None or not kind.error:
        return history
    times = dict(history.same).get(kind, 0) + 1
    others = tuple(each for each in history.same if each[0] != kind)
    return replace(history, same=(*others, (kind, times))[-MOST_KINDS:])


def _within_rate(strategy: FailureRate, history: History, now: Millis) -> tuple[History, Verdict]:
    recent = (*(at for at in history.recent if now - at < strategy.window_ms), now)
    if len(recent) > strategy.max_failures:
        reason = f"{len(recent)} failures within {strategy.window_ms} ms"
        return history, GiveUp(f"{reason}, and {strategy.max_failures} are allowed")
    return replace(history, restarts=history.restarts + 1, recent=recent), Restart(
        strategy.delay_ms
    )
