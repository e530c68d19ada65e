"""Gives a processor its keys with the values that PySpark gives; state keeps keys as plain tuples.

With input rows and with initial state PySpark gives a struct in a key as a dict. Instants in a key
are as the rows have them: with their zone in ``transformWithState``, naive pandas timestamps in
``transformWithStateInPandas``. The key of a timer is a Row with names, its structs are such Rows
too, and its instants are naive.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

import pandas as pd
import pyarrow as pa
from pyspark.sql import Row

from weir.connectors.pyspark.rows import row_maker
from weir.dataflow.physical import RowsAs
from weir.ports.keyed_state import Key

Conversion: TypeAlias = Callable[[Any], object]


class _Style(NamedTuple):
    """What structs and instants become."""

    structs: Callable[[Sequence[str]], Callable[[Iterable[object]], object]]
    instant: Conversion | None


def input_key(fields: Sequence[pa.Field], rows_as: RowsAs) -> Callable[[Key], Key] | None:
    """How keys become those that come with rows; None where they are given as they are kept."""
    conversions = _conversions(fields, _STYLES[rows_as])
    if not any(conversions):
        return None
    return lambda key: tuple(_converted(key, conversions))


def timer_key(fields: Sequence[pa.Field]) -> Callable[[Key], Row]:
    """How keys become those that come with timers."""
    conversions = _conversions(fields, _OF_TIMERS)
    make_row = row_maker([field.name for field in fields])
    if not any(conversions):
        return make_row
    return lambda key: make_row(_converted(key, conversions))


def _conversions(fields: Iterable[pa.Field], style: _Style) -> list[Conversion | None]:
    return [_conversion(field.type, style) for field in fields]


def _converted(values: Iterable[object], conversions: Sequence[Conversion | None]) -> list[object]:
    pairs = zip(values, conversions, strict=True)
    return [
        value if convert is None or value is None else convert(value) for value, convert in pairs
    ]


def _conversion(kind: pa.DataType, style: _Style) -> Conversion | None:
    """Never called for null."""
    if pa.types.is_timestamp(kind):
        return style.instant
    if not pa.types.is_struct(kind):
        return None
    conversions = _conversions(kind, style)
    make = style.structs([field.name for field in kind])
    return lambda struct: make(_converted(struct, conversions))


def _dict_maker(names: Sequence[str]) -> Callable[[Iterable[object]], object]:
    return lambda values: dict(zip(names, values, strict=True))


def _naive(instant: datetime) -> datetime:
    return instant.replace(tzinfo=None)


def _naive_in_pandas(instant: datetime) -> pd.Timestamp:
    return pd.Timestamp(_naive(instant))


_STYLES = {
    RowsAs.ROWS: _Style(_dict_maker, None),
    RowsAs.PANDAS: _Style(_dict_maker, _naive_in_pandas),
}
_OF_TIMERS = _Style(row_maker, _naive)
