"""One look at a time for each resource: when something rings for it, or when its time has come.

A resource that rings during a look is looked at once more afterwards, however often it rang. What
time may heal is tried again after a wait that grows up to a limit. An error in us is the end of
that look alone: it is logged with its trace and counted, and the other jobs go on.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context
from dataclasses import dataclass, field
from datetime import datetime

from weir.errors import Unavailable
from weir_operator.cluster.api_paths import Key
from weir_operator.cluster.api_requests import ApiRefused

log = logging.getLogger("weir_operator.desk")

AT_ONCE = 64
"""Looks that run beside each other; the others wait their turn."""
LONGEST_NAP_S = 300.0
FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
WAIT_AFTER_A_BUG_S = 30.0


@dataclass(frozen=True, slots=True)
class Again:
    """Look again at that moment at the latest, or when it rings."""

    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Over:
    """The resource is gone."""


Looked = Again | Over
Look = Callable[[Key], Awaitable[Looked]]
Failed = Callable[[str], None]


@dataclass(slots=True)
class Desk:
    """The looks at all resources of one kind."""

    kind: str
    look: Look
    failed: Failed
    now: Callable[[], datetime]
    _bells: dict[Key, asyncio.Event] = field(default_factory=dict)
    _tasks: dict[Key, asyncio.Task[None]] = field(default_factory=dict)
    _seats: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    _is_closed: bool = False

    def ring(self, key: Key) -> None:
        """Look at it soon; never again, once the desk is closed."""
        if self._is_closed:
            return
        bell = self._bells.setdefault(key, asyncio.Event())
        bell.set()
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(
                self._attend(key, bell),
                name=f"{self.kind} {key}",
                context=Context(),  # whoever rings has whole objects in his, which would be kept
            )

    async def close(self) -> None:
        """Stop at once, wherever a look is: the next operator repeats it."""
        self._is_closed = True
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _attend(self, key: Key, bell: asyncio.Event) -> None:
        failures, nap = 0, 0.0
        try:
            while True:
                await _wait(bell, nap)
                bell.clear()
                looked, nap = await self._try(key, failures)
                failures = 0 if looked is not None else failures + 1
                if isinstance(looked, Over) and not bell.is_set():
                    return
        finally:
            del self._bells[key], self._tasks[key]

    async def _try(self, key: Key, failures: int) -> tuple[Looked | None, float]:
        """Look once; how it went, and how long to wait for the next time."""
        about = {self.kind: str(key)}
        try:
            async with self._seats:
                looked = await self.look(key)
        except ApiRefused as refused:
            self.failed(refused.reason)
            log.warning("Somebody must act.", extra={**about, "why": str(refused)})
            return None, _growing(failures)
        except Unavailable as problem:
            self.failed("Unavailable")
            log.warning("It is tried again.", extra={**about, "why": str(problem)})
            return None, max(problem.retry_after, _growing(failures))
        except Exception:
            self.failed("Bug")
            log.exception("A look failed by an error of ours.", extra=about)
            return None, WAIT_AFTER_A_BUG_S
        return looked, self._nap(looked)

    def _nap(self, looked: Looked) -> float:
        if isinstance(looked, Over) or looked.at is None:
            return LONGEST_NAP_S
        return min(max(0.0, (looked.at - self.now()).total_seconds()), LONGEST_NAP_S)


def _growing(failures: int) -> float:
    return min(FIRST_WAIT_S * 2.0 ** min(failures, 16), LONGEST_WAIT_S)


async def _wait(bell: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await bell.wait()
    except TimeoutError:
        return
