"""Compiles the SQL functions that expressions may call, one small rule each.

The list is short on purpose: what is not here is refused by name, and ``mapInArrow`` can do it.
Nothing here depends on the time of day or on chance, so that a replay gives the same rows.
"""

import re

import polars as pl
import pyarrow as pa
from pyarrow import types as kinds
from sqlglot import exp

from weir.dataflow.casts import cast
from weir.dataflow.coercion import Typed, is_whole, polars_type, rounded_decimal
from weir.dataflow.rules import (
    Compile,
    Misfit,
    Rule,
    Rules,
    alike,
    number,
    text,
    truth,
    whole_literal,
)
from weir.dataflow.sql_operators import positive_remainder
from weir.dataflow.types import written

LONGEST_SCALE = 38


def _choice(node: exp.Expr, below: Compile) -> Typed:
    """CASE, with or without a value behind the word; also ``if(…)``."""
    branches = [node] if isinstance(node, exp.If) else node.args["ifs"]
    otherwise = node.args.get("false") if isinstance(node, exp.If) else node.args.get("default")
    results = [below(branch.args["true"]) for branch in branches]
    results.append(below(otherwise or exp.Null()))
    kind, results = alike(node, results)
    chosen = results[-1].expr
    for branch, result in reversed(list(zip(branches, results[:-1], strict=True))):
        condition = branch.this
        if node.this is not None and isinstance(node, exp.Case):
            condition = exp.EQ(this=node.this, expression=branch.this)
        is_so = truth(condition, below).to(pa.bool_()).expr
        chosen = pl.when(is_so).then(result.expr).otherwise(chosen)
    return Typed(chosen, kind)


def _coalesce(node: exp.Expr, below: Compile) -> Typed:
    kind, values = alike(node, [below(node.this), *map(below, node.expressions)])
    return Typed(pl.coalesce(value.expr for value in values), kind)


def _extreme(node: exp.Expr, below: Compile) -> Typed:
    """Nulls are skipped; null only where every value is null. NaN is above every number."""
    kind, values = alike(node, [below(node.this), *map(below, node.expressions)])
    each = [value.expr for value in values]
    if isinstance(node, exp.Least):
        return Typed(pl.min_horizontal(each), kind)
    greatest = pl.max_horizontal(each)
    if kinds.is_floating(kind):
        has_nan = pl.any_horizontal([value.is_nan().fill_null(value=False) for value in each])
        greatest = pl.when(has_nan).then(float("nan")).otherwise(greatest).cast(polars_type(kind))
    return Typed(greatest, kind)


def _absolute(node: exp.Expr, below: Compile) -> Typed:
    value = number(node.this, below)
    return Typed(value.expr.abs(), value.type)


def _round(node: exp.Expr, below: Compile) -> Typed:
    """Half goes away from zero."""
    value = number(node.this, below)
    places = whole_literal(node.args.get("decimals") or exp.Literal.number(0))
    if places is None or not 0 <= places <= LONGEST_SCALE:
        raise Misfit(node, "the number of places must be written out, between 0 and 38")
    if is_whole(value.type) or kinds.is_null(value.type):
        return value
    kind = rounded_decimal(value.type, places) if kinds.is_decimal(value.type) else value.type
    return Typed(value.expr.round(places, mode="half_away_from_zero"), value.type).to(kind)


def _whole_number(node: exp.Expr, below: Compile) -> Typed:
    """FLOOR and CEIL give a bigint, or a decimal without places."""
    value = number(node.this, below)
    if node.args.get("decimals") is not None:
        raise Misfit(node, "floor and ceil to a number of places are not supported; use round")
    if is_whole(value.type) or kinds.is_null(value.type):
        return value.to(pa.int64())
    floored = value.expr.floor() if isinstance(node, exp.Floor) else value.expr.ceil()
    kind = rounded_decimal(value.type, 0) if kinds.is_decimal(value.type) else pa.int64()
    return Typed(floored.cast(polars_type(kind), strict=False), kind)


def _length(node: exp.Expr, below: Compile) -> Typed:
    value = text(node.this, below).to(pa.string())
    return Typed(value.expr.str.len_chars().cast(pl.Int32()), pa.int32())


def _letters(node: exp.Expr, below: Compile) -> Typed:
    value = text(node.this, below).to(pa.string()).expr.str
    is_upper = isinstance(node, exp.Upper)
    return Typed(value.to_uppercase() if is_upper else value.to_lowercase(), pa.string())


def _concat(node: exp.Expr, below: Compile) -> Typed:
    pieces = [node.this, node.expression] if isinstance(node, exp.DPipe) else node.expressions
    return Typed(pl.concat_str([_as_text(piece, below).expr for piece in pieces]), pa.string())


def _as_text(node: exp.Expr, below: Compile) -> Typed:
    value = below(node)
    result = cast(value, pa.string())
    if result is None:
        raise Misfit(node, f"a {written(value.type)} cannot be written as a string")
    return result


def _substring(node: exp.Expr, below: Compile) -> Typed:
    """Counts from 1; a negative start counts from the end, and may lie before the beginning."""
    value = text(node.this, below).to(pa.string()).expr
    start = number(node.args["start"], below).to(pa.int64()).expr
    size = value.str.len_chars().cast(pl.Int64())
    first = pl.when(start > 0).then(start - 1).when(start < 0).then(size + start).otherwise(start)
    last = size
    if node.args.get("length") is not None:
        last = first + number(node.args["length"], below).to(pa.int64()).expr
    begin, end = first.clip(lower_bound=0), last.clip(lower_bound=0)
    return Typed(value.str.slice(begin, (end - begin).clip(lower_bound=0)), pa.string())


def _search(node: exp.Expr, below: Compile) -> Typed:
    value = text(node.this, below).to(pa.string()).expr.str
    wanted = text(node.expression, below).to(pa.string()).expr
    match node:
        case exp.StartsWith():
            return Typed(value.starts_with(wanted), pa.bool_())
        case exp.EndsWith():
            return Typed(value.ends_with(wanted), pa.bool_())
        case _:
            return Typed(value.contains(wanted, literal=True), pa.bool_())


def _like(node: exp.Expr, below: Compile) -> Typed:
    value = text(node.this, below).to(pa.string()).expr
    if not isinstance(node.expression, exp.Literal) or not node.expression.is_string:
        raise Misfit(node, "the pattern of LIKE must be written out as a string")
    return Typed(value.str.contains(_as_regex(node.expression.name)), pa.bool_())


def _as_regex(pattern: str) -> str:
    pieces = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    inner = "".join(wild.get(piece) or re.escape(piece[-1]) for piece in pieces)
    return f"(?s)^{inner}$"


def _null_if(node: exp.Expr, below: Compile) -> Typed:
    first = below(node.this)
    _, (one, other) = alike(node, [first, below(node.expression)])
    unequal = one.expr.ne_missing(other.expr) | other.expr.is_null()
    return Typed(pl.when(unequal).then(first.expr), first.type)


def _is_null(node: exp.Expr, below: Compile) -> Typed:
    return Typed(below(_only(node)).expr.is_null(), pa.bool_())


def _is_not_null(node: exp.Expr, below: Compile) -> Typed:
    return Typed(below(_only(node)).expr.is_not_null(), pa.bool_())


def _is_nan(node: exp.Expr, below: Compile) -> Typed:
    value = number(node.this, below).to(pa.float64())
    return Typed(value.expr.is_nan().fill_null(value=False), pa.bool_())


def _only(node: exp.Expr) -> exp.Expr:
    if len(node.expressions) != 1:
        raise Misfit(node, "this function takes one value")
    only: exp.Expr = node.expressions[0]
    return only


def _positive_remainder(node: exp.Expr, below: Compile) -> Typed:
    dividend_and_divisor = 2
    if len(node.expressions) != dividend_and_divisor:
        raise Misfit(node, "pmod takes two numbers")
    return positive_remainder(node, below)


FUNCTIONS: Rules = {
    exp.Case: _choice,
    exp.If: _choice,
    exp.Coalesce: _coalesce,
    exp.Greatest: _extreme,
    exp.Least: _extreme,
    exp.Abs: _absolute,
    exp.Round: _round,
    exp.Floor: _whole_number,
    exp.Ceil: _whole_number,
    exp.Length: _length,
    exp.Upper: _letters,
    exp.Lower: _letters,
    exp.Concat: _concat,
    exp.DPipe: _concat,
    exp.Substring: _substring,
    exp.StartsWith: _search,
    exp.EndsWith: _search,
    exp.Contains: _search,
    exp.Like: _like,
    exp.Nullif: _null_if,
    exp.IsNan: _is_nan,
}

NAMED: dict[str, Rule] = {
    "pmod": _positive_remainder,
    "isnull": _is_null,
    "isnotnull": _is_not_null,
}
"""Functions that the parser has no node for, by their names."""

NAMES = (
    *("abs", "ceil", "ceiling", "coalesce", "concat", "contains", "endswith", "floor", "greatest"),
    *("if", "ifnull", "isnan", "isnotnull", "isnull", "least", "length", "lower", "mod", "nullif"),
    *("nvl", "pmod", "round", "startswith", "substr", "substring", "upper"),
)
"""What a user may have meant when a function is not known."""
