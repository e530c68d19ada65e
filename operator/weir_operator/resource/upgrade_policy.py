"""How a job moves from one version of its specification to the next, and back.

State is never dropped because keeping it was difficult: only the mode ``stateless`` drops it, and
only because the user wrote so. That is why ``last-state`` is the default: a job without durable
state must declare that before it runs, not after its first upgrade.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

from pydantic import StrictBool, StrictInt

from weir.api.bounds import Bounds
from weir.api.config_problem import Problem
from weir.api.duration import MINUTE, Duration
from weir.api.model import Model


class UpgradeMode(StrEnum):
    """What the next version of a job starts from."""

    STATELESS = "stateless"
    """Nothing: all state is dropped."""
    SAVEPOINT = "savepoint"
    """A savepoint that is taken as the old version stops."""
    LAST_STATE = "last-state"
    """The newest completed checkpoint."""


class Fallback(StrEnum):
    """What happens to an upgrade whose savepoint cannot be taken."""

    LAST_STATE = "last-state"
    """It continues from the newest completed checkpoint."""
    NONE = "none"
    """It waits, and the old version keeps running as far as it can."""


class UpgradePolicy(Model):
    """How a new version of the job takes over from the old one."""

    mode: UpgradeMode = UpgradeMode.LAST_STATE
    """What a new version starts from: last-state takes the newest completed checkpoint, savepoint
    takes a savepoint as the old version stops, stateless drops all state. No other mode ever
    becomes stateless."""

    fallback: Fallback = Fallback.LAST_STATE
    """With mode savepoint, when no savepoint can be taken (the job is down, or the savepoint
    failed): last-state continues from the newest completed checkpoint, none waits and reports it.
    """

    max_checkpoint_age: (
        Annotated[
            Duration,
            Bounds(
                least=1,
                because="no checkpoint is that young",
                remedy="use a duration of several intervals, or remove maxCheckpointAge",
            ),
        ]
        | None
    ) = None
    """How old the newest completed checkpoint may be for an upgrade to start from it. If it is
    older, a running job takes a savepoint or checkpoint first, and one that is down is not
    upgraded. Any age if not given."""

    def contradictions(self) -> Iterator[Problem]:
        """Yield a maximum age that has no effect."""
        if self.mode is UpgradeMode.STATELESS and self.max_checkpoint_age is not None:
            yield self.problem(
                "max_checkpoint_age",
                "with mode = stateless no checkpoint is used",
                "remove maxCheckpointAge or set mode to last-state",
            )


class RollbackPolicy(Model):
    """When a new version counts as stable, and what happens if it does not become so."""

    enabled: StrictBool = True
    """Go back to the last stable version when a new one does not become stable in time."""

    checkpoints: Annotated[
        StrictInt,
        Bounds(
            least=1,
            most=1_000,
            because="a version without a checkpoint has proved nothing",
            remedy="use a number from 1 to 1000",
        ),
    ] = 3
    """How many checkpoints a new version completes, without a restart between them, to count as
    stable. A job without periodic checkpoints is stable once it ran for the whole of within without
    a restart."""

    within: Annotated[
        Duration,
        Bounds(
            least=1,
            because="no version becomes stable in no time",
            remedy="use a duration of several intervals, as in 10 min",
        ),
    ] = 10 * MINUTE
    """How long a new version has for that, from the moment it runs; twice as long without periodic
    checkpoints."""

    allow_repeated_output: StrictBool = False
    """Allow a return to the old version's own last state, if it cannot read the state of the new
    one. Output that the new one has written since is then repeated. Otherwise the job stays as it
    is and reports it."""
