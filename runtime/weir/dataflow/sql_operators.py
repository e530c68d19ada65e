"""Compiles SQL's operators: arithmetic, comparisons, logic, membership.

Null follows SQL: an operation on null is null, except where three-valued logic knows the answer.
A division by zero is null, as in Spark with ANSI mode off; whole numbers that overflow wrap around.
"""

import operator
from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl
import pyarrow as pa
from pyarrow import compute as pc
from pyarrow import types as kinds
from sqlglot import exp

from weir.dataflow import decimal_arithmetic as decimals
from weir.dataflow.casts import cast
from weir.dataflow.coercion import Typed, is_whole, polars_type
from weir.dataflow.elementwise import by_column
from weir.dataflow.rules import (
    OPERAND,
    OPERANDS,
    Compile,
    Misfit,
    Rule,
    Rules,
    alike,
    number,
    truth,
)
from weir.dataflow.types import written

_OF_FLOATS: dict[type[exp.Expr], Callable[..., pa.Array]] = {
    exp.Add: pc.add,
    exp.Sub: pc.subtract,
    exp.Mul: pc.multiply,
}
_OF_WHOLE_NUMBERS: dict[type[exp.Expr], Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
}
_LONGEST_NEGATED = 34
"""The digits that Spark keeps of a decimal whose sign changes."""
_MOST_INT, _MOST_LONG = 2**31 - 1, 2**63 - 1


def one_row() -> pl.DataFrame:
    """Where an expression that reads no column is computed."""
    return pl.DataFrame({"": [0]})


def whole_number(node: exp.Expr, value: int) -> Typed:
    """A number that is written out: an int, or a bigint where it must be."""
    if not -_MOST_LONG - 1 <= value <= _MOST_LONG:
        raise Misfit(
            node,
            "this number is too large for a bigint",
            "write it as a string and cast",
        )
    kind = pa.int32() if -_MOST_INT - 1 <= value <= _MOST_INT else pa.int64()
    return Typed(pl.lit(value, dtype=polars_type(kind)), kind, len(str(abs(value))))


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
    left_over = _remainder_of(kind)
    first = left_over(one, other)
    return Typed(pl.when(first < 0).then(left_over(first + other, other)).otherwise(first), kind)


def _remainder_of(kind: pa.DataType) -> Callable[[pl.Expr, pl.Expr], pl.Expr]:
    if not kinds.is_floating(kind):
        return remainder
    return partial(_of_floats, np.fmod, kind=kind)


def _of_floats(compute: np.ufunc, one: pl.Expr, other: pl.Expr, *, kind: pa.DataType) -> pl.Expr:
    """Compute as the processor does, null for a division by zero; Polars would lose a digit."""

    def with_nulls(left: pa.Array, right: pa.Array) -> pa.Array:
        numbers = [side.to_numpy(zero_copy_only=False) for side in (left, right)]
        is_null = pc.or_(pc.or_(left.is_null(), right.is_null()), pc.equal(right, 0)).fill_null(
            fill_value=True
        )
        with np.errstate(all="ignore"):
            return pa.array(compute(*numbers), kind, mask=is_null.to_numpy(zero_copy_only=False))

    return by_column(with_nulls, one, other, result=kind)


def _numbers(
    node: exp.Expr, left: exp.Expr, right: exp.Expr, *, below: Compile
) -> tuple[pl.Expr, pl.Expr, pa.DataType]:
    kind, (one, other) = alike(node, [number(left, below), number(right, below)])
    if kinds.is_null(kind):
        kind, one, other = pa.float64(), one.to(pa.float64()), other.to(pa.float64())
    if kinds.is_decimal(kind):
        raise Misfit(
            node,
            "there is no remainder of decimals",
            "cast to bigint or double",
        )
    return one.expr, other.expr, kind


def _unless_zero(divisor: pl.Expr) -> pl.Expr:
    return pl.when(divisor != 0).then(divisor)


def _pair(node: exp.Expr, below: Compile) -> tuple[Typed, Typed]:
    return number(node.this, below), number(node.expression, below)


def _are_decimals(one: Typed, other: Typed) -> bool:
    """One is a decimal, and neither turns it into a double."""
    both = (one.type, other.type)
    return any(map(kinds.is_decimal, both)) and not any(map(kinds.is_floating, both))


def _arithmetic(node: exp.Expr, below: Compile) -> Typed:
    one, other = _pair(node, below)
    if _are_decimals(one, other):
        return decimals.computed(type(node), one, other)
    kind, (one, other) = alike(node, [one, other])
    if kinds.is_null(kind):
        return one.to(pa.float64())
    if kinds.is_floating(kind):
        # Polars takes x + 0.0 for x, which -0.0 is not.
        compute = _OF_FLOATS[type(node)]
        return Typed(by_column(compute, one.expr, other.expr, result=kind), kind)
    return Typed(_OF_WHOLE_NUMBERS[type(node)](one.expr, other.expr), kind)


def _division(node: exp.Expr, below: Compile) -> Typed:
    one, other = _pair(node, below)
    if _are_decimals(one, other):
        return decimals.computed(exp.Div, one, other)
    double = pa.float64()
    left, right = as_double(one), as_double(other)
    return Typed(_of_floats(np.true_divide, left, right, kind=double), double)


def as_double(value: Typed) -> pl.Expr:
    result = cast(value, pa.float64())
    assert result is not None, "every number can be a double"
    return result.expr


def _whole_division(node: exp.Expr, below: Compile) -> Typed:
    one, other = _pair(node, below)
    for side, value in ((node.this, one), (node.expression, other)):
        if not is_whole(value.type) and not kinds.is_null(value.type):
            raise Misfit(
                side,
                f"div needs whole numbers, not {written(value.type)}",
                "use / or cast",
            )
    long = pa.int64()
    return Typed(quotient(one.to(long).expr, other.to(long).expr), long)


def _modulo(node: exp.Expr, below: Compile) -> Typed:
    one, other, kind = _numbers(node, node.this, node.expression, below=below)
    return Typed(_remainder_of(kind)(one, other), kind)


def _negative(node: exp.Expr, below: Compile) -> Typed:
    literal = node.this
    if isinstance(literal, exp.Literal) and not literal.is_string and literal.name.isdecimal():
        return whole_number(node, -int(literal.name))
    value = signed(node, below)
    return Typed(-value.expr, value.type, value.digits)


def signed(node: exp.Expr, below: Compile) -> Typed:
    """The operand of a minus or of ``abs``; null is a double."""
    value = number(node.this, below)
    if kinds.is_decimal(value.type) and value.type.precision > _LONGEST_NEGATED:
        raise Misfit(
            node,
            f"Spark rounds a {written(value.type)} to 34 digits here",
            "cast it to fewer digits, or subtract it from 0",
        )
    return value.to(pa.float64()) if kinds.is_null(value.type) else value


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
    if node.args.get("query"):
        raise Misfit(
            node,
            "a subquery cannot be streamed",
            "list the values",
        )
    listed = [below(choice) for choice in node.expressions]
    _, (value, *choices) = alike(node, [below(node.this), *listed])
    are_known = all(isinstance(c, exp.Literal) for c in node.expressions)
    if are_known:
        known = pl.concat([one_row().select(choice.expr).to_series() for choice in choices])
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
        raise Misfit(
            node,
            f"a {written(value.type)} cannot be cast to {written(kind)}",
            "cast to another type, or use mapInArrow",
        )
    return result


OPERATORS: Rules = {
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul), Rule(_arithmetic, OPERANDS)),
    # The parser says here what every division of Spark's is: a double, and null by zero.
    exp.Div: Rule(_division, (*OPERANDS, "typed", "safe")),
    exp.IntDiv: Rule(_whole_division, OPERANDS),
    exp.Mod: Rule(_modulo, OPERANDS),
    exp.Neg: Rule(_negative, OPERAND),
    **dict.fromkeys(
        (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ),
        Rule(_comparison, OPERANDS),
    ),
    exp.Between: Rule(_between, ("this", "low", "high")),
    exp.And: Rule(_logic, OPERANDS),
    exp.Or: Rule(_logic, OPERANDS),
    exp.Not: Rule(_negation, OPERAND),
    exp.In: Rule(_membership, ("this", "expressions", "query")),
    exp.Is: Rule(_identity, OPERANDS),
    exp.Cast: Rule(_cast, ("this", "to")),
    # Every cast gives null for what it cannot read, so "safe" changes nothing.
    exp.TryCast: Rule(_cast, ("this", "to", "safe")),
}
