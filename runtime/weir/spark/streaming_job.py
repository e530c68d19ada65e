"""The user's handle of a submitted job: PySpark's ``StreamingQuery``, and Flink's savepoints.

The driver runs on threads of this process, the slots in Spark's tasks. This module decides nothing;
it asks the driver and waits for the answer.
"""

import logging
import threading
from dataclasses import dataclass

from weir.api.report import JobPhase, JobReport
from weir.core.coordinator.actions import RequestFailed
from weir.core.lifecycle import JobStatus
from weir.core.restore_decision import RestoreRequest
from weir.core.snapshots import CheckpointKind
from weir.driver.driver_process import Driver, DriverResult
from weir.errors import JobRejected, WeirError
from weir.slot.slot_process import SlotSetting
from weir.spark.job_api import JobApi
from weir.spark.slot_tasks import SparkSlots
from weir.storage.stores import as_url

log = logging.getLogger("weir.spark")

SLOT_SHUTDOWN_SECONDS = 3.0
"""How long slots may take to end; a slot that is just being replaced would never end by itself."""


class JobFailed(WeirError):
    """The job ended without having done its work."""


@dataclass(frozen=True, slots=True)
class SlotRequest:
    """The slots that a job needs."""

    setting: SlotSetting
    count: int


class StreamingJob:
    """One submission."""

    def __init__(self, name: str, driver: Driver, slots: SparkSlots, api: JobApi) -> None:
        self.name = name
        self.driver = driver
        self._slots = slots
        self._api = api
        self._ending: DriverResult | None = None
        self._problem: Exception | None = None
        self._thread: threading.Thread | None = None

    def start(self, restore_request: RestoreRequest, slot_request: SlotRequest) -> None:
        self._api.open()
        self._slots.start(slot_request.setting, slot_request.count)
        self._thread = threading.Thread(
            target=self._run, args=(restore_request,), name=f"weir-driver-{self.name}", daemon=True
        )
        self._thread.start()

    def _run(self, restore_request: RestoreRequest) -> None:
        try:
            self._ending = self.driver.run(restore_request, self._api.url)
        except Exception as problem:
            log.debug("The driver of %s ended with an error.", self.name, exc_info=True)
            self._problem = problem
            self.driver.close()
        self._slots.stop(SLOT_SHUTDOWN_SECONDS)
        self._api.close()

    @property
    def url(self) -> str:
        """Of the job's API."""
        return self._api.url

    # -- for the runner of the script

    @property
    def is_active(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def wait(self) -> None:
        """Until the end, however the job ends."""
        assert self._thread is not None, "a job that was never started has no end"
        self._thread.join()

    def report(self) -> JobReport:
        """The report of the job's API, with the reason if the driver has ended.

        A fenced job counts as running: another driver runs it.
        """
        is_fenced = self._ending is not None and self._ending.fenced
        phase = JobPhase.RUNNING if is_fenced else JobPhase[self.status.name]
        report = self._api.view.report().model_copy(update={"phase": phase})
        problem = self.exception()
        if isinstance(problem, JobRejected):
            return report.as_over(str(problem), is_rejected=True)
        if problem is not None:
            return report.as_over(str(problem))
        return report

    # -- as in PySpark

    @property
    def isActive(self) -> bool:  # noqa: N802
        return self.is_active

    @property
    def status(self) -> JobStatus:
        return self._ending.status if self._ending else self.driver.statistics.status

    def exception(self) -> Exception | None:
        """Why the job ended, if it did not end well."""
        if self._problem is not None:
            return self._problem
        if self._ending is None:
            return None
        if self._ending.fenced:
            return JobFailed(
                f"job {self.name} ended here",
                "another driver has taken it over",
                "follow the job at that driver",
            )
        if self._ending.status is JobStatus.FAILED:
            return JobFailed(
                f"job {self.name} failed",
                self.driver.why,
                "correct the cause, then start the job again; it continues from its newest"
                " checkpoint",
            )
        return None

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802
        """Wait for the end; whether it has come. A job that failed raises why."""
        assert self._thread is not None, "a job that was never started has no end"
        self._thread.join(timeout)
        if self._thread.is_alive():
            return False
        problem = self.exception()
        if problem is not None:
            raise problem
        return True

    def stop(self) -> None:
        """Cancel the job, as PySpark's ``stop`` does; nothing is drained and nothing is saved."""
        self.driver.cancel()
        self.awaitTermination()

    # -- as in Flink

    def checkpoint(self) -> str:
        """Take a checkpoint now; where it is."""
        return self._ask(CheckpointKind.CHECKPOINT, "")

    def savepoint(self, path: str = "") -> str:
        """Take a savepoint while the job continues; returns its path."""
        return self._ask(CheckpointKind.SAVEPOINT, path)

    def stopWithSavepoint(self, path: str = "", *, drain: bool = False) -> str:  # noqa: N802
        """Take a savepoint and end with it; ``drain`` fires all timers first, for good."""
        kind = CheckpointKind.SAVEPOINT_TERMINATE if drain else CheckpointKind.SAVEPOINT_SUSPEND
        location = self._ask(kind, path)
        self.awaitTermination()
        return location

    def _ask(self, kind: CheckpointKind, path: str) -> str:
        request = self.driver.ask(kind, as_url(path))
        future = self.driver.outcome_of(request)
        assert future is not None, "what was just asked is known"
        outcome = future.result()
        if isinstance(outcome, RequestFailed):
            raise JobFailed(
                f"the {kind} of job {self.name} failed",
                outcome.message,
                "see with `weir checkpoints` how the last ones ended, then try again",
            )
        return outcome.location
