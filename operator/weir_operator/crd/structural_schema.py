"""Translates a pydantic model into a structural schema of Kubernetes.

A structural schema has no references, no unions and one type for each field; it has no closed
objects, because unknown fields are pruned or, by ``kubectl``, rejected. Optional fields are absent
rather than null: the API server drops a null where a field is not nullable, which pydantic treats
as absent as well. Everything has a limit, because the cost of a rule is estimated from the largest
possible value. What cannot be translated raises, with its path.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]

LONGEST_TEXT = 2_048
"""The limit of a string whose model has none."""

_KEPT = (
    "description",
    "type",
    "format",
    "enum",
    "pattern",
    "maxLength",
    "minimum",
    "maximum",
    "maxItems",
    "maxProperties",
    "default",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
)
_TRANSLATED = ("properties", "required", "additionalProperties", "items")
_DROPPED = ("title",)


class UntranslatableSchema(Exception):
    """A model that a structural schema cannot express."""


def structural_schema(model: type[BaseModel]) -> Schema:
    """The schema of a model, every field described."""
    schema = model.model_json_schema(mode="serialization")
    return _Translation(schema.pop("$defs", {})).of(schema, model.__name__)


@dataclass(frozen=True, slots=True)
class _Translation:
    definitions: Mapping[str, Schema]

    def of(self, given: Schema, path: str) -> Schema:
        schema = self._plain(given, path)
        unknown = sorted(set(schema) - {*_KEPT, *_TRANSLATED, *_DROPPED})
        if unknown:
            raise UntranslatableSchema(f"{path}: Kubernetes does not know {', '.join(unknown)}")
        translated = {key: schema[key] for key in _KEPT if key in schema}
        translated |= self._inner(schema, path)
        translated |= _limits(translated, path)
        if "description" in translated:
            translated["description"] = _described(translated)
        return translated

    def _plain(self, given: Schema, path: str) -> Schema:
        """Resolve references, and unions with None to their only type."""
        schema = dict(given)
        if "$ref" in schema:
            name = schema.pop("$ref").removeprefix("#/$defs/")
            schema = {**self.definitions[name], **schema}
        if "anyOf" in schema:
            types = [option for option in schema.pop("anyOf") if option != {"type": "null"}]
            if len(types) != 1:
                raise UntranslatableSchema(f"{path}: the only union is that with None")
            schema = {**self._plain(types[0], path), **schema}
        if schema.get("default", ...) is None:
            del schema["default"]
        return schema

    def _inner(self, schema: Schema, path: str) -> Schema:
        match schema.get("type"):
            case "object" if "properties" in schema:
                return self._fields(schema, path)
            case "object" if isinstance(schema.get("additionalProperties"), dict):
                values = schema["additionalProperties"]
                return {"additionalProperties": self.of(values, f"{path}.*")}
            case "array":
                return {"items": self.of(schema["items"], f"{path}[]")}
            case _:
                return {}

    def _fields(self, schema: Schema, path: str) -> Schema:
        required = schema.get("required", [])
        fields = {
            name: self._field(field, f"{path}.{name}", is_required=name in required)
            for name, field in schema["properties"].items()
        }
        inner: Schema = {"properties": fields}
        if required:
            inner["required"] = list(required)
        if schema.get("additionalProperties") is True:
            inner["x-kubernetes-preserve-unknown-fields"] = True
        return inner

    def _field(self, field: Schema, path: str, *, is_required: bool) -> Schema:
        translated = self.of(field, path)
        if "description" not in translated:
            raise UntranslatableSchema(f"{path}: has no description")
        if translated.get("type") == "object" and not is_required and "anyOf" not in field:
            translated.setdefault("default", _filled_in(translated))
        return translated


def _filled_in(schema: Schema) -> Schema:
    """The complete default of an object: the API server validates a default as it is written."""
    fields = schema.get("properties", {})
    return {name: field["default"] for name, field in fields.items() if "default" in field}


def _limits(schema: Schema, path: str) -> Schema:
    match schema.get("type"):
        case "string" if not {"maxLength", "enum", "format"} & set(schema):
            return {"maxLength": LONGEST_TEXT}
        case "integer":
            return {"format": "int64"}
        case "array" if "maxItems" not in schema:
            raise UntranslatableSchema(f"{path}: has no limit to its elements")
        case "object" if "additionalProperties" in schema and "maxProperties" not in schema:
            raise UntranslatableSchema(f"{path}: has no limit to its entries")
        case _:
            return {}


def _described(schema: Schema) -> str:
    """One paragraph; it includes the default, which ``kubectl explain`` does not show."""
    text = " ".join(schema["description"].split())
    match schema.get("default"):
        case bool(default):
            return f"{text} Default: {str(default).lower()}."
        case str() | int() | float() as default:
            return f"{text} Default: {default}."
        case _:
            return text
