"""Checks that a number is within its limits, and gives the reason of a limit in the refusal.

The message of pydantic's ``ge`` and ``le``, "should be greater than or equal to 1", has neither a
reason nor a remedy. The limits are also in the schema, for Kubernetes to check.
"""

from dataclasses import dataclass

from pydantic.json_schema import JsonSchemaValue

from weir.api.config_problem import InvalidValue
from weir.api.constraint import Constraint


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds(Constraint):
    """Limits of a field, both included, for use in ``Annotated``."""

    least: int
    most: int | None = None
    because: str
    remedy: str

    def check(self, value: float) -> float:
        """Let a value within the limits pass."""
        if value < self.least or (self.most is not None and value > self.most):
            raise InvalidValue(self.because, self.remedy)
        return value

    def shown_in(self, schema: JsonSchemaValue) -> JsonSchemaValue:
        """The limits, if it is a number's; the text of a quantity cannot hold them."""
        if schema["type"] not in ("integer", "number"):
            return schema
        most = {} if self.most is None else {"maximum": self.most}
        return schema | {"minimum": self.least} | most
