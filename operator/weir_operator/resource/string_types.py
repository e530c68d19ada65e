"""Text of a known shape: what is too long or looks otherwise is refused with the reason.

The shape reaches the schema as ``pattern`` and ``maxLength``, so that the API server refuses the
same text, and so that it can tell what a rule about the text may cost. Text that we write ourselves
is not refused but cut: a status that is too long must not keep a job from being looked after.
"""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic.json_schema import JsonSchemaValue

from weir.api.config_problem import InvalidValue
from weir.api.constraint import Constraint
from weir.api.truncation import TruncatedTo


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Constraint):
    """The shape of a text, for use in ``Annotated``. The pattern is anchored at both ends."""

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
    Text(
        pattern="^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        longest=253,
        because="no object of Kubernetes can have this name",
        remedy="use the object's name: lower-case letters, digits, '-' and '.'",
    ),
]
"""The name of an object in the job's namespace."""

Label = Annotated[
    str,
    Text(
        pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        longest=63,
        because="Kubernetes allows lower-case letters, digits and '-' here",
        remedy="use at most 63 of these, with a letter or digit at both ends",
    ),
]
"""The name of something inside a pod."""

Line = Annotated[str, TruncatedTo(1_024)]
"""A sentence for people."""
