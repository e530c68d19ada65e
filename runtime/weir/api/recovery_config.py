"""What a job starts from, and what it may leave behind there.

Without a path a job continues from its own newest completed checkpoint, if its storage has one;
that is recovery and needs no setting. A path names a savepoint or a retained checkpoint of any job.
Whether what lies there fits the job is decided when it has been read, not here.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

from pydantic import StrictBool, StrictInt

from weir.api.bounds import Bounds
from weir.api.config_problem import Problem
from weir.api.model import Model
from weir.api.storage_url import DurableUrl


class ClaimMode(StrEnum):
    """Who owns what the job was restored from."""

    NO_CLAIM = "NO_CLAIM"
    """Its owner: the job never deletes it and builds nothing on it."""
    CLAIM = "CLAIM"
    """The job, which deletes it when it is subsumed."""


class RecoveryConfig(Model):
    """What a job starts from, and what it may leave behind there."""

    path: DurableUrl | None = None
    """Savepoint or retained checkpoint to start from."""

    claim_mode: ClaimMode = ClaimMode.NO_CLAIM
    """NO_CLAIM never changes the files at the path; with CLAIM the job owns and deletes it."""

    allow_non_restored_state: StrictBool = False
    """Drop state of operators that the job no longer has, instead of refusing to start."""

    without_in_flight_of: (
        Annotated[
            StrictInt,
            Bounds(
                least=1,
                because="checkpoints are numbered from 1",
                remedy="use the id of the checkpoint, or remove withoutInFlightOf",
            ),
        ]
        | None
    ) = None
    """Id of the one checkpoint that is restored without its data in flight, which is then lost."""

    def contradictions(self) -> Iterator[Problem]:
        """Yield a claim on nothing."""
        if self.claim_mode is ClaimMode.CLAIM and self.path is None:
            yield self.problem(
                "claim_mode",
                "there is no path to claim, and its own checkpoints a job owns anyway",
                "set path to what the job shall own, or claimMode to NO_CLAIM",
            )
