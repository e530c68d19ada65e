"""Finds events that no code makes and actions that no code handles, from the source alone.

A message is followed by its full name: a call or a pattern counts only if the names in it are
imported from the module that defines the message.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from source_tree import Module


@dataclass(frozen=True)
class Message:
    """An event or an action, by its name and the module that defines it."""

    name: str
    home: str

    @property
    def full_name(self) -> str:
        return f"{self.home}.{self.name}"


def messages(classes: Iterable[type]) -> list[Message]:
    return [Message(cls.__name__, cls.__module__) for cls in classes]


def never_made(events: Iterable[Message], modules: Iterable[Module]) -> list[str]:
    """The events that no module makes but perhaps the one that defines them."""
    made = {
        (full_name, dotted(module))
        for module in modules
        for full_name in _full_names(module, _calls(module))
    }
    return [
        f"{event.full_name}: no code makes this event"
        for event in events
        if not any(name == event.full_name and home != event.home for name, home in made)
    ]


def never_handled(actions: Iterable[Message], modules: Iterable[Module]) -> list[str]:
    """The actions that no module matches by their class."""
    handled = {
        full_name for module in modules for full_name in _full_names(module, _matches(module))
    }
    return [
        f"{action.full_name}: no code handles this action"
        for action in actions
        if action.full_name not in handled
    ]


def dotted(module: Module) -> str:
    """The name by which the module is imported."""
    path = module.path.with_suffix("")
    parts = [part for part in path.parts[1:] if part != "__init__"]
    return ".".join(parts)


def _calls(module: Module) -> Iterator[ast.expr]:
    for node in module.nodes:
        if isinstance(node, ast.Call):
            yield node.func


def _matches(module: Module) -> Iterator[ast.expr]:
    for node in module.nodes:
        match node:
            case ast.MatchClass(cls=cls):
                yield cls
            case ast.Call(ast.Name("isinstance"), [_, ast.Name() | ast.Attribute() as cls]):
                yield cls


def _full_names(module: Module, uses: Iterable[ast.expr]) -> Iterator[str]:
    imported = _imports(module)
    for use in uses:
        match use:
            case ast.Name(name):
                yield imported.get(name, f"{dotted(module)}.{name}")
            case ast.Attribute(ast.Name(package), name) if package in imported:
                yield f"{imported[package]}.{name}"


def _imports(module: Module) -> dict[str, str]:
    """What each imported name stands for."""
    imported: dict[str, str] = {}
    for node in module.nodes:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return imported
