"""Base class of all configuration models.

Models are values: frozen, closed to unknown fields, camelCase outside and snake_case inside. The
same models are embedded in a Kubernetes resource, so a field's docstring is its description there,
and a model holds no union but ``X | None`` and never itself. A type defines the values of a field;
``contradictions`` finds fields that exclude each other. They check values only, never whether a
field was set: an API server that fills in defaults must not change the result.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.alias_generators import to_camel

from weir.api.config_problem import Contradictory, Problem, shown


class Model(BaseModel):
    """A part of a job's configuration."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
        # A default in the schema is text where the field is: "10 min", not 600000.
        json_schema_mode_override="serialization",
    )

    refused_by_name: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """Settings that a user of Flink may look for and that do not exist here: reason and remedy."""

    removed: ClassVar[Mapping[str, object]] = {}
    """Settings of earlier releases with their defaults. An operator of such a release writes them
    out, so a default is ignored; any other value asks for something and is refused."""

    def contradictions(self) -> Iterator[Problem]:
        """Yield what cannot stand together, once every field is sound by itself."""
        return iter(())

    def problem(self, field: str, reason: str, remedy: str) -> Problem:
        """Refuse the value that ``field`` has here."""
        value = self.model_dump(mode="json", include={field})[to_camel(field)]
        return Problem(to_camel(field), shown(value), reason, remedy)

    @model_validator(mode="before")
    @classmethod
    def _without_removed(cls, given: object) -> object:
        if not cls.removed or not isinstance(given, Mapping):
            return given
        return {name: value for name, value in given.items() if not cls._is_removed(name, value)}

    @classmethod
    def _is_removed(cls, name: object, value: object) -> bool:
        default = cls.removed.get(to_camel(name)) if isinstance(name, str) else None
        return default is not None and default is value

    @model_validator(mode="after")
    def _stands_together(self) -> Self:
        problems = tuple(self.contradictions())
        if problems:
            raise Contradictory(*problems)
        return self
