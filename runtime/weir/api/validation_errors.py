"""Converts pydantic's validation errors into problems with a reason and a remedy.

Pydantic reports the field and the error; Weir's validators add the reason and the remedy. This
module joins them and writes the text for all other errors: unknown names, unknown choices, values
of another type. It walks the given models and knows none of them by name.
"""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import get_args

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from weir.api.config_problem import Contradictory, InvalidValue, Problem, shown, shown_under
from weir.api.model import Model

_EXPECTED = {
    "bool_type": "true or false, without quotes",
    "float_type": "a number, without quotes",
    "finite_number": "a finite number",
    "int_type": "a whole number, without quotes",
    "string_type": "text",
    "model_type": "a mapping of fields to values",
    "invalid_key": "the name of the field as text",
}

_FOLLOWS_FROM_ANOTHER = "default_factory_not_called"
"""A default that depends on a field which is itself refused."""


def explain(error: ValidationError, root: type[BaseModel]) -> tuple[Problem, ...]:
    """List everything that was wrong with a value of ``root``, in the order of its fields."""
    return tuple(
        problem
        for detail in error.errors(include_url=False)
        if detail["type"] != _FOLLOWS_FROM_ANOTHER
        for problem in _problems(detail, root)
    )


def _problems(detail: ErrorDetails, root: type[BaseModel]) -> Iterator[Problem]:
    path = ".".join(shown(part) for part in detail["loc"])
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, Contradictory):
        yield from (problem.under(path) for problem in cause.problems)
    elif isinstance(cause, InvalidValue):
        yield Problem(path, shown(detail["input"]), cause.reason, cause.remedy)
    elif detail["type"] == "extra_forbidden":
        yield _unknown_field(detail, root).under(path)
    else:
        yield _invalid_value(detail).under(path or "configuration")


def _invalid_value(detail: ErrorDetails) -> Problem:
    kind, value = detail["type"], shown(detail["input"])
    if kind == "enum":
        choices = str(detail["ctx"]["expected"]).replace("'", "")
        return Problem("", value, "there is no such choice", f"use {choices}")
    if kind in _EXPECTED:
        written = f'"{value}"' if isinstance(detail["input"], str) else value
        return Problem("", written, "this is another type of value", f"write {_EXPECTED[kind]}")
    return Problem("", value, detail["msg"], "see the description of the field")


def _unknown_field(detail: ErrorDetails, root: type[BaseModel]) -> Problem:
    *parents, last = detail["loc"]
    name = str(last)
    model = _model_at(root, parents)
    reason, remedy = "there is no such field", _nearest(name, model)
    if issubclass(model, Model):
        reason, remedy = model.refused_by_name.get(to_camel(name), (reason, remedy))
    return Problem("", shown_under(name, detail["input"]), reason, remedy)


def _nearest(name: str, model: type[BaseModel]) -> str:
    names = [field.alias or key for key, field in model.model_fields.items()]
    close = get_close_matches(to_camel(name), names, n=1)
    return f"did you mean {close[0]}?" if close else f"the fields here are {', '.join(names)}"


def _model_at(root: type[BaseModel], path: Iterable[int | str]) -> type[BaseModel]:
    """Follow the names of fields; positions in a list do not lead to another model."""
    model = root
    for part in path:
        for key, field in model.model_fields.items():
            if part in (key, field.alias):
                model = next(_models_in(field.annotation), model)
                break
    return model


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)
