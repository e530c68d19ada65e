"""Strings of a given pattern: one that is too long or does not match is rejected with the reason.

The schema has the same ``pattern`` and ``maxLength``, so that the API server rejects the same
strings, and can estimate the cost of rules. Strings that the operator writes itself are not
rejected but truncated: a long status must not prevent a job from being reconciled.
"""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic.json_schema import JsonSchemaValue

from weir.api.config_problem import InvalidValue
from weir.api.constraint import Constraint
from weir.api.truncation import TruncatedTo


@dataclass(frozen=True, slots=True, kw_only=True)
class StringPattern(Constraint):
    """The pattern of a string, for use in ``Annotated``. It is anchored at both ends."""

    pattern: str
    longest: int
    because: str
    remedy: str

    def check(self, value: str) -> str:
        if len(value) > self.longest:
            raise InvalidValue(f"it is longer than {self.longest} characters", self.remedy)
        if not re.fullmatch(self.pattern, value):
            raise InvalidValue(self.because, self.remedy)
        return value

    def shown_in(self, schema: JsonSchemaValue) -> JsonSchemaValue:
        return schema | {"pattern": self.pattern, "maxLength": self.longest}


ObjectName = Annotated[
    str,
    StringPattern(
        pattern="^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        longest=253,
        because="no object of Kubernetes can have this name",
        remedy="use the object's name: lower-case letters, digits, '-' and '.'",
    ),
]
"""The name of an object in the job's namespace."""

DnsLabel = Annotated[
    str,
    StringPattern(
        pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        longest=63,
        because="Kubernetes allows lower-case letters, digits and '-' here",
        remedy="use at most 63 of these, with a letter or digit at both ends",
    ),
]
"""The name of something inside a pod."""

Message = Annotated[str, TruncatedTo(1_024)]
"""A sentence for users."""
