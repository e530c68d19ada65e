"""What a rule of the expression compiler is: one kind of SQL node in, a typed expression out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from weir.dataflow.casts import cast, time_in_literal
from weir.dataflow.coercion import Typed, is_boolean, is_numeric, is_temporal, is_text, widest
from weir.dataflow.types import written

Compile = Callable[[exp.Expr], Typed]
"""Compiles a node below the one that a rule is looking at."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How one kind of node is compiled."""

    compile: Callable[[exp.Expr, Compile], Typed]
    reads: tuple[str, ...]
    """The arguments of the node that it knows; a node that has others is refused by name."""


Rules = Mapping[type[exp.Expr], Rule]

OPERAND = ("this",)
OPERANDS = ("this", "expression")


_EXAMPLE = "'2020-12-31 23:59:59' or '2020-12-31T23:59:59Z'"


class Misfit(Exception):
    """A piece of an expression that cannot be compiled; the compiler names the whole of it."""

    def __init__(self, piece: exp.Expr, cause: str, remedy: str) -> None:
        super().__init__(cause, remedy)
        self.piece = piece.sql("spark")
        self.cause = cause
        self.remedy = remedy


def refuse_unread(node: exp.Expr, reads: tuple[str, ...]) -> None:
    """Refuse a node with an argument that would have no effect, such as NOT in NOT LIKE."""
    unread = [name for name, given in node.args.items() if given and name not in reads]
    if unread:
        raise Misfit(
            node,
            f"{unread[0].upper()} is not supported in {type(node).__name__.upper()}",
            "write it in another way, or use mapInArrow",
        )


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
        raise Misfit(
            node,
            f"{found} do not go together",
            "cast one of them",
        )
    for value in values:
        is_time = is_temporal(kind) and value.literal is not None
        if is_time and time_in_literal(value, kind) is None:
            raise Misfit(
                node,
                f"{value.literal!r} is no {written(kind)}",
                f"write it as {_EXAMPLE}",
            )
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
        raise Misfit(
            node,
            f"this is a {written(value.type)} where {wanted} is needed",
            "cast it",
        )
    return value
