"""Fake jobs for tests of the script runner, and scripts that start one.

A script imports this module and starts a job as a session would; the job ends as the script says.
"""

import threading

from weir.api.report import JobPhase, JobReport
from weir.driver.started_jobs import STARTED

ENDS_AS = "from managed_scripts import start\nstart({phase!r})\n"


class FakeManagedJob:
    """A ``StartedJob`` without a driver."""

    def __init__(self, phase: JobPhase) -> None:
        self.name = "orders"
        self.is_over = threading.Event()
        self.phase = phase

    @property
    def is_active(self) -> bool:
        return not self.is_over.is_set()

    def wait(self) -> None:
        """Ends the job."""
        self.is_over.set()

    def report(self) -> JobReport:
        phase = JobPhase.RUNNING if self.is_active else self.phase
        return JobReport(attempt=3, phase=phase, completed=5)


def start(phase: str) -> FakeManagedJob:
    job = FakeManagedJob(JobPhase[phase])
    STARTED.add(job)
    return job
