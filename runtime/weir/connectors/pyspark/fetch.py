"""Runs one call of a data source's ``read`` on a separate thread, because user code may block.

The mailbox takes the rows that were yielded so far and never waits for more.
"""

from collections.abc import Callable, Iterable
from threading import Thread

import pyarrow as pa

from weir.connectors.pyspark.bounded_queue import Abandoned, BoundedQueue
from weir.connectors.pyspark.conversion import RowsToBatches
from weir.ports.operators import Batch
from weir.ports.user_code_errors import UserCodeFailed

ROOM_ROWS = 16_384
"""Rows that have been read and wait for the mailbox."""


class Fetch:
    """The rows of one split as they come."""

    def __init__(self, name: str, schema: pa.Schema, read: Callable[[], Iterable[object]]) -> None:
        self._name = name
        self._read = read
        self._batches = RowsToBatches(name, schema)
        self._yielded: BoundedQueue[object] = BoundedQueue(ROOM_ROWS)
        self._ahead: Batch | None = None
        self._failure: UserCodeFailed | None = None
        Thread(target=self._run, name=f"weir-read-{name}", daemon=True).start()

    def take(self, rows: int) -> Batch | None:
        """Up to so many rows of those that are there; raises what user code raised before them."""
        if self._ahead is None:
            self._ahead = self._next(rows)
        batch = self._ahead
        if batch is None:
            return None
        rest = batch.slice(rows)
        self._ahead = rest if rest.num_rows else None
        return batch.slice(0, rows)

    def _next(self, rows: int) -> Batch | None:
        yielded = self._yielded.take(rows)
        if yielded:
            batch = self._batches.batch(yielded)
            return batch if batch.num_rows else None
        if self._yielded.is_over and self._failure is not None:
            raise self._failure
        return None

    @property
    def is_over(self) -> bool:
        """Every row has been taken, and none will come."""
        return self._ahead is None and self._failure is None and self._yielded.is_over

    @property
    def has_more(self) -> bool:
        """There is something to take at once."""
        return self._ahead is not None or not self._yielded.is_empty

    def close(self) -> None:
        """The thread ends with the next row that it brings."""
        self._yielded.abandon()

    def _run(self) -> None:
        count = 0
        try:
            for item in self._read():
                self._yielded.put(item, _size(item))
                count += 1
        except Abandoned:
            return
        except Exception as problem:  # noqa: BLE001 - user code may raise anything
            failure = UserCodeFailed(f"data source {self._name}: read()", f"item {count}")
            failure.__cause__ = problem
            self._failure = failure
        self._yielded.close()


def _size(item: object) -> int:
    return item.num_rows if isinstance(item, pa.RecordBatch) else 1
