"""Base classes of user functions with operator state, over Arrow batches.

PySpark has no operator state, so the names are Flink's (``ProcessFunction``,
``BroadcastProcessFunction``, union list state, broadcast state), in PySpark's style: ``init``
declares states with a handle, values are tuples, and ``close`` releases resources.

A function declares its states in ``init`` and does not use them before ``open``. ``init`` is also
called once on a copy when the stream is described, so that the graph knows the states; that is why
it must not open anything.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import pyarrow as pa

from weir.dataflow.types import SchemaLike

Made = Iterable[pa.RecordBatch] | None
"""What a method emits; None where it emits nothing."""


class ListState(Protocol):
    """Rows that a subtask keeps, in the order they were added."""

    def exists(self) -> bool: ...

    def get(self) -> Iterator[tuple[Any, ...]]: ...

    def put(self, newState: Iterable[tuple[Any, ...]]) -> None:  # noqa: N803
        """These rows in place of all others."""

    def appendValue(self, newState: tuple[Any, ...]) -> None:  # noqa: N802, N803
        """One row more."""

    def appendList(self, newState: Iterable[tuple[Any, ...]]) -> None:  # noqa: N802, N803
        """More rows."""

    def clear(self) -> None: ...

    def toArrow(self) -> pa.Table:  # noqa: N802
        """All rows, as a table."""

    def appendArrow(self, rows: pa.RecordBatch | pa.Table) -> None:  # noqa: N802
        """More rows, without making Python objects of them."""


class BroadcastState(Protocol):
    """A map that is the same in every subtask; only ``processBroadcastBatch`` may change it."""

    def exists(self) -> bool: ...

    def getValue(self, key: tuple[Any, ...]) -> tuple[Any, ...] | None: ...  # noqa: N802

    def containsKey(self, key: tuple[Any, ...]) -> bool: ...  # noqa: N802

    def iterator(self) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]: ...

    def keys(self) -> Iterator[tuple[Any, ...]]: ...

    def values(self) -> Iterator[tuple[Any, ...]]: ...

    def toArrow(self) -> pa.Table:  # noqa: N802
        """The key columns, then the value columns; made anew only after a change."""

    def updateValue(self, key: tuple[Any, ...], value: tuple[Any, ...]) -> None: ...  # noqa: N802

    def removeKey(self, key: tuple[Any, ...]) -> None: ...  # noqa: N802

    def clear(self) -> None: ...


class StateHandle(Protocol):
    """What ``init`` is given to declare states with."""

    def getListState(self, stateName: str, schema: SchemaLike) -> ListState:  # noqa: N802, N803
        """Each row belongs to one subtask; a change of parallelism shares all rows out anew."""

    def getUnionListState(  # noqa: N802
        self,
        stateName: str,  # noqa: N803
        schema: SchemaLike,
    ) -> ListState:
        """After a restore every subtask has the rows of all."""

    def getBroadcastState(  # noqa: N802
        self,
        stateName: str,  # noqa: N803
        userKeySchema: SchemaLike,  # noqa: N803
        valueSchema: SchemaLike,  # noqa: N803
    ) -> BroadcastState:
        """Made from the broadcast stream, the same in every subtask."""

    def deleteIfExists(self, stateName: str) -> None:  # noqa: N802, N803
        """Drop what a checkpoint holds under this name."""


class ProcessFunction:
    """Batches in, batches out, and state that belongs to the subtask: ``stream.process(…)``."""

    def init(self, handle: StateHandle) -> None:
        """Declare states, and nothing else."""

    def open(self, index: int, parallelism: int) -> None:
        """Begin, as the subtask of this index among so many; what was restored is there."""

    def processBatch(self, batch: pa.RecordBatch) -> Made:  # noqa: N802
        """Take a batch of the stream. The number of its rows is not guaranteed."""
        raise NotImplementedError

    def finish(self) -> Made:
        """No row follows: the input has ended, or the job is being drained."""
        return None

    def close(self) -> None:
        """The subtask is gone, for good or to be started anew; called if ``open`` was."""


class BroadcastProcessFunction(ProcessFunction):
    """One with a second input that every subtask gets all of: ``connect(rules.broadcast())``.

    ``processBatch`` may read broadcast state and not change it.
    """

    def processBroadcastBatch(self, batch: pa.RecordBatch) -> Made:  # noqa: N802
        """Take a batch of the broadcast stream, and do with it the same as every other subtask."""
        raise NotImplementedError
