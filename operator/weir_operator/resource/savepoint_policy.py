"""When periodic savepoints are taken, and how long they are kept.

The operator deletes only savepoints of a schedule; those that a user, an upgrade or a deletion
requested stay until a user deletes them. The newest one always stays.
"""

from collections.abc import Iterator
from typing import Annotated

from pydantic import StrictBool, StrictInt

from weir.api.bounds import Bounds
from weir.api.config_problem import Problem
from weir.api.duration import MINUTE, SECOND, Duration
from weir.api.model import Model
from weir_operator.resource.cron import Schedule


class SavepointPolicy(Model):
    """When periodic savepoints are taken, and how long they are kept."""

    interval: (
        Annotated[
            Duration,
            Bounds(
                least=10 * SECOND,
                because="savepoints are complete copies, and this often they would never end",
                remedy="use 10 s or more, or remove interval; checkpoints have their own",
            ),
        ]
        | None
    ) = None
    """Time from one periodic savepoint to the next, at least 10 s. None are taken if neither
    interval nor cron is given."""

    cron: Schedule | None = None
    """Schedule of periodic savepoints in cron's five fields, in UTC, as in "0 */6 * * *"."""

    max_count: Annotated[
        StrictInt,
        Bounds(
            least=1,
            most=1_000,
            because="the newest savepoint always stays",
            remedy="use a number from 1 to 1000",
        ),
    ] = 10
    """How many periodic savepoints stay; older ones are deleted, with their files unless these are
    under file://."""

    max_age: (
        Annotated[
            Duration,
            Bounds(
                least=1,
                because="no savepoint would stay",
                remedy="use a duration above zero, or remove maxAge",
            ),
        ]
        | None
    ) = None
    """How long a periodic savepoint stays; the newest stays in any case. For ever if not given."""

    on_deletion: StrictBool = False
    """Take a savepoint before the job stops because its resource was deleted."""

    deletion_deadline: Annotated[
        Duration,
        Bounds(
            least=1,
            because="no savepoint completes in no time",
            remedy="use a duration above zero, or set onDeletion to false",
        ),
    ] = 10 * MINUTE
    """How long a deletion waits for its savepoint. Afterwards the resource goes without one, and
    the checkpoints stay in storage."""

    @property
    def is_periodic(self) -> bool:
        """Whether savepoints are taken by themselves while the job runs."""
        return self.interval is not None or self.cron is not None

    def contradictions(self) -> Iterator[Problem]:
        """Yield two schedules."""
        if self.interval is not None and self.cron is not None:
            yield self.problem(
                "interval", f"there is a second schedule, cron = {self.cron}", "remove one of them"
            )
