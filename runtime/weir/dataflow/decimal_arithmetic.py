"""Computes with columns of decimals as Spark does: its result types, its rounding, its nulls.

Sums and products that cannot lose a digit are computed by Arrow; those that may be too long for 38
digits, and quotients, by way of Java's rules for one pair of numbers after the other.
"""

from collections.abc import Callable
from functools import partial

import polars as pl
import pyarrow as pa
from pyarrow import compute as pc
from pyarrow import types as kinds
from sqlglot import exp

from weir.dataflow import java_numbers as java
from weir.dataflow.coercion import (
    Typed,
    as_decimal,
    product_of_decimals,
    quotient_of_decimals,
    sum_of_decimals,
)
from weir.dataflow.elementwise import by_column, by_value
from weir.dataflow.types import LONGEST_DECIMAL

Operation = type[exp.Expr]
_Types = Callable[[pa.DataType, pa.DataType], pa.DataType]

_EXACT: dict[Operation, Callable[..., pa.Array]] = {
    exp.Add: pc.add,
    exp.Sub: pc.subtract,
    exp.Mul: pc.multiply,
}
_ROUNDED: dict[Operation, Callable[..., java.D | None]] = {
    exp.Add: java.total,
    exp.Sub: java.difference,
    exp.Mul: java.product,
    exp.Div: java.quotient,
}
_TYPES: dict[Operation, _Types] = {exp.Mul: product_of_decimals, exp.Div: quotient_of_decimals}


def computed(operation: Operation, one: Typed, other: Typed) -> Typed:
    """A decimal with a decimal, a whole number or a null; each null is of the other's type."""
    left, right = _both(one, other)
    kind = _TYPES.get(operation, sum_of_decimals)(left.type, right.type)
    if operation in _EXACT and _cannot_overflow(operation, left.type, right.type):
        return Typed(_exact(_EXACT[operation], left, right, kind), kind)
    compute = partial(_ROUNDED[operation], kind=kind)
    return Typed(by_value(compute, left.expr, right.expr, result=kind), kind)


def whole(value: Typed, kind: pa.DataType, rounding: str) -> Typed:
    """FLOOR and CEIL, in the words of ``decimal``."""

    def compute(number: java.D) -> java.D | None:
        return java.fitted(java.whole(number, rounding), kind)

    return Typed(by_value(compute, value.expr, result=kind), kind)


def _both(one: Typed, other: Typed) -> tuple[Typed, Typed]:
    if kinds.is_null(one.type):
        return one.to(other.type), other
    if kinds.is_null(other.type):
        return one, other.to(one.type)
    return as_decimal(one), as_decimal(other)


def _exact(
    compute: Callable[..., pa.Array], one: Typed, other: Typed, kind: pa.DataType
) -> pl.Expr:
    def with_types(left: pa.Array, right: pa.Array) -> pa.Array:
        # Polars gives some results more digits than their type has, and Arrow would count them.
        return compute(left.cast(one.type), right.cast(other.type))

    return by_column(with_types, one.expr, other.expr, result=kind)


def _cannot_overflow(operation: Operation, one: pa.DataType, other: pa.DataType) -> bool:
    if operation is exp.Mul:
        return int(one.precision + other.precision) < LONGEST_DECIMAL
    before = max(one.precision - one.scale, other.precision - other.scale)
    return int(before + max(one.scale, other.scale)) < LONGEST_DECIMAL
