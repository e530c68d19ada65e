"""The restart strategy: whether a job restarts after a failure, and after what delay.

One flat model with a ``type``, because a Kubernetes schema has no unions. Every other field belongs
to some of the types; a field of another type is refused by its name, since it would be ignored and
its author would not know. The defaults are Flink's and depend on the type. The delays themselves
are computed in the core.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import Field, StrictFloat, StrictInt, model_validator
from pydantic.alias_generators import to_camel

from weir.api.bounds import Bounds
from weir.api.config_problem import Problem
from weir.api.duration import HOUR, MINUTE, SECOND, Duration, format_duration
from weir.api.model import Model


class RestartType(StrEnum):
    """The restart strategies."""

    EXPONENTIAL_DELAY = "exponential-delay"
    """After a delay that grows with every failure and shrinks back after a quiet time; for ever,
    unless the job fails in the same way again and again."""
    FIXED_DELAY = "fixed-delay"
    """A number of times, each after the same delay."""
    FAILURE_RATE = "failure-rate"
    """Until failures come too often, each after the same delay."""
    NONE = "none"
    """Never: the first failure ends the job."""


_DEFAULTS: Mapping[RestartType, Mapping[str, int | float]] = MappingProxyType(
    {
        RestartType.EXPONENTIAL_DELAY: {
            "initial_backoff": 1 * SECOND,
            "max_backoff": 1 * MINUTE,
            "backoff_multiplier": 1.5,
            "reset_backoff_threshold": 1 * HOUR,
            "jitter_factor": 0.1,
            "max_same_failures": 10,
        },
        RestartType.FIXED_DELAY: {"attempts": 1, "delay": 1 * SECOND},
        RestartType.FAILURE_RATE: {
            "max_failures_per_interval": 1,
            "failure_rate_interval": 1 * MINUTE,
            "delay": 1 * SECOND,
        },
        RestartType.NONE: {},
    }
)


def _default_of(field: str) -> Callable[[dict[str, Any]], Any]:
    return lambda validated: _DEFAULTS[validated["type"]].get(field)


class RestartConfig(Model):
    """What happens after a failure. A field that is not of the type stays empty."""

    type: RestartType = RestartType.EXPONENTIAL_DELAY
    """exponential-delay, fixed-delay, failure-rate or none."""

    attempts: (
        Annotated[
            StrictInt,
            Bounds(
                least=1, because="no restart is another type", remedy="use 1 or more, or type none"
            ),
        ]
        | None
    ) = Field(default_factory=_default_of("attempts"))
    """fixed-delay: how many restarts before the job fails; 1 if not given."""

    delay: Duration | None = Field(default_factory=_default_of("delay"))
    """fixed-delay, failure-rate: time from a failure to the restart; 1 s if not given."""

    initial_backoff: (
        Annotated[
            Duration,
            Bounds(
                least=1,
                because="a delay of nothing never grows",
                remedy="use a duration above zero, or type fixed-delay",
            ),
        ]
        | None
    ) = Field(default_factory=_default_of("initial_backoff"))
    """exponential-delay: time from the first failure to the restart; 1 s if not given."""

    max_backoff: Duration | None = Field(default_factory=_default_of("max_backoff"))
    """exponential-delay: the delay grows up to this; 1 min if not given."""

    backoff_multiplier: (
        Annotated[
            StrictFloat,
            Bounds(
                least=1,
                because="the delay would shrink with every failure",
                remedy="use 1 or more",
            ),
        ]
        | None
    ) = Field(default_factory=_default_of("backoff_multiplier"))
    """exponential-delay: by what the delay grows with every failure; 1.5 if not given."""

    reset_backoff_threshold: (
        Annotated[
            Duration,
            Bounds(
                least=1,
                because="the delay would never grow",
                remedy="use a duration above zero, or type fixed-delay",
            ),
        ]
        | None
    ) = Field(default_factory=_default_of("reset_backoff_threshold"))
    """exponential-delay: time without failure that makes the delay start anew; 1 h if not given."""

    jitter_factor: (
        Annotated[
            StrictFloat,
            Bounds(
                least=0,
                most=1,
                because="it is the part of the delay that chance may add or take away",
                remedy="use a number from 0 to 1",
            ),
        ]
        | None
    ) = Field(default_factory=_default_of("jitter_factor"))
    """exponential-delay: part of the delay that is left to chance, 0 to 1; 0.1 if not given."""

    max_same_failures: (
        Annotated[
            StrictInt,
            Bounds(
                least=0,
                because="a number of failures is never negative",
                remedy="use 1 or more, or 0 to restart for ever",
            ),
        ]
        | None
    ) = Field(default_factory=_default_of("max_same_failures"))
    """exponential-delay: so many failures of one operator by the same type of error, with no
    checkpoint completed in between, end the job, for time will not heal them. Errors of the network
    and of devices are not counted; 0 restarts for ever; 10 if not given."""

    max_failures_per_interval: (
        Annotated[
            StrictInt,
            Bounds(
                least=1, because="no restart is another type", remedy="use 1 or more, or type none"
            ),
        ]
        | None
    ) = Field(default_factory=_default_of("max_failures_per_interval"))
    """failure-rate: how many failures within the interval are survived; 1 if not given."""

    failure_rate_interval: (
        Annotated[
            Duration,
            Bounds(
                least=1,
                because="no failure falls into an interval of nothing",
                remedy="use a duration above zero, as in 1 min",
            ),
        ]
        | None
    ) = Field(default_factory=_default_of("failure_rate_interval"))
    """failure-rate: the interval in which failures are counted; 1 min if not given."""

    @model_validator(mode="before")
    @classmethod
    def _empty_is_not_given(cls, given: object) -> object:
        if not isinstance(given, Mapping):
            return given
        return {name: value for name, value in given.items() if value is not None}

    def contradictions(self) -> Iterator[Problem]:
        """Yield the fields of other types, and a backoff that starts above its end."""
        own = _DEFAULTS[self.type]
        for field in type(self).model_fields:
            if field != "type" and field not in own and getattr(self, field) is not None:
                yield self.problem(
                    field,
                    f"type = {self.type} does not use it",
                    f"remove {to_camel(field)} or set type to {_types_with(field)}",
                )
        if self.max_backoff is not None and (self.initial_backoff or 0) > self.max_backoff:
            yield self.problem(
                "max_backoff",
                f"the delay starts above it, at initialBackoff = {self._initial_backoff()}",
                "set maxBackoff to initialBackoff or more",
            )

    def _initial_backoff(self) -> str:
        return format_duration(self.initial_backoff or 0)


def _types_with(field: str) -> str:
    return " or ".join(kind for kind, defaults in _DEFAULTS.items() if field in defaults)
