"""Compiles SQL's operators: arithmetic, comparisons, logic, membership.

Null follows SQL: an operation on null is null, except where three-valued logic knows the answer.
A division by zero is null, as in Spark with ANSI mode off; whole numbers that overflow wrap around.
"""

from collections.abc import Callable

import polars as pl
import pyarrow as pa
from pyarrow import types as kinds
from sqlglot import exp

from weir.dataflow.casts import cast
from weir.dataflow.coercion import (
    Typed,
    as_decimal,
    is_whole,
    polars_type,
    product_of_decimals,
    quotient_of_decimals,
    sum_of_decimals,
)
from weir.dataflow.rules import Compile, Misfit, Rules, alike, number, truth
from weir.dataflow.types import written

TypeRule = Callable[[pa.DataType, pa.DataType], pa.DataType]


def quotient(one: pl.Expr, other: pl.Expr) -> pl.Expr:
    """Whole division as Java does it: towards zero."""
    left_over = remainder(one, other)
    return (one - left_over) // _unless_zero(other)


def remainder(one: pl.Expr, other: pl.Expr) -> pl.Expr:
    """With the sign of the first, as Java has it; Polars gives that of the second."""
    floored = one % _unless_zero(other)
    signs_differ = (floored != 0) & ((one < 0) != (other < 0))
    return pl.when(signs_differ).then(floored - other).otherwise(floored)


def positive_remainder(node: exp.Expr, below: Compile) -> Typed:
    """Spark's ``pmod``."""
    one, other, kind = _numbers(node, *node.expressions, below=below)
    first = remainder(one, other)
    return Typed(pl.when(first < 0).then(remainder(first + other, other)).otherwise(first), kind)


def _numbers(
    node: exp.Expr, left: exp.Expr, right: exp.Expr, *, below: Compile
) -> tuple[pl.Expr, pl.Expr, pa.DataType]:
    kind, (one, other) = alike(node, [number(left, below), number(right, below)])
    if kinds.is_decimal(kind):
        raise Misfit(node, "there is no remainder of decimals; cast to bigint or double")
    return one.expr, other.expr, kind


def _unless_zero(divisor: pl.Expr) -> pl.Expr:
    return pl.when(divisor != 0).then(divisor)


def _pair(node: exp.Expr, below: Compile) -> tuple[Typed, Typed]:
    return number(node.this, below), number(node.expression, below)


def _are_decimals(one: Typed, other: Typed) -> bool:
    """One is a decimal, and neither turns it into a double."""
    both = (one.type, other.type)
    return any(map(kinds.is_decimal, both)) and all(
        is_whole(k) or kinds.is_decimal(k) for k in both
    )


def _arithmetic(node: exp.Expr, below: Compile) -> Typed:
    one, other = _pair(node, below)
    if _are_decimals(one, other):
        return _decimal_arithmetic(node, as_decimal(one), as_decimal(other))
    kind, (one, other) = alike(node, [one, other])
    match node:
        case exp.Add():
            return Typed(one.expr + other.expr, kind)
        case exp.Sub():
            return Typed(one.expr - other.expr, kind)
        case _:
            return Typed(one.expr * other.expr, kind)


def _decimal_arithmetic(node: exp.Expr, one: Typed, other: Typed) -> Typed:
    """Both sides take the result's scale first, so that no digit is lost on the way."""
    of_type: dict[type[exp.Expr], TypeRule] = {
        exp.Mul: product_of_decimals,
        exp.Div: quotient_of_decimals,
    }
    kind = of_type.get(type(node), sum_of_decimals)(one.type, other.type)
    wide = polars_type(pa.decimal128(38, kind.scale))
    left, right = one.expr.cast(wide, strict=False), other.expr.cast(wide, strict=False)
    match node:
        case exp.Add():
            result = left + right
        case exp.Sub():
            result = left - right
        case exp.Mul():
            result = left * right
        case _:
            result = left / _unless_zero(right)
    return Typed(result.cast(polars_type(kind), strict=False), kind)


def _division(node: exp.Expr, below: Compile) -> Typed:
    one, other = _pair(node, below)
    if _are_decimals(one, other):
        return _decimal_arithmetic(node, as_decimal(one), as_decimal(other))
    double = pa.float64()
    return Typed(one.to(double).expr / _unless_zero(other.to(double).expr), double)


def _whole_division(node: exp.Expr, below: Compile) -> Typed:
    one, other = _pair(node, below)
    for side, value in ((node.this, one), (node.expression, other)):
        if not is_whole(value.type) and not kinds.is_null(value.type):
            raise Misfit(side, f"div needs whole numbers, not {written(value.type)}; use / or cast")
    long = pa.int64()
    return Typed(quotient(one.to(long).expr, other.to(long).expr), long)


def _modulo(node: exp.Expr, below: Compile) -> Typed:
    one, other, kind = _numbers(node, node.this, node.expression, below=below)
    return Typed(remainder(one, other), kind)


def _negative(node: exp.Expr, below: Compile) -> Typed:
    value = number(node.this, below)
    return Typed(-value.expr, value.type, value.digits)


def _comparison(node: exp.Expr, below: Compile) -> Typed:
    _, (one, other) = alike(node, [below(node.this), below(node.expression)])
    left, right = one.expr, other.expr
    match node:
        case exp.EQ():
            result = left == right
        case exp.NEQ():
            result = left != right
        case exp.LT():
            result = left < right
        case exp.LTE():
            result = left <= right
        case exp.GT():
            result = left > right
        case exp.GTE():
            result = left >= right
        case _:
            result = left.eq_missing(right)
    return Typed(result, pa.bool_())


def _between(node: exp.Expr, below: Compile) -> Typed:
    values = [below(node.this), below(node.args["low"]), below(node.args["high"])]
    _, (value, low, high) = alike(node, values)
    return Typed((value.expr >= low.expr) & (value.expr <= high.expr), pa.bool_())


def _logic(node: exp.Expr, below: Compile) -> Typed:
    one = truth(node.this, below).to(pa.bool_()).expr
    other = truth(node.expression, below).to(pa.bool_()).expr
    return Typed(one & other if isinstance(node, exp.And) else one | other, pa.bool_())


def _negation(node: exp.Expr, below: Compile) -> Typed:
    return Typed(~truth(node.this, below).to(pa.bool_()).expr, pa.bool_())


def _membership(node: exp.Expr, below: Compile) -> Typed:
    if not node.expressions:
        raise Misfit(node, "a subquery cannot be streamed; list the values")
    listed = [below(choice) for choice in node.expressions]
    _, (value, *choices) = alike(node, [below(node.this), *listed])
    are_known = all(isinstance(c, exp.Literal) for c in node.expressions)
    if are_known:
        known = pl.concat([pl.select(choice.expr).to_series() for choice in choices])
        return Typed(value.expr.is_in(known.implode()), pa.bool_())
    return Typed(pl.any_horizontal([value.expr == choice.expr for choice in choices]), pa.bool_())


def _identity(node: exp.Expr, below: Compile) -> Typed:
    """IS NULL, IS TRUE, IS FALSE."""
    if isinstance(node.expression, exp.Null):
        return Typed(below(node.this).expr.is_null(), pa.bool_())
    value, wanted = truth(node.this, below), truth(node.expression, below)
    return Typed(value.to(pa.bool_()).expr.eq_missing(wanted.expr), pa.bool_())


def _cast(node: exp.Expr, below: Compile) -> Typed:
    value = below(node.this)
    kind = below(node.args["to"]).type
    result = cast(value, kind)
    if result is None:
        raise Misfit(node, f"a {written(value.type)} cannot be cast to {written(kind)}")
    return result


OPERATORS: Rules = {
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul), _arithmetic),
    exp.Div: _division,
    exp.IntDiv: _whole_division,
    exp.Mod: _modulo,
    exp.Neg: _negative,
    **dict.fromkeys(
        (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ), _comparison
    ),
    exp.Between: _between,
    exp.And: _logic,
    exp.Or: _logic,
    exp.Not: _negation,
    exp.In: _membership,
    exp.Is: _identity,
    exp.Cast: _cast,
    exp.TryCast: _cast,
}
