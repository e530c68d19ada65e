"""Casts one type to another as Spark does; what cannot be read becomes null.

That is Spark's ``try_cast``: a stream that must not stop at one bad row is better served by a null
than by an error that comes back at every restart.
"""

import decimal
from collections.abc import Callable
from functools import partial

import polars as pl
import pyarrow as pa
from pyarrow import types as kinds

from weir.dataflow import java_numbers as java
from weir.dataflow.coercion import Typed, is_number, is_temporal, is_whole, polars_type
from weir.dataflow.elementwise import by_value
from weir.dataflow.time_text import BLANK, day_in, instant_in, local_time_in

_TRUE = ("true", "t", "yes", "y", "1")
_FALSE = ("false", "f", "no", "n", "0")
_NOT_FINITE = {
    **dict.fromkeys(("nan",), "NaN"),
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), "inf"),
    **dict.fromkeys(("-inf", "-infinity"), "-inf"),
}
_DOUBLE_TEXT = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?$"
_MICROS = 1_000_000
_SPARK_PRODUCT = decimal.Context(prec=34, rounding=decimal.ROUND_HALF_EVEN)
_EXACT_IN_DOUBLE = 15
"""The digits of decimals that a double holds, whichever they are."""
_MOST_LONG = 2**63 - 1


def cast(value: Typed, kind: pa.DataType) -> Typed | None:
    """The value as another type, or None when there is no such cast."""
    if kind.equals(value.type) or kinds.is_null(value.type):
        return value.to(kind)
    if kinds.is_string(value.type):
        return _from_text(value, kind)
    if kinds.is_string(kind):
        return _to_text(value)
    if kinds.is_decimal(value.type):
        return _from_decimal(value, kind)
    if is_number(value.type) or kinds.is_boolean(value.type):
        return _from_number(value, kind)
    if is_temporal(value.type):
        return _from_time(value, kind)
    return None


def time_in_literal(value: Typed, kind: pa.DataType) -> int | None:
    """The date or timestamp that a written-out string is, as Arrow counts it."""
    return _reader_of(kind)(value.literal or "")


def _from_text(value: Typed, kind: pa.DataType) -> Typed | None:
    text = value.expr.str.strip_chars(BLANK)
    if kinds.is_boolean(kind):
        lower = text.str.to_lowercase()
        truth = pl.when(lower.is_in(_TRUE)).then(statement=True)
        return Typed(truth.when(lower.is_in(_FALSE)).then(statement=False), kind)
    if is_temporal(kind):
        return Typed(by_value(_reader_of(kind), value.expr, result=kind), kind)
    if kinds.is_binary(kind):
        return Typed(value.expr.cast(pl.Binary()), kind)
    if kinds.is_decimal(kind):
        return Typed(by_value(partial(java.decimal_in, kind=kind), text, result=kind), kind)
    if kinds.is_floating(kind):
        return Typed(_float_in(text, kind), kind)
    return Typed(text, value.type).to(kind) if is_whole(kind) else None


def _reader_of(kind: pa.DataType) -> Callable[[str], int | None]:
    if kinds.is_date32(kind):
        return day_in
    return instant_in if kind.tz else local_time_in


def _float_in(text: pl.Expr, kind: pa.DataType) -> pl.Expr:
    """Java's floating-point literals, but for hexadecimal ones, and Spark's words."""
    digits = pl.when(text.str.contains(_DOUBLE_TEXT)).then(text.str.replace("[dDfF]$", ""))
    word = text.str.to_lowercase().replace_strict(_NOT_FINITE, default=None, return_dtype=pl.String)
    return pl.coalesce(word, digits).cast(polars_type(kind), strict=False)


def _to_text(value: Typed) -> Typed | None:
    text = pa.string()
    if kinds.is_timestamp(value.type):
        fixed = value.expr.dt.to_string("%Y-%m-%d %H:%M:%S%.6f")
        return Typed(fixed.str.replace(r"\.?0*$", ""), text)
    if kinds.is_floating(value.type):
        write = java.text_of_float if kinds.is_float32(value.type) else java.text_of_double
        return Typed(by_value(write, value.expr, result=text), text)
    if kinds.is_binary(value.type):
        return Typed(by_value(_decoded, value.expr, result=text), text)
    if kinds.is_nested(value.type):
        return None
    return value.to(text)


def _decoded(data: bytes) -> str:
    """What is not UTF-8 becomes the replacement character, as in a string of Java."""
    return data.decode("utf-8", "replace")


def _from_decimal(value: Typed, kind: pa.DataType) -> Typed | None:
    if kinds.is_decimal(kind):
        return rounded(value, kind)
    if kinds.is_boolean(kind):
        return Typed(value.expr != 0, kind)
    if is_whole(kind):
        whole = by_value(partial(_truncated, bits=kind.bit_width), value.expr, result=kind)
        return Typed(whole, kind)
    if kinds.is_floating(kind):
        return Typed(_double_of(value), pa.float64()).to(kind)
    if kinds.is_timestamp(kind) and kind.tz:
        return Typed(by_value(_micros_of, value.expr, result=kind), kind)
    return None


def _truncated(value: decimal.Decimal, bits: int) -> int | None:
    whole = int(value)
    return whole if -(1 << bits - 1) <= whole < 1 << bits - 1 else None


def rounded(value: Typed, kind: pa.DataType) -> Typed:
    """A decimal as another one, half away from zero; null where it does not fit."""
    before = value.type.precision - value.type.scale
    if kind.scale >= value.type.scale and kind.precision - kind.scale >= before:
        return value.to(kind)
    return Typed(by_value(partial(java.fitted, kind=kind), value.expr, result=kind), kind)


def _double_of(value: Typed) -> pl.Expr:
    if value.type.precision <= _EXACT_IN_DOUBLE:
        return value.expr.cast(pl.Float64())
    return by_value(float, value.expr, result=pa.float64())


def _micros_of(seconds: decimal.Decimal) -> int:
    """Of 34 digits, truncated, and wrapped around as a long is."""
    micros = int(_SPARK_PRODUCT.multiply(seconds, decimal.Decimal(_MICROS)))
    return (micros + _MOST_LONG + 1) % (1 << 64) - _MOST_LONG - 1


def _from_number(value: Typed, kind: pa.DataType) -> Typed | None:
    if kinds.is_boolean(kind):
        return Typed(value.expr != 0, kind)
    if kinds.is_timestamp(kind):
        return _instant_of(value, kind)
    if kinds.is_boolean(value.type):
        return Typed(value.expr.cast(pl.Int8()), pa.int8()).to(kind) if is_number(kind) else None
    if kinds.is_decimal(kind) and kinds.is_floating(value.type):
        double = value.to(pa.float64()).expr
        return Typed(
            by_value(partial(java.decimal_of_double, kind=kind), double, result=kind), kind
        )
    if kind.equals(pa.int64()) and kinds.is_floating(value.type):
        # Of all doubles above the greatest long, Spark takes the nearest for that long.
        is_nearest = value.expr == float(_MOST_LONG)
        return Typed(pl.when(is_nearest).then(_MOST_LONG).otherwise(value.to(kind).expr), kind)
    return value.to(kind) if is_number(kind) else None


def _instant_of(value: Typed, kind: pa.DataType) -> Typed | None:
    """From the seconds since 1970."""
    if not kind.tz or kinds.is_boolean(value.type):
        return None
    if is_whole(value.type):
        most = _MOST_LONG // _MICROS
        seconds = value.expr.cast(pl.Int64())
        micros = (
            pl.when(seconds > most)
            .then(_MOST_LONG)
            .when(seconds < -most)
            .then(-_MOST_LONG - 1)
            .otherwise(seconds * _MICROS)
        )
    else:
        micros = (value.expr.cast(pl.Float64()) * _MICROS).cast(pl.Int64(), strict=False)
    return Typed(micros.cast(pl.Int64()).cast(polars_type(kind)), kind)


def _from_time(value: Typed, kind: pa.DataType) -> Typed | None:
    if is_temporal(kind):
        return _time_from_time(value, kind)
    if not kinds.is_timestamp(value.type) or not is_number(kind):
        return None
    micros = value.expr.dt.timestamp("us")
    if is_whole(kind):
        return Typed((micros // _MICROS).cast(polars_type(kind), strict=False), kind)
    seconds = by_value(lambda number: float(number) / _MICROS, micros, result=pa.float64())
    return cast(Typed(seconds, pa.float64()), kind)


def _time_from_time(value: Typed, kind: pa.DataType) -> Typed:
    """Every zone is UTC, so an instant and a time without zone show the same clock."""
    if kinds.is_date32(kind):
        return Typed(value.expr.dt.date(), kind)
    micros = value.expr.cast(pl.Datetime("us")) if kinds.is_date32(value.type) else value.expr
    return Typed(micros.dt.replace_time_zone(kind.tz).dt.cast_time_unit(kind.unit), kind)
