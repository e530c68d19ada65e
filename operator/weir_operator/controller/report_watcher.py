"""Long-polls the reports of drivers, so that the status of a job follows its driver at once.

For each reachable driver one task requests the next version of its report and waits for it. The
last report stays valid while that request is pending: had it changed, the driver would have
answered, and a broken connection is detected within seconds. Becoming unreachable is a change too.
A driver runs user code, so however often its report changes, it is read and its job enqueued at
most once per second (spec X3).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from weir_operator.cluster.api_paths import NamespacedName
from weir_operator.driver_client import DriverEndpoint, VersionedReport
from weir_operator.plan.observed_state import DriverReport, Unreachable

PAUSE_S = 1.0
"""From one report of a driver to the next request."""
LONGEST_PAUSE_S = 60.0
"""Between requests to an unreachable driver."""


class ReportSource(Protocol):
    """Requests reports from drivers. Neither method raises: it returns ``Unreachable``."""

    async def report(self, endpoint: DriverEndpoint) -> VersionedReport | Unreachable: ...

    async def next_report(
        self, endpoint: DriverEndpoint, after: str
    ) -> VersionedReport | Unreachable: ...


@dataclass(slots=True)
class _Watch:
    """The watch on one driver."""

    pod: str
    endpoint: DriverEndpoint
    report: VersionedReport | Unreachable
    task: asyncio.Task[None] | None = None

    def is_at(self, pod: str, endpoint: DriverEndpoint) -> bool:
        is_open = self.task is not None and not self.task.done()
        return is_open and (self.pod, self.endpoint) == (pod, endpoint)


@dataclass(slots=True)
class ReportWatcher:
    """The last reports of all watched drivers, by job."""

    drivers: ReportSource
    enqueue: Callable[[NamespacedName], None]
    pause_s: float = PAUSE_S
    _watches: dict[NamespacedName, _Watch] = field(default_factory=dict)

    async def latest(
        self, job: NamespacedName, pod: str, endpoint: DriverEndpoint
    ) -> DriverReport | Unreachable:
        """The report of a driver, by the uid of its pod; a reachable one is watched from now on."""
        watch = self._watches.get(job)
        if watch is not None and not watch.is_at(pod, endpoint):
            self.forget(job)
        elif watch is not None and isinstance(watch.report, VersionedReport):
            return watch.report.report
        report = await self.drivers.report(endpoint)
        if isinstance(report, Unreachable):
            return report
        if report.version and job not in self._watches:
            self._begin(job, _Watch(pod, endpoint, report))
        return report.report

    def forget(self, job: NamespacedName) -> None:
        """The driver is gone, or there is another one."""
        watch = self._watches.pop(job, None)
        if watch is not None and watch.task is not None:
            watch.task.cancel()

    async def close(self) -> None:
        tasks = [watch.task for watch in self._watches.values() if watch.task is not None]
        for job in tuple(self._watches):
            self.forget(job)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, job: NamespacedName, watch: _Watch) -> None:
        self._watches[job] = watch
        watch.task = asyncio.create_task(self._poll(job, watch))

    async def _poll(self, job: NamespacedName, watch: _Watch) -> None:
        failures = 0
        while True:
            after = watch.report.version if isinstance(watch.report, VersionedReport) else ""
            report = await self.drivers.next_report(watch.endpoint, after)
            if report != watch.report:
                watch.report = report
                self.enqueue(job)
            failures = 0 if isinstance(report, VersionedReport) else min(failures + 1, 16)
            await asyncio.sleep(min(self.pause_s * 2**failures, LONGEST_PAUSE_S))
