"""An annotation for text that is truncated instead of refused.

It is for sentences that give a reason: one that is too long must not invalidate the other fields of
its model. Names and paths are never truncated, because the rest would name something else.
"""

from dataclasses import dataclass

from pydantic.json_schema import JsonSchemaValue

from weir.api.constraint import Constraint


@dataclass(frozen=True, slots=True)
class TruncatedTo(Constraint):
    """The most characters that a field holds, for use in ``Annotated``."""

    longest: int

    def check(self, value: str) -> str:
        return value if len(value) <= self.longest else f"{value[: self.longest - 1]}…"

    def shown_in(self, schema: JsonSchemaValue) -> JsonSchemaValue:
        return schema | {"maxLength": self.longest}
