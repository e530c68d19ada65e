"""What the API needs of a job: pages to show and somebody to take orders.

Every method answers at once, from any thread. An order is only taken down; what comes of it is
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
    """A job to be looked at. What is not known (any more) is None."""

    def overview(self) -> Overview: ...

    def graph(self) -> Graph: ...

    def settings(self) -> CheckpointingSettings: ...

    def checkpoints(self) -> CheckpointStatistics: ...

    def checkpoint(self, checkpoint: int) -> CheckpointDetails | None: ...

    def task(self, checkpoint: int, operator: str) -> TaskDetails | None: ...

    def report(self) -> JobReport: ...


class JobCommands(Protocol):
    """A job to be told what to do."""

    def order(self, order: Command, key: str) -> str:
        """Take an order down; the id of its request.

        The same key again is the same request, and nothing more is done. A key that belongs to
        another order, or an order to a job that has ended, is refused with ``JobRejected``. An
        empty key is like no other.
        """

    def request(self, request: str) -> RequestState | None: ...


class JobView(JobQueries, JobCommands, Protocol):
    """A job as its API sees it."""
