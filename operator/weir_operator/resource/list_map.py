"""Lists whose elements are identified by one of their fields.

Kubernetes calls such a list a map and rejects two elements with the same key; server-side apply
then merges it by element, so that two field managers can each own an environment variable.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue

from weir.api.config_problem import InvalidValue, shown
from weir.api.constraint import Constraint


@dataclass(frozen=True, slots=True)
class ListMap(Constraint):
    """Marks a tuple of models as identified by the field ``key``, for use in ``Annotated``."""

    key: str
    most: int

    def check(self, elements: tuple[BaseModel, ...]) -> tuple[BaseModel, ...]:
        if len(elements) > self.most:
            raise InvalidValue(f"there are more than {self.most}", f"use at most {self.most}")
        for name in _repeated(getattr(element, self.key) for element in elements):
            raise InvalidValue(
                f'"{shown(name)}" is there twice', f"give each {to_camel(self.key)} to one element"
            )
        return elements

    def shown_in(self, schema: JsonSchemaValue) -> JsonSchemaValue:
        return schema | {
            "maxItems": self.most,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": [to_camel(self.key)],
        }


def _repeated(names: Iterable[str]) -> Iterable[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield name
        seen.add(name)
