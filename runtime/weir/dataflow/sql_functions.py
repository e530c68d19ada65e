"""Compiles the SQL functions that expressions may call, one small rule each.

The list is short on purpose: what is not here is refused by name, and ``mapInArrow`` can do it.
Nothing here depends on the time of day or on chance, so that a replay gives the same rows.
"""

import decimal
import re
from functools import partial

import polars as pl
import pyarrow as pa
from pyarrow import types as kinds
from sqlglot import exp

from weir.dataflow import decimal_arithmetic as decimals
from weir.dataflow import java_numbers as java
from weir.dataflow.casts import cast, rounded
from weir.dataflow.coercion import Typed, is_whole, rounded_decimal
from weir.dataflow.elementwise import by_value
from weir.dataflow.rules import (
    OPERAND,
    OPERANDS,
    Compile,
    Misfit,
    Rule,
    Rules,
    alike,
    number,
    refuse_unread,
    text,
    truth,
    whole_literal,
)
from weir.dataflow.sql_operators import as_double, positive_remainder, signed
from weir.dataflow.types import written

LONGEST_SCALE = 38
_BRANCH_OF_CASE = ("this", "true")
_BRANCH = (*_BRANCH_OF_CASE, "false")
_MOST_LONG = 2**63 - 1
_BINARY = pa.binary()
_POSITIONS = (pa.int8(), pa.int16(), pa.int32())
_ESCAPED = (r"\%", r"\_", r"\\")


def _choice(node: exp.Expr, below: Compile) -> Typed:
    """CASE, with or without a value behind the word; also ``if(…)``."""
    branches = [node] if isinstance(node, exp.If) else node.args["ifs"]
    for branch in branches:
        refuse_unread(branch, _BRANCH if branch is node else _BRANCH_OF_CASE)
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
    """Nulls are skipped; null only where every value is null. Of equal values the first counts."""
    if not node.expressions:
        raise Misfit(
            node,
            "this function takes two values or more",
            "give it another value",
        )
    kind, values = alike(node, [below(node.this), *map(below, node.expressions)])
    found = values[0].expr
    for value in (value.expr for value in values[1:]):
        is_beyond = value < found if isinstance(node, exp.Least) else value > found
        found = pl.when(found.is_null() | is_beyond).then(value).otherwise(found)
    return Typed(found, kind)


def _absolute(node: exp.Expr, below: Compile) -> Typed:
    value = signed(node, below)
    return Typed(value.expr.abs(), value.type)


def _round(node: exp.Expr, below: Compile) -> Typed:
    """Half goes away from zero."""
    value = number(node.this, below)
    places = whole_literal(node.args.get("decimals") or exp.Literal.number(0))
    if places is None or not 0 <= places <= LONGEST_SCALE:
        raise Misfit(
            node,
            "the number of places must be a literal between 0 and 38",
            "write the number out",
        )
    if is_whole(value.type):
        return value
    if kinds.is_null(value.type):
        return value.to(pa.float64())
    if kinds.is_decimal(value.type):
        return rounded(value, rounded_decimal(value.type, places))
    double = by_value(
        partial(java.rounded_double, places=places), as_double(value), result=pa.float64()
    )
    return Typed(double, pa.float64()).to(value.type)


def _whole_number(node: exp.Expr, below: Compile) -> Typed:
    """FLOOR and CEIL give a bigint, or a decimal without places."""
    value = number(node.this, below)
    is_floor = isinstance(node, exp.Floor)
    if node.args.get("decimals") is not None:
        raise Misfit(
            node,
            "floor and ceil to a number of places are not supported",
            "use round",
        )
    if is_whole(value.type) or kinds.is_null(value.type):
        return value.to(pa.int64())
    if kinds.is_decimal(value.type):
        rounding = decimal.ROUND_FLOOR if is_floor else decimal.ROUND_CEILING
        return decimals.whole(value, rounded_decimal(value.type, 0), rounding)
    double = as_double(value)
    return Typed(_as_long(double.floor() if is_floor else double.ceil()), pa.int64())


def _as_long(double: pl.Expr) -> pl.Expr:
    """As Java does it: NaN is 0, and what is too large is the largest there is."""
    fitting = (
        pl.when(double.is_nan())
        .then(0)
        .when(double >= float(_MOST_LONG))
        .then(_MOST_LONG)
        .when(double < -float(_MOST_LONG))
        .then(-_MOST_LONG - 1)
        .otherwise(double.cast(pl.Int64(), strict=False))
    )
    return fitting.cast(pl.Int64())


def _length(node: exp.Expr, below: Compile) -> Typed:
    value = text(node.this, below).to(pa.string())
    return Typed(value.expr.str.len_chars().cast(pl.Int32()), pa.int32())


def _letters(node: exp.Expr, below: Compile) -> Typed:
    value = text(node.this, below).to(pa.string()).expr.str
    is_upper = isinstance(node, exp.Upper)
    return Typed(value.to_uppercase() if is_upper else value.to_lowercase(), pa.string())


def _concat(node: exp.Expr, below: Compile) -> Typed:
    pieces = [node.this, node.expression] if isinstance(node, exp.DPipe) else node.expressions
    values = [below(piece) for piece in pieces]
    binaries = [value for value in values if kinds.is_binary(value.type)]
    if binaries and len(binaries) == len(values):
        joined = by_value(lambda *parts: b"".join(parts), *(v.expr for v in values), result=_BINARY)
        return Typed(joined, _BINARY)
    if binaries:
        raise Misfit(
            node,
            "binary and other values do not go together",
            "cast them to string",
        )
    texts = [_as_text(*both) for both in zip(pieces, values, strict=True)]
    return Typed(pl.concat_str([text.expr for text in texts]), pa.string())


def _as_text(node: exp.Expr, value: Typed) -> Typed:
    result = cast(value, pa.string())
    if result is None:
        raise Misfit(
            node,
            f"a {written(value.type)} cannot be written as a string",
            "cast a field of it, or use mapInArrow",
        )
    return result


def _substring(node: exp.Expr, below: Compile) -> Typed:
    """Counts from 1; a negative start counts from the end, and may lie before the beginning."""
    value = text(node.this, below).to(pa.string()).expr
    start = _position(node.args["start"], below)
    size = value.str.len_chars().cast(pl.Int64())
    first = pl.when(start > 0).then(start - 1).when(start < 0).then(size + start).otherwise(start)
    last = size
    if node.args.get("length") is not None:
        last = first + _position(node.args["length"], below)
    begin, end = first.clip(lower_bound=0), last.clip(lower_bound=0)
    cut = value.str.slice(begin, (end - begin).clip(lower_bound=0))
    return Typed(pl.when(begin.is_not_null() & end.is_not_null()).then(cut), pa.string())


def _position(node: exp.Expr, below: Compile) -> pl.Expr:
    value = number(node, below)
    if not kinds.is_null(value.type) and value.type not in _POSITIONS:
        raise Misfit(
            node,
            f"a position is an int, not a {written(value.type)}",
            "cast it",
        )
    return value.to(pa.int64()).expr


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
        raise Misfit(
            node,
            "the pattern of LIKE must be a literal",
            "write it out as a string",
        )
    is_like = value.str.contains(_as_regex(node))
    return Typed(~is_like if node.args.get("negate") else is_like, pa.bool_())


def _as_regex(node: exp.Expr) -> str:
    pieces = re.findall(r"\\.|.", node.expression.name, re.DOTALL)
    wrong = [piece for piece in pieces if piece[0] == "\\" and piece not in _ESCAPED]
    if wrong:
        raise Misfit(
            node,
            "a backslash in a pattern stands before %, _ or another backslash only",
            "write two backslashes for one",
        )
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
        raise Misfit(
            node,
            "this function takes one value",
            "leave out the others",
        )
    only: exp.Expr = node.expressions[0]
    return only


def _positive_remainder(node: exp.Expr, below: Compile) -> Typed:
    dividend_and_divisor = 2
    if len(node.expressions) != dividend_and_divisor:
        raise Misfit(
            node,
            "pmod takes two numbers",
            "give it two",
        )
    return positive_remainder(node, below)


FUNCTIONS: Rules = {
    exp.Case: Rule(_choice, ("this", "ifs", "default")),
    exp.If: Rule(_choice, _BRANCH),
    exp.Coalesce: Rule(_coalesce, ("this", "expressions")),
    # The parser says here what Spark's functions always do: they pass nulls over.
    exp.Greatest: Rule(_extreme, ("this", "expressions", "ignore_nulls")),
    exp.Least: Rule(_extreme, ("this", "expressions", "ignore_nulls")),
    exp.Abs: Rule(_absolute, OPERAND),
    exp.Round: Rule(_round, ("this", "decimals")),
    exp.Floor: Rule(_whole_number, ("this", "decimals")),
    exp.Ceil: Rule(_whole_number, ("this", "decimals")),
    exp.Length: Rule(_length, OPERAND),
    exp.Upper: Rule(_letters, OPERAND),
    exp.Lower: Rule(_letters, OPERAND),
    # "safe" says that other types are cast to strings, which Spark does and _concat too.
    exp.Concat: Rule(_concat, ("expressions", "safe")),
    exp.DPipe: Rule(_concat, (*OPERANDS, "safe")),
    exp.Substring: Rule(_substring, ("this", "start", "length")),
    exp.StartsWith: Rule(_search, OPERANDS),
    exp.EndsWith: Rule(_search, OPERANDS),
    exp.Contains: Rule(_search, OPERANDS),
    exp.Like: Rule(_like, (*OPERANDS, "negate")),
    exp.Nullif: Rule(_null_if, OPERANDS),
    exp.IsNan: Rule(_is_nan, OPERAND),
}

NAMED: dict[str, Rule] = {
    "pmod": Rule(_positive_remainder, ("this", "expressions")),
    "isnull": Rule(_is_null, ("this", "expressions")),
    "isnotnull": Rule(_is_not_null, ("this", "expressions")),
}
"""Functions that the parser has no node for, by their names."""

NAMES = (
    *("abs", "ceil", "ceiling", "coalesce", "concat", "contains", "endswith", "floor", "greatest"),
    *("if", "ifnull", "isnan", "isnotnull", "isnull", "least", "length", "lower", "mod", "nullif"),
    *("nvl", "pmod", "round", "startswith", "substr", "substring", "upper"),
)
"""What a user may have meant when a function is not known."""
