"""Keeps a number within its limits, and says what the limit is for.

Pydantic's own ``ge`` and ``le`` would say "should be greater than or equal to 1", which tells a
user what but neither why nor what then. The limits still reach the schema, for Kubernetes to check.
"""

from dataclasses import dataclass

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from weir.api.refusal import Unfit


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of a field, both included, for use in ``Annotated``."""

    least: int
    most: int | None = None
    because: str
    remedy: str

    def check(self, value: float) -> float:
        """Let a value within the limits pass."""
        if value < self.least or (self.most is not None and value > self.most):
            raise Unfit(self.because, self.remedy)
        return value

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Check after the inner type has read the value."""
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Put the limits into the schema of a number; the text of a quantity cannot hold them."""
        described = handler(schema)
        if described["type"] in ("integer", "number"):
            described["minimum"] = self.least
            if self.most is not None:
                described["maximum"] = self.most
        return described
