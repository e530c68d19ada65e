"""Turns Arrow batches into PySpark rows, key by key, and rows that a processor yields into batches.

This is the path of every single row through Python, so all that can be done for a batch at once is:
columns become lists in one call each, rows share a class that knows their names, and output is
turned into columns once.

As in ``transformWithState`` rows are yielded by name where they have names; a name that is missing
becomes null. Plain tuples count by position.
"""

from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import Row

from weir.ports.keyed_state import Key
from weir.ports.operators import Batch
from weir.state.columns import columns_of, keys_of

_WITHOUT_FIELDS: list[str] = []


class RowMismatch(TypeError):
    """A row that a processor yielded is not of the declared output."""

    def __init__(self, reason: str, row: object) -> None:
        super().__init__(reason)
        self.row = row


def row_maker(names: Sequence[str]) -> Callable[[Iterable[object]], Row]:
    """What makes rows with these field names of their values.

    Fields are found as those of a named tuple are, which is faster than ``Row.__getattr__``; names
    that mean something else on a tuple, such as ``count``, keep that meaning.
    """
    places = [f"at{at}" for at in range(len(names))]
    getters = namedtuple("Getters", places)  # type: ignore[misc]  # noqa: PYI024 - made at run time
    named = {
        name: getattr(getters, place)
        for name, place in reversed(list(zip(names, places, strict=True)))
        if not hasattr(Row, name) and not name.startswith("__")
    }
    row_class = type("Row", (Row,), {"__fields__": list(names), **named})
    return partial(tuple.__new__, row_class)


def rows_of(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> list[Row]:
    """Rows of state with the values that the same rows have when they come as input."""
    columns = columns_of(rows, list(schema))
    values = zip(*[column.to_pylist() for column in columns], strict=True)
    return list(map(row_maker(schema.names), values))


class RowShape:
    """Rows in, rows out."""

    def __init__(self, keys: Sequence[str], inputs: pa.Schema, output: pa.Schema) -> None:
        self._keys = keys
        self._make_row = row_maker(inputs.names)
        self._output = output
        self._fields = list(output)
        self._names: list[str] = output.names

    def grouped(self, batch: Batch) -> dict[Key, list[Row]]:
        """The rows of each key as they came, the keys by their first row."""
        rows = map(
            self._make_row, zip(*[column.to_pylist() for column in batch.columns], strict=True)
        )
        found: dict[Key, list[Row]] = {}
        for key, row in zip(keys_of([batch.column(key) for key in self._keys]), rows, strict=True):
            others = found.get(key)
            if others is None:
                found[key] = [row]
            else:
                others.append(row)
        return found

    def batches(self, yielded: Sequence[object]) -> list[Batch]:
        """What a processor yielded, as one batch; raises RowMismatch."""
        if not yielded:
            return []
        try:
            return [self._batch(yielded)]
        except (TypeError, ValueError, OverflowError, NotImplementedError) as error:
            raise self._mismatch(yielded, error) from error

    def _batch(self, yielded: Sequence[object]) -> Batch:
        columns = columns_of(self._positional(yielded), self._fields)
        return pa.RecordBatch.from_arrays(columns, schema=self._output)

    def _positional(self, yielded: Sequence[object]) -> Sequence[tuple[object, ...]]:
        shapes = [getattr(row, "__fields__", None) for row in yielded]
        if shapes.count(self._names) == len(shapes):
            return yielded  # type: ignore[return-value]  # rows are tuples
        return [self._in_order(row) for row in yielded]

    def _in_order(self, row: object) -> tuple[object, ...]:
        if isinstance(row, dict):
            return tuple([row.get(name) for name in self._names])
        if not isinstance(row, tuple):
            raise TypeError(f"expected a Row, a tuple or a dict, not a {type(row).__name__}")
        fields = getattr(row, "__fields__", _WITHOUT_FIELDS)
        if not fields or fields == self._names:
            return row
        by_name = dict(zip(fields, row, strict=True))
        return tuple([by_name.get(name) for name in self._names])

    def _mismatch(self, yielded: Sequence[object], error: Exception) -> RowMismatch:
        """The first row that does not fit on its own; all of them together did not."""
        declared = ", ".join(f"{field.name} {field.type}" for field in self._output)
        for row in yielded:
            try:
                self._batch([row])
            except (TypeError, ValueError, OverflowError, NotImplementedError) as reason:
                return RowMismatch(f"the declared output is ({declared}): {reason}", row)
        return RowMismatch(f"the declared output is ({declared}): {error}", yielded[0])
