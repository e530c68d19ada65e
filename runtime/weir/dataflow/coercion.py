"""Decides which type an expression has, as Spark would: pure arithmetic on types, no rows.

The rules are those of Spark 4 with its default settings: numbers widen, whole numbers meet floats
as doubles, decimals keep their digits. Text never turns into a number by itself; where Spark would
guess, Weir asks for a cast.
"""

from dataclasses import dataclass

import polars as pl
import pyarrow as pa
from pyarrow import types as kinds

from weir.dataflow.types import LONGEST_DECIMAL, TIMESTAMP

_WHOLE = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
"""The whole numbers from narrow to wide, each with the digits of its decimal."""

_POLARS: dict[pa.DataType, pl.DataType] = {
    pa.int8(): pl.Int8(),
    pa.int16(): pl.Int16(),
    pa.int32(): pl.Int32(),
    pa.int64(): pl.Int64(),
    pa.float32(): pl.Float32(),
    pa.float64(): pl.Float64(),
    pa.bool_(): pl.Boolean(),
    pa.string(): pl.String(),
    pa.binary(): pl.Binary(),
    pa.date32(): pl.Date(),
    pa.null(): pl.Null(),
    TIMESTAMP: pl.Datetime("us", "UTC"),
    pa.timestamp("us"): pl.Datetime("us"),
}
_LEAST_SCALE = 6
"""What a division keeps behind the point, however many digits stand before it."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A Polars expression with the Arrow type that its result has."""

    expr: pl.Expr
    type: pa.DataType
    digits: int = 0
    """Of a whole number written out; a decimal beside it makes room for no more than these."""
    literal: str | None = None
    """The text of a string that is written out."""

    def to(self, kind: pa.DataType) -> "Typed":
        """The same value as a wider type; see ``casts`` for casts that can lose something."""
        if kind.equals(self.type):
            return self
        return Typed(self.expr.cast(polars_type(kind), strict=False), kind)


def polars_type(kind: pa.DataType) -> pl.DataType:
    if kinds.is_decimal(kind):
        return pl.Decimal(kind.precision, kind.scale)
    return _POLARS[kind]


def is_known(kind: pa.DataType) -> bool:
    """Whether expressions can compute with it; other columns can only be passed on."""
    return kinds.is_decimal128(kind) or kind in _POLARS


def is_whole(kind: pa.DataType) -> bool:
    return kind in _WHOLE


def is_number(kind: pa.DataType) -> bool:
    return kind in _WHOLE or kinds.is_floating(kind) or kinds.is_decimal(kind)


def is_numeric(kind: pa.DataType) -> bool:
    """A number, or the null that can stand for one."""
    return is_number(kind) or bool(kinds.is_null(kind))


def is_boolean(kind: pa.DataType) -> bool:
    return kind in {pa.bool_(), pa.null()}


def is_text(kind: pa.DataType) -> bool:
    return kind in {pa.string(), pa.null()}


def is_temporal(kind: pa.DataType) -> bool:
    return bool(kinds.is_date32(kind) or kinds.is_timestamp(kind))


def wider(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type that holds values of both, or None if a cast must be written."""
    if one.equals(other) or kinds.is_null(other):
        return one
    if kinds.is_null(one):
        return other
    if is_number(one) and is_number(other):
        return _wider_number(one, other)
    return _wider_time(one, other)


def widest(values: list[Typed]) -> pa.DataType | None:
    found: pa.DataType | None = pa.null()
    for value in values:
        found = None if found is None else wider(found, value.type)
    return found


def as_decimal(value: Typed) -> Typed:
    """A whole number as the decimal that holds it."""
    if kinds.is_decimal(value.type):
        return value
    return value.to(pa.decimal128(value.digits or _WHOLE[value.type], 0))


def sum_of_decimals(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    scale = max(one.scale, other.scale)
    return _decimal(_before_point(one, other) + scale + 1, scale)


def product_of_decimals(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    return _decimal(one.precision + other.precision + 1, one.scale + other.scale)


def quotient_of_decimals(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    scale = max(_LEAST_SCALE, one.scale + other.precision + 1)
    return _decimal(one.precision - one.scale + other.scale + scale, scale)


def rounded_decimal(kind: pa.DataType, places: int) -> pa.DataType:
    scale = min(kind.scale, places)
    return pa.decimal128(min(kind.precision - kind.scale + 1 + scale, LONGEST_DECIMAL), scale)


def _decimal(precision: int, scale: int) -> pa.DataType:
    """Fit it into 38 digits; digits before the point are worth more than those behind it."""
    if precision <= LONGEST_DECIMAL:
        return pa.decimal128(precision, scale)
    room = max(LONGEST_DECIMAL - (precision - scale), min(scale, _LEAST_SCALE))
    return pa.decimal128(LONGEST_DECIMAL, room)


def _before_point(one: pa.DataType, other: pa.DataType) -> int:
    return int(max(one.precision - one.scale, other.precision - other.scale))


def _wider_number(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if kinds.is_floating(one) or kinds.is_floating(other):
        return pa.float64()
    if one in _WHOLE and other in _WHOLE:
        order = list(_WHOLE)
        return max(one, other, key=order.index)
    one, other = (
        kind if kinds.is_decimal(kind) else pa.decimal128(_WHOLE[kind], 0) for kind in (one, other)
    )
    before, scale = _before_point(one, other), max(one.scale, other.scale)
    if before + scale <= LONGEST_DECIMAL:
        return pa.decimal128(before + scale, scale)
    return pa.decimal128(LONGEST_DECIMAL, max(LONGEST_DECIMAL - before, 0))


def _wider_time(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """A date meets a timestamp as a timestamp; text beside a time is read as one.

    Text beside a ``timestamp_ntz`` is not: Spark takes or ignores its zone, depending on ANSI mode.
    """
    for this, that in ((one, other), (other, one)):
        if kinds.is_timestamp(this) and kinds.is_date32(that):
            return this
        if kinds.is_timestamp(this) and this.tz and kinds.is_string(that):
            return this
        if kinds.is_date32(this) and kinds.is_string(that):
            return this
    return None
