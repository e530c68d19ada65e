"""Hands the rows of an initial state to a processor: each key's once, before its first input row.

The rows are state themselves, a list for each key in the snapshot that a new job begins with. A
key's rows are handed over and forgotten in one turn, so a checkpoint holds either them or what the
processor made of them: a failure repeats what was undone, and a restored job finds none. Keys that
get no input are handled too, a bounded number at a time.

This module does not know where that snapshot comes from.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from weir.connectors.pyspark.pandas_frames import frame_of
from weir.connectors.pyspark.rows import row_maker, rows_of
from weir.dataflow.physical import RowsAs
from weir.ports.keyed_state import Key, KeyedBackend, Row
from weir.state.row_types import RowType

INITIAL_ROWS = "$initial"
"""The name of the state; no user's state can have it."""

Given: TypeAlias = Callable[[Sequence[Row]], list[Any]]


class InitialRows:
    """What waits for ``handleInitialState``."""

    def __init__(self, backend: KeyedBackend, schema: pa.Schema, rows_as: RowsAs) -> None:
        row_type = RowType("the initial state", schema, row_maker)
        self.state = backend.list_state(INITIAL_ROWS, row_type)
        self.waiting: dict[Key, None] = {}
        """The keys whose turn has not come, in any order."""
        self._backend = backend
        self._given = _given(schema, rows_as)

    def restored(self) -> None:
        """The state is as it was in the snapshot."""
        self.waiting = dict.fromkeys(self._backend.keys_with(INITIAL_ROWS))
        self._drop_if_used()

    def take(self, key: Key) -> list[Any]:
        """What the processor is to be given for the key, call by call; it waits no longer."""
        del self.waiting[key]
        self._backend.seek(key)
        rows = list(self.state.get())
        self.state.clear()
        self._drop_if_used()
        return self._given(rows)

    def _drop_if_used(self) -> None:
        """No snapshot needs the state when no key waits any more."""
        if not self.waiting:
            self._backend.drop(INITIAL_ROWS)


def _given(schema: pa.Schema, rows_as: RowsAs) -> Given:
    """As in PySpark: a row for each call, or a frame with all rows of the key."""
    if rows_as is RowsAs.PANDAS:
        return lambda rows: [frame_of(rows, schema)]
    return lambda rows: rows_of(rows, schema)
