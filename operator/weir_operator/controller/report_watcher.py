"""Listens to drivers, so that a job's status follows its driver soon and is not looked at often.

For each driver that answers, one task asks for the next version of its report and waits with it.
What a driver said last holds for as long as its next word is waited for: if it had changed, the
driver would have answered, and one that is cut off is given up after seconds. Silence is news too.
A driver runs other people's code, so however often it changes, it is heard and its job rung for
once a second at most (spec X3). What a report means is decided elsewhere.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from weir_operator.cluster.api_paths import Key
from weir_operator.driver_client import Line, Told
from weir_operator.plan.observed_state import DriverReport, Silence

PAUSE_S = 1.0
"""From one answer of a driver to the next question."""
LONGEST_PAUSE_S = 60.0
"""Between questions to one that does not answer."""


class Talking(Protocol):
    """Whoever asks drivers. Neither raises: a driver that does not answer is silent."""

    async def report(self, line: Line) -> Told | Silence: ...

    async def news(self, line: Line, after: str) -> Told | Silence: ...


@dataclass(slots=True)
class _Ear:
    """For one driver."""

    pod: str
    line: Line
    told: Told | Silence
    task: asyncio.Task[None] | None = None

    def is_at(self, pod: str, line: Line) -> bool:
        is_open = self.task is not None and not self.task.done()
        return is_open and (self.pod, self.line) == (pod, line)


@dataclass(slots=True)
class Listening:
    """The last words of all drivers that are listened to, by their jobs."""

    drivers: Talking
    ring: Callable[[Key], None]
    pause_s: float = PAUSE_S
    _ears: dict[Key, _Ear] = field(default_factory=dict)

    async def heard(self, job: Key, pod: str, line: Line) -> DriverReport | Silence:
        """What a driver says, by the uid of its pod; one that answers is listened to from now."""
        ear = self._ears.get(job)
        if ear is not None and not ear.is_at(pod, line):
            self.forget(job)
        elif ear is not None and isinstance(ear.told, Told):
            return ear.told.report
        told = await self.drivers.report(line)
        if isinstance(told, Silence):
            return told
        if told.version and job not in self._ears:
            self._begin(job, _Ear(pod, line, told))
        return told.report

    def forget(self, job: Key) -> None:
        """Its driver is gone, or is another one."""
        ear = self._ears.pop(job, None)
        if ear is not None and ear.task is not None:
            ear.task.cancel()

    async def close(self) -> None:
        tasks = [ear.task for ear in self._ears.values() if ear.task is not None]
        for job in tuple(self._ears):
            self.forget(job)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, job: Key, ear: _Ear) -> None:
        self._ears[job] = ear
        ear.task = asyncio.create_task(self._listen(job, ear))

    async def _listen(self, job: Key, ear: _Ear) -> None:
        failures = 0
        while True:
            after = ear.told.version if isinstance(ear.told, Told) else ""
            told = await self.drivers.news(ear.line, after)
            if told != ear.told:
                ear.told = told
                self.ring(job)
            failures = 0 if isinstance(told, Told) else min(failures + 1, 16)
            await asyncio.sleep(min(self.pause_s * 2**failures, LONGEST_PAUSE_S))
