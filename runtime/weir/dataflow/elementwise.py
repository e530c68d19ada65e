"""Lets an expression call Python where Polars computes otherwise than Spark.

Exact decimals, remainders of doubles, the text of a double and the reading of times are computed
here on Arrow columns, or value by value where Arrow has no function either. A function must not
raise: it returns None for what has no value, and a row never stops a job.
"""

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from weir.dataflow.coercion import polars_type


def by_column(function: Callable[..., pa.Array], *inputs: pl.Expr, result: pa.DataType) -> pl.Expr:
    """Call a function of Arrow columns of one length, which gives a column of that length."""

    def compute(columns: Sequence[pl.Series]) -> pl.Series:
        size = len(columns[0])
        given = [_as_arrow(column) for column in columns[1:]]
        if all(len(column) == 1 for column in given):
            return _as_series(function(*given)).new_from_index(0, size)
        return _as_series(function(*(_repeated(column, size) for column in given)))

    # A literal has one row whatever the frame has, so the frame's rows are counted beside it.
    height = pl.int_range(pl.len())
    return pl.map_batches([height, *inputs], compute, return_dtype=polars_type(result))


def by_value(function: Callable[..., Any], *inputs: pl.Expr, result: pa.DataType) -> pl.Expr:
    """Call a function of one value of each input, for the rows in which none of them is null."""

    def compute(*columns: pa.Array) -> pa.Array:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        made = [None if any(v is None for v in row) else function(*row) for row in rows]
        return pa.array(made, result)

    return by_column(compute, *inputs, result=result)


def _as_arrow(column: pl.Series) -> pa.Array:
    return column.to_arrow(compat_level=pl.CompatLevel.oldest())


def _repeated(column: pa.Array, size: int) -> pa.Array:
    return pa.repeat(column[0], size) if len(column) == 1 else column


def _as_series(column: pa.Array) -> pl.Series:
    series = pl.from_arrow(column)
    assert isinstance(series, pl.Series), "a column becomes a series"
    return series
