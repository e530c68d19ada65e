"""The interface between the API and a job: queries about the job, and commands to it.

Every method returns at once, from any thread. A command only starts a request; its outcome is
looked up later by the request's id.
"""

from typing import Protocol

from weir.api.report import JobReport
from weir.rest.checkpoint_statistics import (
    CheckpointDetails,
    CheckpointingSettings,
    CheckpointStatistics,
    TaskDetails,
)
from weir.rest.commands import Command, RequestState
from weir.rest.job_overview import Graph, Overview


class JobQueries(Protocol):
    """Queries about a job. None means that the answer is not known, or not any more."""

    def overview(self) -> Overview: ...

    def graph(self) -> Graph: ...

    def settings(self) -> CheckpointingSettings: ...

    def checkpoints(self) -> CheckpointStatistics: ...

    def checkpoint(self, checkpoint: int) -> CheckpointDetails | None: ...

    def task(self, checkpoint: int, operator: str) -> TaskDetails | None: ...

    def report(self) -> JobReport: ...


class JobCommands(Protocol):
    """Commands to a job."""

    def order(self, order: Command, key: str) -> str:
        """Start the request of a command; returns the request's id.

        The same key again is the same request, and nothing more is done. A key that belongs to
        another command, or a command to a job that has ended, raises ``JobRejected``. An empty key
        always starts a new request.
        """

    def request(self, request: str) -> RequestState | None: ...


class JobView(JobQueries, JobCommands, Protocol):
    """Queries and commands of one job."""
