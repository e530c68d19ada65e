"""Casts one type to another as Spark does; what cannot be read becomes null.

That is Spark's ``try_cast``, and what its ``cast`` does with ANSI mode off: a stream that must not
stop at one bad row is better served by a null than by an error that comes back at every restart.
Very large and very small doubles are written as Polars does (``1e+20``), not as Java (``1.0E20``).
"""

import polars as pl
import pyarrow as pa
from pyarrow import types as kinds

from weir.dataflow.coercion import Typed, is_number, is_temporal, is_whole, polars_type
from weir.dataflow.types import LONGEST_DECIMAL

_PATTERNS = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%d")
_TRUE = ("true", "t", "yes", "y", "1")
_FALSE = ("false", "f", "no", "n", "0")
_MICROS = 1_000_000


def cast(value: Typed, kind: pa.DataType) -> Typed | None:
    """The value as another type, or None when there is no such cast."""
    if kind.equals(value.type) or kinds.is_null(value.type):
        return value.to(kind)
    if kinds.is_string(value.type):
        return _from_text(value, kind)
    if kinds.is_string(kind):
        return _to_text(value)
    if is_number(value.type) or kinds.is_boolean(value.type):
        return _from_number(value, kind)
    if is_temporal(value.type):
        return _from_time(value, kind)
    return None


def _from_text(value: Typed, kind: pa.DataType) -> Typed | None:
    text = value.expr.str.strip_chars()
    if kinds.is_boolean(kind):
        lower = text.str.to_lowercase()
        truth = pl.when(lower.is_in(_TRUE)).then(statement=True)
        return Typed(truth.when(lower.is_in(_FALSE)).then(statement=False), kind)
    if kinds.is_timestamp(kind):
        return Typed(_time_in(text, kind), kind)
    if kinds.is_date32(kind):
        return Typed(_time_in(text, pa.timestamp("us")).dt.date(), kind)
    if kinds.is_binary(kind):
        return Typed(value.expr.cast(pl.Binary()), kind)
    if kinds.is_decimal(kind):
        # Every digit that fits is read before it is rounded.
        roomy = pa.decimal128(LONGEST_DECIMAL, LONGEST_DECIMAL - kind.precision + kind.scale)
        return Typed(text, value.type).to(roomy).to(kind)
    return Typed(text, value.type).to(kind) if is_number(kind) else None


def _time_in(text: pl.Expr, kind: pa.DataType) -> pl.Expr:
    return pl.coalesce(
        text.str.to_datetime(pattern, time_unit="us", time_zone=kind.tz, strict=False)
        for pattern in _PATTERNS
    )


def _to_text(value: Typed) -> Typed | None:
    text = pa.string()
    if kinds.is_timestamp(value.type):
        fixed = value.expr.dt.to_string("%Y-%m-%d %H:%M:%S%.6f")
        return Typed(fixed.str.replace(r"\.?0*$", ""), text)
    if kinds.is_nested(value.type):
        return None
    return value.to(text)


def _from_number(value: Typed, kind: pa.DataType) -> Typed | None:
    if kinds.is_boolean(kind):
        return Typed(value.expr != 0, kind)
    if kinds.is_timestamp(kind) and is_number(value.type):
        micros = (value.expr.cast(pl.Float64()) * _MICROS).cast(pl.Int64(), strict=False)
        if is_whole(value.type):
            micros = value.expr.cast(pl.Int64()) * _MICROS
        return Typed(micros.cast(polars_type(kind)), kind)
    if not is_number(kind):
        return None
    if kinds.is_boolean(value.type):
        return Typed(value.expr.cast(pl.Int8()), pa.int8()).to(kind)
    return value.to(kind)


def _from_time(value: Typed, kind: pa.DataType) -> Typed | None:
    if is_temporal(kind):
        return _time_from_time(value, kind)
    if not kinds.is_timestamp(value.type) or not is_number(kind):
        return None
    micros = value.expr.dt.timestamp("us")
    if is_whole(kind):
        return Typed((micros // _MICROS).cast(polars_type(kind), strict=False), kind)
    return Typed(micros / _MICROS, pa.float64()).to(kind)


def _time_from_time(value: Typed, kind: pa.DataType) -> Typed:
    """Every zone is UTC, so an instant and a time without zone show the same clock."""
    if kinds.is_date32(kind):
        return Typed(value.expr.dt.date(), kind)
    micros = value.expr.cast(pl.Datetime("us")) if kinds.is_date32(value.type) else value.expr
    return Typed(micros.dt.replace_time_zone(kind.tz).dt.cast_time_unit(kind.unit), kind)
