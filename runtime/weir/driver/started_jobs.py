"""Tracks the jobs that were started in this process.

A script may end without waiting for its job or keeping a reference to it; the command that runs the
script still needs the job's status. A process runs one script, so there is one list.
"""

from typing import Protocol

from weir.api.report import JobReport
from weir.errors import JobRejected


class StartedJob(Protocol):
    """A job while it runs and afterwards."""

    @property
    def name(self) -> str: ...

    @property
    def is_active(self) -> bool: ...

    def wait(self) -> None:
        """Until the job is over, however it ends."""

    def report(self) -> JobReport: ...


class StartedJobs:
    """The oldest first."""

    def __init__(self) -> None:
        self._jobs: list[StartedJob] = []

    def add(self, job: StartedJob) -> None:
        """Those that are over by now are forgotten: a process may start many, one after another."""
        self._jobs = [*(each for each in self._jobs if each.is_active), job]

    def all(self) -> tuple[StartedJob, ...]:
        return tuple(self._jobs)

    def refuse_another(self, job: str) -> None:
        """A driver that was started for one job, by its name, has no directory for a second."""
        if self._jobs:
            raise JobRejected(
                f"this driver was started for job {job} alone, and its script starts a second one",
                "a managed driver runs one job",
                "write both results in one job, or give each job its resource",
            )


STARTED = StartedJobs()
"""Those of this process."""
