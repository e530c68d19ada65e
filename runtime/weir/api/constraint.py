"""Base class of constraints on a field's value, for pydantic and for the JSON schema.

Pydantic calls two hooks of an annotation in ``Annotated``. All annotations that check a value after
its type has parsed it implement the hooks in the same way, so the hooks are here; a subclass
defines only the check and the schema. Annotations that parse a value are not constraints.
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
