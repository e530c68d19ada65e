"""Validates a resource by its CRD as an API server does: defaults, schema, then rules.

It supports only what the project's CRDs use. It shows in milliseconds, without a cluster, whether
the CRDs reject what the operator rejects.
"""

import re
from collections.abc import Iterator, Mapping, Sized
from copy import deepcopy
from dataclasses import dataclass

import cel

from weir_operator.crd.structural_schema import Schema
from weir_operator.resource.kubernetes_quantity import quantity_value


@dataclass(frozen=True, slots=True)
class Admission:
    """What an API server would store, or why it would reject it."""

    stored: dict[str, object]
    by_schema: tuple[str, ...]
    by_rule: tuple[str, ...]


def admit(
    definition: Schema,
    given: Mapping[str, object],
    before: Mapping[str, object] | None = None,
) -> Admission:
    """Validate a resource, and the edit if there was one before."""
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    stored = _defaulted(schema, deepcopy(dict(given)))
    old = None if before is None else _defaulted(schema, deepcopy(dict(before)))
    assert isinstance(stored, dict)
    misfits = tuple(_misfits(schema, stored, ""))
    return Admission(stored, misfits, () if misfits else tuple(_broken(schema, stored, old)))


def _defaulted(schema: Schema, value: object) -> object:
    """Fill in defaults; a null is as good as nothing, because no field of ours is nullable."""
    if isinstance(value, dict) and "properties" in schema:
        for name, field in schema["properties"].items():
            if value.get(name) is None:
                value.pop(name, None)
                if "default" in field:
                    value[name] = deepcopy(field["default"])
            if name in value:
                value[name] = _defaulted(field, value[name])
    if isinstance(value, list):
        return [_defaulted(schema["items"], element) for element in value]
    return value


TYPES = {"string": str, "boolean": bool, "integer": int, "array": list, "object": dict}


def _misfits(schema: Schema, value: object, path: str) -> Iterator[str]:
    if schema.get("x-kubernetes-int-or-string"):
        fits = isinstance(value, str | int) and not isinstance(value, bool)
    elif schema["type"] == "number":
        fits = isinstance(value, int | float) and not isinstance(value, bool)
    else:
        fits = isinstance(value, TYPES[schema["type"]]) and (
            schema["type"] == "boolean" or not isinstance(value, bool)
        )
    if not fits:
        yield f"{path}: type"
        return
    yield from (f"{path}: {keyword}" for keyword in _beyond(schema, value))
    match value:
        case dict():
            yield from _misfitting_fields(schema, value, path)
        case list():
            yield from _misfitting_elements(schema, value, path)


def _beyond(schema: Schema, value: object) -> Iterator[str]:
    if "enum" in schema and value not in schema["enum"]:
        yield "enum"
    match value:
        case str():
            if not re.search(schema.get("pattern", ""), value):
                yield "pattern"
        case int() | float():
            if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
                yield "limits"
    for keyword in ("maxLength", "maxItems", "maxProperties"):
        if isinstance(value, Sized) and len(value) > schema.get(keyword, len(value)):
            yield keyword


def _misfitting_fields(schema: Schema, value: dict[str, object], path: str) -> Iterator[str]:
    fields, others = schema.get("properties", {}), schema.get("additionalProperties")
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}.{name}: required"
    for name, inner in value.items():
        if name in fields or others is not None:
            yield from _misfits(fields.get(name, others), inner, f"{path}.{name}")
        elif path and not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield f"{path}.{name}: unknown"


def _misfitting_elements(schema: Schema, value: list[object], path: str) -> Iterator[str]:
    for index, element in enumerate(value):
        yield from _misfits(schema["items"], element, f"{path}.{index}")
    for key in schema.get("x-kubernetes-list-map-keys", ()):
        names = [element.get(key) for element in value if isinstance(element, dict)]
        if len(set(names)) < len(names):
            yield f"{path}: two of the same {key}"


def _broken(schema: Schema, value: object, old: object) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", ()):
        is_about_edits = "oldSelf" in rule["rule"]
        if not (is_about_edits and old is None) and not _holds(rule["rule"], value, old):
            yield rule["message"]
    match value:
        case dict():
            before = old if isinstance(old, dict) else {}
            for name, field in schema.get("properties", {}).items():
                if name in value:
                    yield from _broken(field, value[name], before.get(name))
        case list():
            for element in value:
                yield from _broken(schema["items"], element, None)


def _holds(rule: str, value: object, old: object) -> bool:
    context = cel.Context(variables={"self": value, "oldSelf": old})
    context.add_function("quantity", lambda amount: float(quantity_value(amount)))
    context.add_function("compareTo", lambda one, other: (one > other) - (one < other))
    context.add_function("sum", sum)
    return cel.evaluate(rule, context) is True
