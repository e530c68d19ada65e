"""What a field's value must be beyond its type, said once for pydantic and once for the schema.

Pydantic asks a mark in ``Annotated`` two questions by two hooks. All marks that judge a value after
its type has read it answer them alike, so the hooks stand here; a mark says only what it allows and
how the schema shows that. What reads a value before its type does is none of these.
"""

from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema


class Constraint:
    """A mark for use in ``Annotated``."""

    __slots__ = ()

    def check(self, value: Any) -> Any:  # noqa: ANN401 - of whatever type the field is
        """Let a fit value pass, perhaps changed; refuse any other with ``InvalidValue``."""
        raise NotImplementedError

    def shown_in(self, schema: JsonSchemaValue) -> JsonSchemaValue:
        """The field's schema with what this asks in it, for Kubernetes to check."""
        raise NotImplementedError

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return self.shown_in(handler(schema))
