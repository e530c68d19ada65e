"""Finds code in which the order of a set would show.

A set of strings is laid out differently in every process, so one loop over a set is enough to make
"the same seed" mean two different runs. The core and the simulator therefore sort first.

This is an approximation from the syntax tree alone. It knows that an expression is a set when it is
written as one, or when a local name, an attribute or a function is annotated as one in the modules
it is given (and never as anything else). It lets pass what cannot show an order: building another
set, sorting, counting, asking for any, all, least or most.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from source_tree import Module

SET_TYPES = frozenset({"set", "frozenset", "Set", "AbstractSet", "MutableSet"})
SET_OPERATORS = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)
SET_METHODS = frozenset({"union", "intersection", "difference", "symmetric_difference"})
ORDER_SHOWING = frozenset({"list", "tuple", "iter", "enumerate", "zip", "map", "filter"})
ORDER_BLIND = frozenset({"set", "frozenset", "sorted", "len", "any", "all", "sum", "min", "max"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


def unsorted_set_iterations(modules: Iterable[Module]) -> Iterator[str]:
    modules = tuple(modules)
    known = _declared_sets(modules)
    for module in modules:
        blind = {
            id(argument)
            for node in module.nodes
            if isinstance(node, ast.Call) and _called(node) in ORDER_BLIND
            for argument in node.args
        }
        scopes = [module.tree, *(node for node in module.nodes if isinstance(node, Function))]
        lines = {
            line
            for scope in scopes
            for line in _offending_lines(scope, known.with_locals(scope), blind)
        }
        for line in sorted(lines):
            yield f"{module.path}:{line}: iterates a set; sort it first"


@dataclass(frozen=True)
class _Known:
    """Names that stand for sets, in one scope."""

    attributes: frozenset[str]
    functions: frozenset[str]
    names: frozenset[str] = frozenset()

    def is_set(self, node: ast.expr) -> bool:
        match node:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Name(name):
                return name in self.names
            case ast.Attribute(_, name):
                return name in self.attributes
            case ast.BinOp(left, operator, right):
                either = self._is_operand(left) or self._is_operand(right)
                return isinstance(operator, SET_OPERATORS) and either
            case ast.IfExp(_, body, orelse):
                return self.is_set(body) or self.is_set(orelse)
            case ast.Call(ast.Attribute(of, method)) if method in SET_METHODS:
                return self.is_set(of)
            case ast.Call():
                return _called(node) in SET_TYPES | self.functions
            case _:
                return False

    def _is_operand(self, node: ast.expr) -> bool:
        return self.is_set(node) or (isinstance(node, ast.Call) and _called(node) == "keys")

    def with_locals(self, scope: ast.Module | Function) -> "_Known":
        """Adds the names that this scope declares as sets, or binds to sets alone."""
        names: set[str] = set()
        others: set[str] = set()
        if not isinstance(scope, ast.Module):
            for arg in (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs):
                (names if _is_set_type(arg.annotation) else others).add(arg.arg)
        for node in _own_nodes(scope):
            match node:
                case ast.AnnAssign(ast.Name(name), annotation):
                    (names if _is_set_type(annotation) else others).add(name)
                case ast.Assign([ast.Name(name)], value):
                    (names if self.is_set(value) else others).add(name)
        return _Known(self.attributes, self.functions, frozenset(names - others))


def _declared_sets(modules: tuple[Module, ...]) -> _Known:
    """What the classes and functions of these modules declare as sets, and as nothing else."""
    attributes: dict[str, set[bool]] = {}
    functions: dict[str, set[bool]] = {}
    for module in modules:
        for node in module.nodes:
            if isinstance(node, Function):
                functions.setdefault(node.name, set()).add(_is_set_type(node.returns))
            if isinstance(node, ast.ClassDef):
                for name, is_set in _attributes(node):
                    attributes.setdefault(name, set()).add(is_set)
    return _Known(_only_sets(attributes), _only_sets(functions))


def _attributes(of: ast.ClassDef) -> Iterator[tuple[str, bool]]:
    for node in of.body:
        match node:
            case ast.AnnAssign(ast.Name(name), annotation):
                yield name, _is_set_type(annotation)
            case ast.FunctionDef(name, decorator_list=[ast.Name("property" | "cached_property")]):
                yield name, _is_set_type(node.returns)


def _only_sets(seen: dict[str, set[bool]]) -> frozenset[str]:
    return frozenset(name for name, kinds in seen.items() if kinds == {True})


def _is_set_type(annotation: ast.expr | None) -> bool:
    match annotation:
        case ast.Name(name) | ast.Attribute(_, name):
            return name in SET_TYPES
        case ast.Subscript(value):
            return _is_set_type(value)
        case ast.BinOp(left, ast.BitOr(), right):
            return _is_set_type(left) or _is_set_type(right)
        case _:
            return False


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(name) | ast.Attribute(_, name):
            return name
        case _:
            return ""


def _own_nodes(scope: ast.Module | Function) -> Iterator[ast.AST]:
    """The nodes of a scope, without those of the functions in it: they are scopes themselves."""
    todo: list[ast.AST] = list(scope.body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, Function):
            todo.extend(ast.iter_child_nodes(node))


def _offending_lines(scope: ast.Module | Function, known: _Known, blind: set[int]) -> Iterator[int]:
    for node in _own_nodes(scope):
        if id(node) not in blind and any(map(known.is_set, _iterated(node))):
            assert isinstance(node, ast.stmt | ast.expr)
            yield node.lineno


def _iterated(node: ast.AST) -> list[ast.expr]:
    """What this node iterates in an order that can show."""
    match node:
        case ast.For(_, iterated) | ast.AsyncFor(_, iterated):
            return [iterated]
        case ast.ListComp() | ast.DictComp() | ast.GeneratorExp():
            return [generator.iter for generator in node.generators]
        case ast.Call(ast.Attribute(of, "pop"), args=[]):
            return [of]
        case ast.Call() if _called(node) in ORDER_SHOWING:
            return node.args
        case ast.Call(ast.Attribute(_, "join" | "extend"), args):
            return args
        case ast.List(elements) | ast.Tuple(elements):
            return [element.value for element in elements if isinstance(element, ast.Starred)]
        case _:
            return []
