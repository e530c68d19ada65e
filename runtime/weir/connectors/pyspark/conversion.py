"""Turns what a data source reads into Arrow batches, and batches into the rows that a writer gets.

The conversions are PySpark's own, so nested values, dates and decimals come out as they do there:
named rows count by name, tuples and lists by position, and a source may give whole batches instead.
"""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.conversion import ArrowTableToRowsConversion, LocalDataToArrowConversion
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from weir.ports.operators import Batch
from weir.ports.user_code_errors import UserCodeFailed

SHOWN = 200


def struct_of(schema: pa.Schema) -> StructType:
    """The schema in PySpark's words."""
    return from_arrow_schema(schema)


def shown(value: object) -> str:
    """Short enough for a log line."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


class RowsToBatches:
    """What one source yields, as batches of its schema."""

    def __init__(self, name: str, schema: pa.Schema) -> None:
        self._name = name
        self._schema = schema
        self._struct = struct_of(schema)
        self._names: list[str] = schema.names

    def batch(self, yielded: Sequence[object]) -> Batch:
        """All of it as one batch; whatever does not fit is the source's failure."""
        if isinstance(yielded[0], pa.RecordBatch):
            return pa.concat_batches([self._conformed(batch) for batch in yielded])
        try:
            return self._converted(yielded)
        except Exception:  # whatever a value's own methods or PySpark raise
            self._blame(yielded)
            raise

    def _converted(self, rows: Sequence[object]) -> Batch:
        ordered = [self._in_order(row) for row in rows]
        table = LocalDataToArrowConversion.convert(ordered, self._struct, use_large_var_types=False)
        return table.cast(self._schema).combine_chunks().to_batches()[0]

    def _in_order(self, row: object) -> tuple[object, ...]:
        if not isinstance(row, tuple | list):
            raise TypeError(
                f"expected a tuple, a list, a Row or a RecordBatch, not a {type(row).__name__}"
            )
        fields = getattr(row, "__fields__", None)
        if fields is None or fields == self._names:
            return tuple(row)
        if set(fields) != set(self._names):
            raise ValueError(f"expected the fields {self._names}, not {fields}")
        return tuple(row[fields.index(name)] for name in self._names)

    def _conformed(self, given: object) -> Batch:
        if not isinstance(given, pa.RecordBatch):
            raise self._failure(f"{shown(given)}, which is no RecordBatch as those before it were")
        try:
            return given.select(self._names).cast(self._schema)
        except (KeyError, ValueError, pa.ArrowException) as error:
            raise self._failure(f"a batch of {shown(given.schema.to_string())}") from error

    def _blame(self, rows: Sequence[object]) -> None:
        """Raise for the first row that does not fit by itself."""
        for row in rows:
            try:
                self._converted([row])
            except Exception as error:
                raise self._failure(f"row {shown(row)}") from error

    def _failure(self, row: str) -> UserCodeFailed:
        return UserCodeFailed(f"data source {self._name}: what read() yields", row)


def rows_of(batch: Batch, struct: StructType) -> list[Row]:
    rows: list[Row] = ArrowTableToRowsConversion.convert(pa.Table.from_batches([batch]), struct)
    return rows
