"""Writes rows as lines of JSON, value for value as Spark's JSON writer does.

A field that is null is left out, a map is an object, binary is base64, a decimal is a number, and
the doubles that JSON has no number for are the strings ``"NaN"``, ``"Infinity"``, ``"-Infinity"``.
Timestamps end in milliseconds, and instants are written in UTC. Text is made column by column, by
native code. A type that Spark's writer has no form for is refused when the job is built.
"""

import json
from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from weir.dataflow.types import written

_BEFORE_VALUE = len('{"v":')
_WALL_CLOCK = '"%Y-%m-%dT%H:%M:%S%.3f"'
_INSTANT = '"%Y-%m-%dT%H:%M:%S%.3fZ"'

_is = pa.types
_PLAIN = (
    _is.is_null,
    _is.is_boolean,
    _is.is_integer,
    _is.is_float32,
    _is.is_float64,
    _is.is_decimal128,
    _is.is_string,
    _is.is_large_string,
    _is.is_binary,
    _is.is_large_binary,
    _is.is_date32,
    _is.is_timestamp,
)
_KEYS = (_is.is_string, _is.is_large_string, _is.is_integer, _is.is_boolean)
"""Map keys whose text is the same in Spark and here."""


def unwritable(schema: pa.Schema) -> str:
    """The first column that cannot be written, with its type and the reason; empty if all can."""
    for field in schema:
        problem = _unwritable(field.type)
        if problem:
            return f"column {field.name} has the type {written(field.type)}, and {problem}"
    return ""


def _unwritable(kind: pa.DataType) -> str:
    if any(is_kind(kind) for is_kind in _PLAIN):
        return ""
    if _is.is_map(kind):
        if not any(is_kind(kind.key_type) for is_kind in _KEYS):
            return f"a {written(kind.key_type)} cannot be the name of a JSON field"
        return _unwritable(kind.item_type)
    if _is_list(kind):
        return _unwritable(kind.value_type)
    if _is.is_struct(kind):
        return next(filter(None, (_unwritable(field.type) for field in kind)), "")
    return f"Spark's JSON has no form for {written(kind)}"


def json_lines(table: pa.Table) -> str:
    """All rows, each a line that ends with a newline."""
    columns = [_text(column.combine_chunks()) for column in table.columns]
    lines = _objects(table.column_names, columns, table.num_rows)
    return str((lines + "\n").str.join("").item())


def _text(array: pa.Array) -> pl.Series:
    """Each value as JSON; null where it is null."""
    if _is.is_struct(array.type):
        names = [field.name for field in array.type]
        columns = [_text(child) for child in array.flatten()]
        return _where_valid(array, _objects(names, columns, len(array)))
    if _is.is_map(array.type):
        return _map_text(array)
    if _is_list(array.type):
        elements = _text(array.flatten()).fill_null("null")
        return _where_valid(array, "[" + _joined(array, elements) + "]")
    return _scalar_text(pl.Series("v", array), array.type)


def _map_text(array: pa.MapArray) -> pl.Series:
    key, item = array.type.key_type, array.type.item_type
    entries = array.cast(pa.list_(pa.struct([("key", key), ("value", item)])))
    keys, values = entries.flatten().flatten()
    names = _text(keys.cast(pa.string()))
    pairs = names + ":" + _text(values).fill_null("null")
    return _where_valid(array, "{" + _joined(entries, pairs) + "}")


def _objects(names: Sequence[str], columns: Sequence[pl.Series], rows: int) -> pl.Series:
    """One object a row, without the fields that are null."""
    if not columns:
        return pl.Series("v", ["{}"] * rows, dtype=pl.String)
    fields = [
        (json.dumps(name, ensure_ascii=False) + ":" + column).alias(str(number))
        for number, (name, column) in enumerate(zip(names, columns, strict=True))
    ]
    inside = pl.concat_str(pl.all(), separator=",", ignore_nulls=True)
    return pl.DataFrame(fields).select(pl.concat_str(pl.lit("{"), inside, pl.lit("}"))).to_series()


def _joined(lists: pa.Array, elements: pl.Series) -> pl.Series:
    """The texts of each list's elements with commas between them; empty for a null list."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    texts = elements.to_arrow().cast(pa.large_string())
    return pl.Series("v", pa.LargeListArray.from_arrays(offsets, texts)).list.join(",")


def _where_valid(array: pa.Array, texts: pl.Series) -> pl.Series:
    if not array.null_count:
        return texts
    return texts.set(pl.Series(pc.is_null(array)), None)


def _scalar_text(values: pl.Series, kind: pa.DataType) -> pl.Series:
    if _is.is_floating(kind):
        return _number_text(values)
    if _is.is_string(kind) or _is.is_large_string(kind):
        return _quoted(values)
    if _is.is_binary(kind) or _is.is_large_binary(kind):
        return '"' + values.bin.encode("base64") + '"'
    if _is.is_date(kind):
        return values.dt.strftime('"%Y-%m-%d"')
    if _is.is_timestamp(kind) and kind.tz:
        return values.dt.convert_time_zone("UTC").dt.strftime(_INSTANT)
    if _is.is_timestamp(kind):
        return values.dt.strftime(_WALL_CLOCK)
    return values.cast(pl.String)


def _number_text(values: pl.Series) -> pl.Series:
    column = pl.col("v")
    return (
        values.to_frame("v")
        .select(
            pl.when(column.is_nan())
            .then(pl.lit('"NaN"'))
            .when(column.is_infinite() & (column > 0))
            .then(pl.lit('"Infinity"'))
            .when(column.is_infinite())
            .then(pl.lit('"-Infinity"'))
            .otherwise(column.cast(pl.String))
            .alias("v")
        )
        .to_series()
    )


def _quoted(values: pl.Series) -> pl.Series:
    """Strings with quotes and escapes, taken out of an object that polars writes."""
    objects = pl.struct("v").struct.json_encode()
    text = objects.str.slice(_BEFORE_VALUE).str.strip_suffix("}")
    kept = pl.when(pl.col("v").is_not_null()).then(text).alias("v")
    return values.to_frame("v").select(kept).to_series()


def _is_list(kind: pa.DataType) -> bool:
    return bool(_is.is_list(kind) or _is.is_large_list(kind) or _is.is_fixed_size_list(kind))
