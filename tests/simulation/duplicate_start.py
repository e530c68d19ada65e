"""Starts the same job once more, under another submission: while it runs, and at its end.

A start goes through the production decisions at one moment. If they let it through it takes the
log over, as any driver would, and the schedule sees the consequence: the driver that ran is fenced
without a successor, or a finished job begins again. It has a separate source of chance, so that the
schedules are what they would be without it.
"""

import random

from simulation.driver import Driver
from simulation.store import Store
from simulation.world import World
from weir.core import restore_decision, takeover
from weir.core.log_entries import EpochTaken, readable
from weir.core.takeover import Liveness

SHARE = 0.05


class DuplicateStart:
    """Another submission of a job that runs, or has run."""

    def __init__(self, world: World, store: Store, drivers: list[Driver], seed: int) -> None:
        self.world = world
        self.store = store
        self.drivers = drivers
        self.dice = random.Random(seed)
        self.starts = 0

    def start_beside(self, driver: Driver) -> None:
        """While this driver runs the job and answers liveness probes."""
        is_theirs = driver.epoch == self.store.epoch()
        if driver.paused or not is_theirs or self.dice.random() >= SHARE:
            return
        self.world.saw("fault: a live job is started again")
        self._start()

    def start_again(self) -> None:
        """When the job has finished."""
        self.world.saw("fault: a finished job is started again")
        if self._start():
            self.world.violated("a job that has finished was run again")

    def _start(self) -> bool:
        """Whether the log was taken over."""
        self.starts += 1
        restore_request = restore_decision.RestoreRequest(f"namesake-{self.starts}")
        entries = readable(self.store.log)
        if restore_decision.is_finished(entries, restore_request):
            return False
        last = takeover.driver_to_probe(entries, restore_request)
        if last is not None and not takeover.may_replace(self._ask(last)):
            return False
        claimed = takeover.claim(
            entries, restore_decision.StartFresh(), restore_request, restore_request.deployment
        )
        self.store.log[claimed.index] = claimed.entry
        return True

    def _ask(self, last: EpochTaken) -> Liveness:
        named = [driver for driver in self.drivers if driver.name == last.driver]
        if not named or not named[-1].alive:
            return Liveness.GONE
        return Liveness.UNKNOWN if named[-1].paused else Liveness.LIVES
