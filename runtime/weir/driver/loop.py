"""The driver's loop: passes one event at a time to the core, and the actions to the action runner.

Everything that happens reaches the core through this queue, so a driver's run is one sequence of
events that can be recorded and replayed. Only this module reads the clock and draws random numbers.
"""

import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Protocol

from weir.core.action_log import Level, Line, describe_action
from weir.core.coordinator.actions import EndDriver
from weir.core.event_log import describe_event
from weir.core.invariants import violations
from weir.core.job_master import Action, DriverAction, Event, Job, next_deadline, step
from weir.driver.loop_clock import LoopClock
from weir.errors import WeirError

log = logging.getLogger("weir.driver")

LEVELS = {
    Level.DEBUG: logging.DEBUG,
    Level.INFO: logging.INFO,
    Level.WARNING: logging.WARNING,
    Level.ERROR: logging.ERROR,
}

LONGEST_WAIT_SECONDS = 60.0


class ActionHandler(Protocol):
    """Carries out actions. Must not wait: what takes time answers with an event later."""

    def carry_out(self, action: DriverAction, job: Job) -> None: ...


StepListener = Callable[[Event, Job, tuple[Action, ...]], None]
"""Sees every step after it was decided and before it is carried out."""


@dataclass
class Loop:
    """Decides by the core until the driver's end."""

    name: str
    action_runner: ActionHandler
    listeners: Sequence[StepListener]
    job: Job
    end: EndDriver | None = None
    time: LoopClock = field(default_factory=LoopClock)
    _queue: SimpleQueue[Event | WeirError] = field(default_factory=SimpleQueue)
    _dice: random.Random = field(default_factory=random.Random)

    def enqueue(self, event: Event) -> None:
        """From any thread."""
        self._queue.put(event)

    def fail(self, problem: WeirError) -> None:
        """From any thread: nothing that the core could decide would help, and time would not."""
        self._queue.put(problem)

    def run(self, first: tuple[Action, ...]) -> EndDriver:
        """Run until the core decides that the driver ends."""
        self._carry_out(first)
        while self.end is None:
            event = self._next()
            if isinstance(event, WeirError):
                raise event
            self._pass_time()
            if event is not None and self.end is None:
                self._step(event)
        return self.end

    def _next(self) -> Event | WeirError | None:
        deadline = next_deadline(self.job)
        patience = LONGEST_WAIT_SECONDS
        if deadline is not None:
            patience = min(self.time.left_ms(deadline) / 1000, LONGEST_WAIT_SECONDS)
        try:
            return self._queue.get(timeout=patience)
        except Empty:
            return None

    def _pass_time(self) -> None:
        """Time first: an event is judged by when it arrived."""
        passed = self.time.passed(self._dice.random)
        if passed is not None:
            self._step(passed)

    def _step(self, event: Event) -> None:
        self._log(describe_event(event, self.name))
        self.job, actions = step(self.job, event)
        broken = violations(self.job)
        assert not broken, f"{event} broke a promise: {broken[0]}"
        for on_step in self.listeners:
            on_step(event, self.job, actions)
        self._carry_out(actions)

    def _carry_out(self, actions: tuple[Action, ...]) -> None:
        for action in actions:
            self._log(describe_action(action, self.name))
            if isinstance(action, EndDriver):
                self.end = action
                return
            self.action_runner.carry_out(action, self.job)

    def _log(self, line: Line) -> None:
        log.log(LEVELS[line.level], "%s", line.text)
