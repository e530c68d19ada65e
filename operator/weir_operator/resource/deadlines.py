"""How long each phase of a start may take before the start has failed.

A start can hang in many ways: an image that does not exist, a full node, a savepoint of a terabyte.
Each phase has a separate deadline, so that the status can name the one that hangs.
"""

from enum import StrEnum
from typing import Annotated

from weir.api.bounds import Bounds
from weir.api.duration import MINUTE, Duration
from weir.api.model import Model


class StartPhase(StrEnum):
    """The phases of a start, in order; each ends where the next begins."""

    POD = "pod"
    """The driver's pod waits for a node and its image."""
    DRIVER = "driver"
    """The driver's process starts and does not answer yet."""
    SLOTS = "slots"
    """The driver waits for its executors."""
    RESTORE = "restore"
    """State is being restored; afterwards all subtasks run."""


Deadline = Annotated[
    Duration,
    Bounds(
        least=1,
        because="nothing starts in no time",
        remedy="use a duration above zero, as in 5 min",
    ),
]


class StartDeadlines(Model):
    """How long each phase of a start may take before the start has failed."""

    pod: Deadline = 5 * MINUTE
    """Time for the driver's pod to find a node and its image, until its container runs."""

    driver: Deadline = 5 * MINUTE
    """Time for the driver's process to start, until it answers."""

    slots: Deadline = 10 * MINUTE
    """Time for executors to start, until as many slots as the job needs have registered."""

    restore: Deadline = 60 * MINUTE
    """Time for state to be restored, until all subtasks run."""

    def of(self, phase: StartPhase) -> int:
        """Milliseconds that a phase may take."""
        deadlines: dict[StartPhase, int] = {
            StartPhase.POD: self.pod,
            StartPhase.DRIVER: self.driver,
            StartPhase.SLOTS: self.slots,
            StartPhase.RESTORE: self.restore,
        }
        return deadlines[phase]
