"""Turns Arrow batches into pandas frames, key by key, and yielded frames into batches.

As in ``transformWithStateInPandas`` a frame has all columns of the input, its index begins at zero,
and yielded columns count by name where they have names. The conversion is PySpark's own, so
timestamps are naive, in UTC and of nanoseconds, maps and structs are dicts; as there, columns of
short numbers become columns of long ones.

A frame costs many microseconds whatever it holds, so a batch is converted once and then cut.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql.conversion import ArrowBatchTransformer

from weir.connectors.pyspark.rows import RowMismatch
from weir.ports.keyed_state import Key
from weir.ports.operators import Batch
from weir.state.columns import columns_of, keys_of


class FrameShape:
    """One frame of all rows of a key in; frames out."""

    def __init__(self, keys: Sequence[str], output: pa.Schema) -> None:
        self._keys = keys
        self._output = output

    def grouped(self, batch: Batch) -> dict[Key, list[pd.DataFrame]]:
        """A frame for each key, its rows as they came, the keys by their first row."""
        codes: dict[Key, int] = {}
        keys = keys_of([batch.column(key) for key in self._keys])
        code_of_row = np.array([codes.setdefault(key, len(codes)) for key in keys])
        order = np.argsort(code_of_row, kind="stable")
        frame = _frame(batch.take(pa.array(order)))
        ends = np.cumsum(np.bincount(code_of_row)).tolist()
        begins = [0, *ends[:-1]]
        return {
            key: [frame.iloc[begin:end].reset_index(drop=True)]
            for key, begin, end in zip(codes, begins, ends, strict=True)
        }

    def batches(self, yielded: Sequence[object]) -> list[Batch]:
        """What a processor yielded, as one batch; raises RowMismatch."""
        frames = [frame for frame in map(self._checked, yielded) if len(frame)]
        if not frames:
            return []
        arrays = [self._column(frames, at) for at in range(len(self._output))]
        return [pa.RecordBatch.from_arrays(arrays, schema=self._output)]

    def _checked(self, frame: object) -> pd.DataFrame:
        if not isinstance(frame, pd.DataFrame):
            raise RowMismatch(f"expected a pandas DataFrame, not a {type(frame).__name__}", frame)
        missing = [name for name in self._output.names if name not in frame.columns]
        if missing and len(frame.columns) and isinstance(frame.columns[0], str):
            raise RowMismatch(f"the frame has no column {missing[0]!r}, which was declared", frame)
        if len(frame) and len(frame.columns) < len(self._output):
            raise RowMismatch(f"the frame has less than {len(self._output)} columns", frame)
        return frame

    def _column(self, frames: Sequence[pd.DataFrame], at: int) -> pa.Array:
        field = self._output.field(at)
        values: list[object] = []
        for frame in frames:
            series = frame[field.name] if field.name in frame.columns else frame.iloc[:, at]
            values += series.tolist()
        try:
            return pa.array(values, field.type, from_pandas=True)
        except (TypeError, ValueError, OverflowError, NotImplementedError) as error:
            reason = f"column {field.name!r} was declared as {field.type}: {error}"
            raise RowMismatch(reason, frames[0]) from error


def frame_of(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pd.DataFrame:
    """Rows of state as one frame."""
    return _frame(pa.RecordBatch.from_arrays(columns_of(rows, list(schema)), schema=schema))


def _frame(batch: Batch) -> pd.DataFrame:
    columns = ArrowBatchTransformer.to_pandas(_with_long_numbers(batch), timezone="UTC")
    return pd.concat(columns, axis=1)


def _with_long_numbers(batch: Batch) -> Batch:
    fields = [field.with_type(_long(field.type)) for field in batch.schema]
    return batch.cast(pa.schema(fields))


def _long(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_signed_integer(kind):
        return pa.int64()
    return pa.float64() if pa.types.is_floating(kind) else kind
