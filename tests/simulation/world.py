"""Holds simulated time: a heap of things to happen, one seeded source of chance, and a record.

Everything in a simulated job happens in one thread, at a moment drawn from the schedule's seed, so
the same seed is the same history to the letter. Nothing here knows what a job is.
"""

import heapq
import random
import zlib
from collections import Counter, deque
from collections.abc import Callable
from typing import NoReturn

from weir.core.ids import Millis, OperatorId, SubtaskId


class Violation(AssertionError):
    """The job broke a promise."""


class World:
    """Time, chance and memory of one schedule."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now = 0
        self.seen: Counter[str] = Counter()
        self.events = 0
        self.digest = 0
        self.violation = ""
        """The first broken promise: code that must survive anything may swallow the exception."""
        self.calm = False
        """No more faults: what was broken must now heal."""
        self.history: deque[tuple[int, str, object]] = deque(maxlen=4000)
        self.completed_at: dict[int, int] = {}
        """When each epoch's driver completed its newest checkpoint, by that driver's clock."""
        self.order_is_checked = False
        self.time_is_checked = False
        self.passed_is_checked = True
        """Until a restore drops what finished subtasks had counted."""
        self.ended_in: dict[OperatorId, int] = {}
        """The epoch in which each operator's data ended last; a zombie's end is no news."""
        self.final: dict[int, int] = {}
        """Rows by key, as the keyed operator counted them when its data ended."""
        self.passed: dict[SubtaskId, int] = {}
        """Rows that went through each map."""
        self.rules: dict[SubtaskId, dict[tuple[int, int, str, int, int], int]] = {}
        """How often each subtask saw each broadcast row."""
        self._heap: list[tuple[int, int, Callable[..., object], tuple[object, ...]]] = []
        self._order = 0

    def at(self, delay: int, act: Callable[..., object], *args: object) -> None:
        self._order += 1
        heapq.heappush(self._heap, (self.now + delay, self._order, act, args))

    def step(self) -> bool:
        """Let the next thing happen; False when nothing is left."""
        if not self._heap:
            return False
        due, order, act, args = heapq.heappop(self._heap)
        self.now = max(self.now, due)
        self.events += 1
        self.digest = zlib.crc32(f"{due} {order} {act.__name__}".encode(), self.digest)
        act(*args)
        if self.violation:
            raise Violation(self.violation)
        return True

    @property
    def millis(self) -> Millis:
        return Millis(self.now)

    def chance(self, probability: float) -> bool:
        """Whether a fault strikes; never once the world is calm."""
        return not self.calm and self.rng.random() < probability

    def delay(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)

    def is_news(self, operator: OperatorId, epoch: int) -> bool:
        """Whether the end of this operator's data counts, or a newer driver has seen one."""
        newest = max(epoch, self.ended_in.get(operator, 0))
        self.ended_in[operator] = newest
        return epoch == newest

    def saw(self, what: str) -> None:
        self.seen[what] += 1

    def record(self, who: str, what: object) -> None:
        self.history.append((self.now, who, what))

    def violated(self, what: str) -> NoReturn:
        self.record("oracle", f"VIOLATION {what}")
        self.violation = self.violation or what
        raise Violation(what)
