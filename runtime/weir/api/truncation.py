"""Text that is cut at a length rather than refused.

For sentences that tell people why something happened: one that is too long must not keep its
reader from everything else that was said with it. Names and paths are never cut, for what is left
of one names something else.
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
