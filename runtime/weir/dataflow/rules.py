"""What a rule of the expression compiler is: one kind of SQL node in, a typed expression out."""

from collections.abc import Callable, Mapping

import pyarrow as pa
from sqlglot import exp

from weir.dataflow.casts import cast
from weir.dataflow.coercion import Typed, is_boolean, is_numeric, is_text, widest
from weir.dataflow.types import written

Compile = Callable[[exp.Expr], Typed]
"""Compiles a node below the one that a rule is looking at."""

Rule = Callable[[exp.Expr, Compile], Typed]
Rules = Mapping[type[exp.Expr], Rule]


class Misfit(Exception):
    """A piece of an expression that cannot be compiled; the compiler names the whole of it."""

    def __init__(self, piece: exp.Expr, reason: str) -> None:
        super().__init__(reason)
        self.piece = piece.sql("spark")
        self.reason = reason


def number(node: exp.Expr, below: Compile) -> Typed:
    return _expecting("a number", node, below(node), is_numeric)


def text(node: exp.Expr, below: Compile) -> Typed:
    return _expecting("a string", node, below(node), is_text)


def truth(node: exp.Expr, below: Compile) -> Typed:
    return _expecting("a boolean", node, below(node), is_boolean)


def alike(node: exp.Expr, values: list[Typed]) -> tuple[pa.DataType, list[Typed]]:
    """The type that holds each of the values, and the values as that type."""
    kind = widest(values)
    if kind is None:
        found = " and ".join(dict.fromkeys(written(value.type) for value in values))
        raise Misfit(node, f"{found} do not go together; cast one of them")
    return kind, [cast(value, kind) or value for value in values]


def whole_literal(node: exp.Expr) -> int | None:
    """The number that is written there, if one is."""
    if isinstance(node, exp.Neg):
        positive = whole_literal(node.this)
        return None if positive is None else -positive
    is_whole = isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal()
    return int(node.name) if is_whole else None


def _expecting(
    wanted: str, node: exp.Expr, value: Typed, is_fit: Callable[[pa.DataType], bool]
) -> Typed:
    if not is_fit(value.type):
        raise Misfit(node, f"this is a {written(value.type)} where {wanted} is needed; cast it")
    return value
