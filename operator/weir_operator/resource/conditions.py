"""The conditions of a job, as Kubernetes' own tools read them.

Their typical reader is ``kubectl wait --for=condition=Ready``. A condition that is True is not
always good: Degraded is True when something is wrong.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime

from weir.api.truncation import TruncatedTo
from weir_operator.resource.status_model import Count, StatusModel
from weir_operator.resource.string_types import StringPattern


class ConditionType(StrEnum):
    """The types of conditions."""

    READY = "Ready"
    """All subtasks run."""
    PROGRESSING = "Progressing"
    """The operator is bringing the job to its desired state."""
    DEGRADED = "Degraded"
    """A problem that is not resolved, or needs a person."""
    SPEC_ACCEPTED = "SpecAccepted"
    """The specification is valid; if not, the previous one keeps running."""
    STABLE = "Stable"
    """The deployed specification is stable, and a rollback returns to it."""
    LOCAL_RECOVERY = "LocalRecovery"
    """Executors keep local copies of state; only present if the specification requests them."""


class ConditionStatus(StrEnum):
    """Whether it holds."""

    TRUE = "True"
    """It does."""
    FALSE = "False"
    """It does not."""
    UNKNOWN = "Unknown"
    """It cannot be determined."""


Reason = Annotated[
    str,
    StringPattern(
        pattern="^[A-Z][A-Za-z0-9]*$",
        longest=128,
        because="a reason is one word for programs",
        remedy="write it as in CheckpointTimedOut",
    ),
]


class Condition(StatusModel):
    """Whether something holds of the job, since when and why."""

    type: ConditionType
    """Ready, Progressing, Degraded, SpecAccepted, Stable or LocalRecovery."""

    status: ConditionStatus
    """True, False or Unknown."""

    observed_generation: Count | None = None
    """Generation of the specification that it was determined for."""

    last_transition_time: AwareDatetime
    """When the status last changed."""

    reason: Reason
    """A CamelCase reason, for programs."""

    message: Annotated[str, TruncatedTo(4_096)] = ""
    """What it means, for users: the object, the cause and the remedy."""
