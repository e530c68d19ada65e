"""What holds of a job and what does not, in the form that Kubernetes' own tools read.

``kubectl wait --for=condition=Ready`` is the reader to think of. A condition that is true is not
always good news: Degraded is true when something is wrong.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime

from weir.api.truncation import TruncatedTo
from weir_operator.resource.status_model import Count, Reported
from weir_operator.resource.string_types import Text


class ConditionType(StrEnum):
    """What can hold of a job."""

    READY = "Ready"
    """All subtasks run."""
    PROGRESSING = "Progressing"
    """The operator is bringing the job to what its specification says."""
    DEGRADED = "Degraded"
    """Something is wrong that does not heal by itself, or has not yet."""
    SPEC_ACCEPTED = "SpecAccepted"
    """The specification can be run; if not, the one before it goes on."""
    STABLE = "Stable"
    """The deployed specification has proved itself and is what a rollback goes back to."""
    LOCAL_RECOVERY = "LocalRecovery"
    """Executors keep local copies of state; only there if the specification asks for them."""


class ConditionStatus(StrEnum):
    """Whether it holds."""

    TRUE = "True"
    """It does."""
    FALSE = "False"
    """It does not."""
    UNKNOWN = "Unknown"
    """Nobody can say."""


Reason = Annotated[
    str,
    Text(
        pattern="^[A-Z][A-Za-z0-9]*$",
        longest=128,
        because="a reason is one word for programs",
        remedy="write it as in CheckpointTimedOut",
    ),
]


class Condition(Reported):
    """Whether something holds of the job, since when and why."""

    type: ConditionType
    """Ready, Progressing, Degraded, SpecAccepted, Stable or LocalRecovery."""

    status: ConditionStatus
    """True, False or Unknown."""

    observed_generation: Count | None = None
    """Generation of the specification for which it was judged."""

    last_transition_time: AwareDatetime
    """When the status last changed."""

    reason: Reason
    """One word for it, for programs."""

    message: Annotated[str, TruncatedTo(4_096)] = ""
    """What it means, for people: the thing, the cause and the remedy."""
