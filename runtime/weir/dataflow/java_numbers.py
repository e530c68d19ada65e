"""Computes with single numbers as Java and Spark do: decimals, rounding, text.

Spark computes decimals with Java's ``BigDecimal``, rounds a double by way of the text that Java
writes for it, and rounds half away from zero. Everything here takes and gives plain Python values;
None stands for what Spark cannot represent.
"""

import decimal
import math
import re

import numpy as np
import pyarrow as pa

from weir.dataflow.types import LONGEST_DECIMAL

D = decimal.Decimal

_EXACT = decimal.Context(prec=800, rounding=decimal.ROUND_HALF_UP)
"""Holds every digit of every double and of every product of decimals."""

_DIVISION = decimal.Context(prec=130, rounding=decimal.ROUND_DOWN)
"""Spark cuts a quotient off behind the places of any type, and rounds it to its type then."""

_FIRST_SCIENTIFIC = 7
_LAST_SCIENTIFIC = -4
"""Java writes exponents from 10 to the 7th on, and below 10 to the -3rd."""

_DECIMAL_TEXT = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?", re.ASCII)
_LONGEST_EXPONENT = 400


def fitted(value: D, kind: pa.DataType) -> D | None:
    """The decimal at a type's scale, half away from zero; None where it has too many digits."""
    if value.adjusted() > LONGEST_DECIMAL:
        return None
    rounded = value.quantize(D(1).scaleb(-kind.scale), context=_EXACT)
    digits = len(rounded.as_tuple().digits) if rounded else 0
    return rounded if digits <= kind.precision else None


def total(one: D, other: D, kind: pa.DataType) -> D | None:
    return fitted(_EXACT.add(one, other), kind)


def difference(one: D, other: D, kind: pa.DataType) -> D | None:
    return fitted(_EXACT.subtract(one, other), kind)


def product(one: D, other: D, kind: pa.DataType) -> D | None:
    return fitted(_EXACT.multiply(one, other), kind)


def quotient(one: D, other: D, kind: pa.DataType) -> D | None:
    """None for a division by zero."""
    if not other:
        return None
    return fitted(_DIVISION.divide(one, other), kind)


def whole(value: D, rounding: str) -> D:
    """The decimal without places, rounded in the way that ``decimal`` calls so."""
    return value.quantize(D(1), rounding=rounding, context=_EXACT)


def decimal_of_double(value: float, kind: pa.DataType) -> D | None:
    return fitted(D(repr(value)), kind) if math.isfinite(value) else None


def decimal_in(text: str, kind: pa.DataType) -> D | None:
    """Read a decimal; None where there is none, or one that the type cannot hold."""
    if not _DECIMAL_TEXT.fullmatch(text):
        return None
    value = D(text)
    if not value:
        return D(0)
    return fitted(value, kind) if value.adjusted() > -_LONGEST_EXPONENT else D(0)


def rounded_double(value: float, places: int) -> float:
    """Half away from zero, judged by the digits that Java writes: 1.005 becomes 1.01."""
    if not math.isfinite(value):
        return value
    # Adding zero makes -0.0 of a small negative number 0.0, as a BigDecimal has no sign of zero.
    return float(D(repr(value)).quantize(D(1).scaleb(-places), context=_EXACT)) + 0.0


def text_of_double(value: float) -> str:
    return _text(value, repr(value))


def text_of_float(value: float) -> str:
    """The text of a 32-bit float, with no more digits than tell it from its neighbours."""
    return _text(value, str(np.float32(value)))


def _text(value: float, shortest: str) -> str:
    if not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if len(D(shortest).as_tuple().digits) == 1:
        shortest = f"{value:.1e}"  # Java writes two digits, the two that are nearest
    sign, digits, exponent = D(shortest).as_tuple()
    assert isinstance(exponent, int), "a finite number has an exponent"
    written = "".join(map(str, digits)).rstrip("0") or "0"
    mark = "-" if sign else ""
    first = 0 if value == 0 else len(digits) + exponent - 1
    if _LAST_SCIENTIFIC < first < _FIRST_SCIENTIFIC:
        shifted = (
            written.rjust(len(written) - first, "0") if first < 0 else written.ljust(first + 1, "0")
        )
        point = max(first, 0) + 1
        return f"{mark}{shifted[:point]}.{shifted[point:] or '0'}"
    return f"{mark}{written[0]}.{written[1:] or '0'}E{first}"
