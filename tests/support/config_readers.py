"""Finds configuration fields that no code reads, by the syntax of the sources alone.

A field counts as read where a module reads an attribute of its name and also knows the model: it
names the model's class, or reads the field that holds the model. ``self.name`` does not count. A
method of the model that reads the field is a reader if it is called from such a module itself.
Packages that only describe and judge the configuration are not searched.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from source_tree import Module

JUDGING = ("runtime/weir/api", "operator/weir_operator/resource", "operator/weir_operator/crd")

Models = dict[type[BaseModel], set[str]]
"""Each model with the names of the fields that hold it."""


def models_in(*roots: type[BaseModel]) -> Models:
    """The roots and every model inside them."""
    found: Models = {root: set() for root in roots}
    waiting = list(roots)
    while waiting:
        model = waiting.pop()
        for name, field in model.model_fields.items():
            for inner in _models_of(field.annotation):
                if inner not in found:
                    waiting.append(inner)
                found.setdefault(inner, set()).add(name)
    return found


def unread_fields(models: Models, modules: Sequence[Module]) -> list[str]:
    """The fields without a reader, as ``Model.field``."""
    readers = [_Reader(module) for module in modules if not module.is_in(*JUDGING)]
    return [
        f"{model.__name__}.{field}"
        for model, holders in models.items()
        for field in model.model_fields
        if not _is_read(model, field, holders, readers)
    ]


@dataclass(frozen=True)
class _Reader:
    module: Module

    @cached_property
    def attributes(self) -> set[str]:
        return {
            node.attr
            for node in self.module.nodes
            if isinstance(node, ast.Attribute) and not _is_own(node)
        }

    @cached_property
    def names(self) -> set[str]:
        return {node.id for node in self.module.nodes if isinstance(node, ast.Name)}

    @cached_property
    def keys(self) -> set[str]:
        """Texts by which a resource is read as JSON: ``spec["name"]``, ``spec.get("name")``."""
        found: list[ast.expr] = []
        for node in self.module.nodes:
            if isinstance(node, ast.Subscript) and _is_spec(node.value):
                found.append(node.slice)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                found += node.args[:1] if _is_spec(node.func.value) else []
        return {str(node.value) for node in found if isinstance(node, ast.Constant)}

    def knows(self, model: type[BaseModel], holders: set[str]) -> bool:
        return model.__name__ in self.names or bool(holders & self.attributes)


def _is_spec(node: ast.expr) -> bool:
    return ast.unparse(node).endswith(("spec", "spec']"))


def _is_own(node: ast.Attribute) -> bool:
    is_written = not isinstance(node.ctx, ast.Load)
    return is_written or (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"})


def _is_read(
    model: type[BaseModel], field: str, holders: set[str], readers: Sequence[_Reader]
) -> bool:
    ways = {field, *_methods_reading(model, field)}
    return any(
        (reader.knows(model, holders) or not holders) and ways & reader.attributes
        for reader in readers
    ) or any(to_camel(field) in reader.keys for reader in readers)


def _methods_reading(model: type[BaseModel], field: str) -> Iterator[str]:
    """Public methods and properties of the model that read the field for their callers."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(model)))
    for method in ast.walk(tree):
        if not isinstance(method, ast.FunctionDef) or method.name.startswith("_"):
            continue
        reads = (
            node.attr == field and _is_own(node)
            for node in ast.walk(method)
            if isinstance(node, ast.Attribute)
        )
        if method.name != "contradictions" and any(reads):
            yield method.name


def _models_of(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_of(inner)
