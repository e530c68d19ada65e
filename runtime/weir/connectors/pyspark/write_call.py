"""One call of a data source's ``write``: all rows of a subtask between two barriers.

PySpark's writers pull their rows, and may wait as they like, so each call runs on the sink's own
thread and the mailbox hands batches over. When the barrier comes the rows end, and what the call
returns is the transaction's commit message.
"""

from collections.abc import Callable
from concurrent.futures import Future

from pyspark.sql.datasource import (
    DataSourceStreamArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from weir.connectors.pyspark.bounded_queue import Abandoned, BoundedQueue
from weir.connectors.pyspark.conversion import rows_of, shown
from weir.ports.operators import Batch
from weir.ports.user_code_errors import UserCodeFailed

ROOM_ROWS = 65_536
"""Rows that wait for the writer before the mailbox waits too."""


class WriteCall:
    """From the first row of a transaction to its message."""

    def __init__(self, sink: str, name: str, first: Batch) -> None:
        self._sink = sink
        self.name = name
        """Of the transaction."""
        self._first = shown(first.slice(0, 1).to_pylist()[0])
        self._rows: BoundedQueue[Batch] = BoundedQueue(ROOM_ROWS)
        self._message: Future[WriterCommitMessage | None] = Future()

    # -- the mailbox's side

    def add(self, batch: Batch) -> None:
        """Waits while the writer is slow; raises what the writer raised."""
        try:
            self._rows.put(batch, batch.num_rows)
        except Abandoned:
            self.check()

    def end(self) -> None:
        self._rows.close()

    def give_up(self) -> None:
        """The writer sees its iterator fail, as it would if its task were killed."""
        self._rows.abandon()

    def check(self) -> None:
        """Raise what the writer raised, if it has."""
        if self._message.done():
            self._message.result()

    @property
    def has_returned(self) -> bool:
        return self._message.done()

    def message(self) -> WriterCommitMessage | None:
        """Wait for it; beside the mailbox."""
        return self._message.result()

    # -- the writer's side

    def run(
        self,
        make: Callable[[], DataSourceStreamWriter],
        struct: StructType,
        on_failure: Callable[[str], None],
    ) -> None:
        """Before the failure of a call is known, and may end the process, it is written down."""
        try:
            message = self._written(make(), struct)
        except Exception as problem:  # noqa: BLE001 - user code may raise anything
            self._rows.abandon()
            on_failure(self.name)
            failure = UserCodeFailed(
                f"data source {self._sink}: write()", f"rows that begin with {self._first}"
            )
            failure.__cause__ = problem
            self._message.set_exception(failure)
        else:
            self._message.set_result(message)
        finally:
            self._rows.abandon()

    def _written(
        self, writer: DataSourceStreamWriter, struct: StructType
    ) -> WriterCommitMessage | None:
        if isinstance(writer, DataSourceStreamArrowWriter):
            message = writer.write(iter(self._rows))
        else:
            message = writer.write(row for batch in self._rows for row in rows_of(batch, struct))
        if message is not None and not isinstance(message, WriterCommitMessage):
            raise TypeError(f"write() returned a {type(message).__name__}, no WriterCommitMessage")
        return message
