"""What operators know of a state backend, and all that they know of it.

A backend keeps the keyed state of one operator's subtask. Operators never ask where a value lives:
in a list of this process, or in a file on the executor's disk. The mailbox's thread calls all of
this; only what a capture hands over is called from an upload's thread, while the state continues to
change (spec S2, S3).

Running aggregates are updated by whole batches, and a backend answers with row numbers. Batch
states keep rows of columns, and take and give whole batches of them. All other states are those of
one key at a time: the operator announces the keys of a batch with ``prefetch``, moves to a key with
``seek``, uses the states, and calls ``settle`` where something was taken away.

What event time makes obsolete is found by its time, in portions: the cost is that of what has
expired, never of what is kept. Nothing disappears by itself, because an operator may have to emit
it first.

Files are the same for every backend: Arrow files by key group, so one backend restores what another
wrote to a savepoint.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.core.changelog import Position
from weir.core.ids import CheckpointId, Millis
from weir.ports.operators import Batch, Captured, RestoredState, TaskInfo

Key: TypeAlias = tuple[object, ...]
Row: TypeAlias = tuple[object, ...]
RowNumbers = npt.NDArray[np.int64]

TIMERS = "$timers"
"""The name of the timers' file; no user's state can have it."""

AGGREGATES_FILE = "aggregates"
"""The name of the file of running aggregates."""


class TimeMode(StrEnum):
    """The time that timers use, as PySpark names it."""

    NONE = "None"
    PROCESSING_TIME = "ProcessingTime"
    EVENT_TIME = "EventTime"


class Rows(Protocol):
    """The declared fields of a state's value, or of a map's user key."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def freeze(self) -> Callable[[Any], Row]:
        """Checks a user's row and makes it immutable."""

    @property
    def thaw(self) -> Callable[[Any], Row] | None:
        """Makes the user's own copy of a row; None where rows are immutable as they are."""


class Cursor:
    """The key that is being worked on, and the time at which."""

    __slots__ = ("may_be_empty", "now")

    def __init__(self) -> None:
        self.may_be_empty = False
        """Something was taken away from the key, or nothing was ever put in: settle it."""
        self.now = Millis(0)
        """Values with a time to live expire by it; the operator sets it, once for each turn."""


class State(Protocol):
    """A state of each key, as its files describe it."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The columns of its files beside the key's."""


class ValueState(State, Protocol):
    """One row for each key."""

    def exists(self) -> bool: ...
    def get(self) -> Row | None: ...
    def update(self, newValue: Row) -> None: ...  # noqa: N803 - users may name it, as in PySpark
    def clear(self) -> None: ...


class ListState(State, Protocol):
    """Any number of rows for each key, in the order in which they came."""

    def exists(self) -> bool: ...
    def get(self) -> Iterator[Row]:
        """The rows of this moment: what is appended later does not show up."""

    def put(self, rows: Sequence[Row]) -> None: ...
    def append(self, row: Row) -> None: ...
    def extend(self, rows: Sequence[Row]) -> None: ...
    def clear(self) -> None: ...


class MapState(State, Protocol):
    """Rows by user key, for each key."""

    def exists(self) -> bool: ...
    def value(self, key: Row) -> Row | None: ...
    def contains(self, key: Row) -> bool: ...
    def update(self, key: Row, value: Row) -> None: ...
    def items(self) -> Iterator[tuple[Row, Row]]:
        """The entries of this moment, even if the map changes meanwhile."""

    def remove(self, key: Row) -> None: ...
    def clear(self) -> None: ...


class Timers(State, Protocol):
    """The timers of the keys; a key and a time make one timer."""

    def register(self, expiry: int) -> None: ...
    def delete(self, expiry: int) -> None: ...
    def of_key(self) -> Iterator[int]:
        """The times of the key at hand, the earliest first."""

    def earliest(self) -> Millis | None: ...
    def is_due(self, now: Millis) -> bool: ...
    def seek_earliest(self) -> tuple[Key, Millis]:
        """Move to the key whose timer comes first; there must be one."""


class Aggregation(Protocol):
    """An aggregation that was asked for, such as ``sum`` of ``amount``."""

    @property
    def function(self) -> str: ...

    @property
    def column(self) -> str: ...


class AggregateState(Protocol):
    """Running aggregates by key, updated by whole batches.

    A row number is a small number that stands for a key until the next flush.
    """

    @property
    def size(self) -> int:
        """All row numbers are below."""

    def update(self, batch: Batch) -> RowNumbers:
        """Take the rows in. Returns the row number of each row's key."""

    def rows(self, row_numbers: RowNumbers) -> list[pa.Array]:
        """The key columns, the namespace if there is one, and the aggregates as they stand."""

    def remove(self, row_numbers: RowNumbers) -> None:
        """Forget the keys with these numbers, and use their room again.

        The numbers must not be used afterwards. A key that comes again begins afresh.
        """

    def expired(self, until: Millis, most: int) -> RowNumbers:
        """Some keys whose namespace is at most that: none only if there are no more.

        They are the same ones until they are removed. Tumbling and sliding windows emit these when
        the watermark has passed their end. They count for ``needs_flush`` as updated rows do.
        """

    def merge(self, sources: Sequence[pa.Array], targets: Sequence[pa.Array]) -> RowNumbers:
        """Move the aggregates of each source into those of the target beside it.

        Sources and targets are columns of keys with the namespace; sources are distinct, and none
        is a target. Session windows that grow together need it. Returns the targets' row numbers;
        the sources begin afresh if they come again.
        """


class Found(NamedTuple):
    """What there is of some keys."""

    is_present: npt.NDArray[np.bool_]
    """For each key that was asked for."""
    rows: Batch
    """Of the keys that are present, in the order of these."""


class Matches(NamedTuple):
    """Rows beside the keys that were asked for; a key may have none, and a row may come twice."""

    positions: npt.NDArray[np.int64]
    """Which key, for each row; in ascending order."""
    rows: Batch


class BatchValueState(State, Protocol):
    """One row of columns for each key; ``dropDuplicates`` keeps in it what it has seen.

    Batches have the key columns and the declared ones under their names. Of equal keys in one
    batch, the last counts.
    """

    def get(self, keys: Batch) -> Found: ...
    def put(self, rows: Batch) -> None: ...
    def remove(self, rows: Batch) -> None:
        """Forget the rows with these keys, those that are there."""

    def expired(self, until: Millis, most: int) -> Batch:
        """Some rows whose time is at most that, the same ones until they are removed or put later.

        There are none only if there are no more.
        """


class BatchListState(State, Protocol):
    """Any number of rows for each key; joins keep the rows of a side in it.

    Rows that the state hands out have a column more, ``state.ordinal``, which tells apart the rows
    of a key. ``put`` and ``remove`` take such rows back.
    """

    def append(self, rows: Batch) -> None: ...
    def match(self, keys: Batch) -> Matches:
        """The rows with these keys, where null is a key like others."""

    def put(self, rows: Batch) -> None:
        """Replace them, such as with the mark that an outer join has emitted them."""

    def remove(self, rows: Batch) -> None:
        """Forget those that are there."""

    def expired(self, until: Millis, most: int) -> Batch:
        """As of a ``BatchValueState``."""


class KeyedBackend(Protocol):
    """The keyed state of one subtask of an operator."""

    @property
    def cursor(self) -> Cursor: ...

    # -- declarations, before ``restore``

    def aggregates(
        self, aggregates: Sequence[Aggregation], schema: pa.Schema, namespace: str | None = None
    ) -> AggregateState:
        """For rows of this schema; refuses what cannot be aggregated.

        A namespace is a column of 64-bit integers or timestamps, never null, that is part of the
        key and not of its key group, such as the end of a window.
        """

    def batch_value_state(
        self, name: str, values: Sequence[pa.Field], time: str | None = None
    ) -> BatchValueState:
        """Rows expire by the time: a value of 64-bit integers or timestamps, never null."""

    def batch_list_state(
        self, name: str, values: Sequence[pa.Field], time: str | None = None
    ) -> BatchListState: ...

    def value_state(self, name: str, rows: Rows, ttl_ms: int | None = None) -> ValueState: ...
    def list_state(self, name: str, rows: Rows, ttl_ms: int | None = None) -> ListState: ...
    def map_state(
        self, name: str, user_keys: Rows, rows: Rows, ttl_ms: int | None = None
    ) -> MapState: ...
    def timers(self, mode: TimeMode) -> Timers: ...
    def drop(self, name: str) -> None:
        """Forget a state and all that is in it; no later snapshot has it."""

    # -- one key at a time

    def prefetch(self, keys: Sequence[Key]) -> None:
        """These keys are next; a backend on disk reads them all at once."""

    def seek(self, key: Key) -> None:
        """Let the states refer to this key from now on."""

    def settle(self) -> None:
        """The work on the key is done: forget the key if nothing is left of it."""

    def keys_with(self, name: str) -> list[Key]:
        """The keys that have something in this state."""

    def expire(self) -> None:
        """Free some of the values that have expired by the cursor's time, a bounded number."""

    # -- snapshots

    def needs_flush(self) -> bool:
        """Whether row numbers must be given back soon: emit what is buffered, then go on."""

    def flushed(self) -> None:
        """No row number that was handed out is used any more."""

    def capture(self, checkpoint: CheckpointId) -> Captured:
        """The state as of now. Must not grow with the state."""

    def restore(self, restored_state: RestoredState) -> list[str]:
        """Begin with this; returns the names of states that nothing has declared."""

    def completed(self, checkpoint: CheckpointId) -> None:
        """No snapshot builds on an older one any more."""

    def truncated(self, position: Position) -> None:
        """The changelog asks for no changes since an earlier position."""

    def close(self) -> None:
        """The subtask has ended."""


BackendFactory: TypeAlias = Callable[[TaskInfo, Sequence[pa.Field]], KeyedBackend]
"""Makes the backend of a subtask, given its key columns; refuses types that cannot be keys."""
