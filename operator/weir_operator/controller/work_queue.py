"""Runs one reconcile at a time for each resource: when it is enqueued, or when its requeue is due.

A resource that is enqueued during its reconcile is reconciled once more afterwards, however often
it was enqueued. After a temporary error the queue retries with exponential backoff up to a limit.
An unexpected exception ends that reconcile only: it is logged with its traceback and counted, and
other resources are not affected.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context
from dataclasses import dataclass, field
from datetime import datetime

from weir.errors import Unavailable
from weir_operator.cluster.api_paths import NamespacedName
from weir_operator.cluster.api_requests import ApiRejected

log = logging.getLogger("weir_operator.work_queue")

MAX_CONCURRENT = 64
"""Limit of concurrent reconciles; the others wait."""
LONGEST_DELAY_S = 300.0
BACKOFF_BASE_S = 1.0
BACKOFF_LIMIT_S = 60.0
DELAY_AFTER_BUG_S = 30.0


@dataclass(frozen=True, slots=True)
class Requeue:
    """Reconcile again at that time at the latest, or when the resource is enqueued."""

    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """The resource is gone."""


ReconcileResult = Requeue | Done
Reconcile = Callable[[NamespacedName], Awaitable[ReconcileResult]]
CountFailure = Callable[[str], None]


@dataclass(slots=True)
class WorkQueue:
    """The work queue of all resources of one kind."""

    kind: str
    reconcile: Reconcile
    failed: CountFailure
    now: Callable[[], datetime]
    _signals: dict[NamespacedName, asyncio.Event] = field(default_factory=dict)
    _tasks: dict[NamespacedName, asyncio.Task[None]] = field(default_factory=dict)
    _permits: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_CONCURRENT))
    _is_closed: bool = False

    def enqueue(self, key: NamespacedName) -> None:
        """Reconcile it soon; ignored once the queue is closed."""
        if self._is_closed:
            return
        signal = self._signals.setdefault(key, asyncio.Event())
        signal.set()
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(
                self._run(key, signal),
                name=f"{self.kind} {key}",
                context=Context(),  # the caller's would keep whole objects alive
            )

    async def close(self) -> None:
        """Cancel all reconciles wherever they are: the next leader repeats them."""
        self._is_closed = True
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, key: NamespacedName, signal: asyncio.Event) -> None:
        failures, delay = 0, 0.0
        try:
            while True:
                await _wait(signal, delay)
                signal.clear()
                result, delay = await self._reconcile(key, failures)
                failures = 0 if result is not None else failures + 1
                if isinstance(result, Done) and not signal.is_set():
                    return
        finally:
            del self._signals[key], self._tasks[key]

    async def _reconcile(
        self, key: NamespacedName, failures: int
    ) -> tuple[ReconcileResult | None, float]:
        """Reconcile once; return the result and the delay until the next time."""
        about = {self.kind: str(key)}
        try:
            async with self._permits:
                result = await self.reconcile(key)
        except ApiRejected as refused:
            self.failed(refused.reason)
            log.warning("The API server rejected a request.", extra={**about, "why": str(refused)})
            return None, _backoff(failures)
        except Unavailable as problem:
            self.failed("Unavailable")
            log.warning(
                "A reconcile failed and will be retried.", extra={**about, "why": str(problem)}
            )
            return None, max(problem.retry_after, _backoff(failures))
        except Exception:
            self.failed("Bug")
            log.exception("A reconcile failed with an unexpected exception.", extra=about)
            return None, DELAY_AFTER_BUG_S
        return result, self._delay(result)

    def _delay(self, result: ReconcileResult) -> float:
        if isinstance(result, Done) or result.at is None:
            return LONGEST_DELAY_S
        return min(max(0.0, (result.at - self.now()).total_seconds()), LONGEST_DELAY_S)


def _backoff(failures: int) -> float:
    return min(BACKOFF_BASE_S * 2.0 ** min(failures, 16), BACKOFF_LIMIT_S)


async def _wait(signal: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await signal.wait()
    except TimeoutError:
        return
