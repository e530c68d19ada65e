"""An operator's subtasks with window sums and batch states, beside dictionaries that do the same.

Rows go to the subtask that has their key group, as on a hashed edge, so a restore may use another
number of subtasks, and another backend.
"""

import copy
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from captured_state import MAX_PARALLELISM, File
from weir.core.ids import CheckpointId, Millis, OperatorId, SubtaskId
from weir.core.key_groups import range_of
from weir.core.snapshots import KeyGroupRange
from weir.dataflow.physical import Aggregate
from weir.ports.keyed_state import BackendFactory
from weir.ports.operators import Batch, RestoredState, TaskInfo
from weir.wire.keys import key_groups

KEYS = (pa.field("word", pa.string()), pa.field("n", pa.int32()))
KEY_NAMES = [field.name for field in KEYS]
WINDOWED = pa.schema([*KEYS, ("window_end", pa.int64()), ("amount", pa.int64())])
WINDOWS = pa.schema([*KEYS, ("window_end", pa.int64())])
SUMS = (Aggregate("sum", "amount", "total"), Aggregate("max", "amount", "most"))
SEEN = (pa.field("at", pa.timestamp("us")), pa.field("x", pa.float64()))
SIDE = (
    pa.field("at", pa.int64()),
    pa.field("text", pa.string()),
    pa.field("tags", pa.list_(pa.struct([("t", pa.string()), ("p", pa.float32())]))),
    pa.field("matched", pa.bool_()),
)
PORTION = 3

Row = tuple[Any, ...]
Written = tuple[bool, KeyGroupRange, pa.Buffer]
"""Whether it is a layer over what was written before, and the file."""


def a_batch(schema: pa.Schema, rows: Sequence[Row]) -> Batch:
    values = list(zip(*rows, strict=True)) or [()] * len(schema)
    columns = [
        pa.array(list(column), field.type) for column, field in zip(values, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def rows_of(columns: Sequence[pa.Array]) -> list[Row]:
    return list(zip(*[column.to_pylist() for column in columns], strict=True))


class Subtask:
    """One backend with all states that are used by batches."""

    def __init__(self, make: BackendFactory, index: int = 0, parallelism: int = 1) -> None:
        self.groups = range_of(index, parallelism, MAX_PARALLELISM)
        place = TaskInfo(
            SubtaskId(OperatorId("op"), index),
            parallelism,
            MAX_PARALLELISM,
            1,
            1,
            lambda: Millis(0),
            is_incremental=True,
            is_logged=True,
        )
        self.backend = make(place, KEYS)
        self.sums = self.backend.aggregates(SUMS, WINDOWED, "window_end")
        self.seen = self.backend.batch_value_state("seen", SEEN, "at")
        self.side = self.backend.batch_list_state("side", SIDE, "at")

    def own(self, batch: Batch) -> Batch:
        groups = key_groups(batch, KEY_NAMES, MAX_PARALLELISM)
        is_own = (groups >= self.groups.first) & (groups <= self.groups.last)
        return batch.filter(pa.array(is_own))

    def update(self, rows: Sequence[Row]) -> list[Row]:
        row_numbers = self.sums.update(self.own(a_batch(WINDOWED, rows)))
        found = rows_of(self.sums.rows(row_numbers))
        self.flush()
        return found

    def flush(self) -> None:
        """As an operator does that has emitted what changed."""
        self.backend.flushed()

    def expired_windows(self, until: int, most: int = PORTION) -> list[Row]:
        """Emitted, then removed."""
        row_numbers = self.sums.expired(Millis(until), most)
        assert len(set(row_numbers.tolist())) == len(row_numbers) <= most
        found = rows_of(self.sums.rows(row_numbers))
        self.sums.remove(row_numbers)
        self.flush()
        return found

    def merge(self, sources: Sequence[Row], targets: Sequence[Row]) -> list[Row]:
        merged, into = (self.own(a_batch(WINDOWS, rows)).columns for rows in (sources, targets))
        found = rows_of(self.sums.rows(self.sums.merge(merged, into)))
        self.flush()
        return found

    def write(self, checkpoint: int, base: int | None = None) -> dict[str, Written]:
        """The files of a capture, by the name of the state: whole ones, or layers over a base."""
        captured = self.backend.capture(CheckpointId(checkpoint))
        files = {}
        for piece in captured.keyed:
            layer = None if base is None else piece.since(CheckpointId(base))
            files[piece.name] = (layer is not None, piece.groups, layer or piece.write())
        captured.release()
        return files


class Subtasks:
    """All subtasks of the operator."""

    def __init__(self, make: BackendFactory, parallelism: int = 1) -> None:
        self.parts = [Subtask(make, index, parallelism) for index in range(parallelism)]

    def restore(self, files: Sequence[File], checkpoint: int) -> "Subtasks":
        for part in self.parts:
            keyed = [
                (part.groups, data)
                for groups, data in files
                if groups.first <= part.groups.last and part.groups.first <= groups.last
            ]
            state = RestoredState(keyed=keyed, checkpoint=CheckpointId(checkpoint))
            assert part.backend.restore(state) == []
        return self

    def close(self) -> None:
        for part in self.parts:
            part.backend.close()


class Model:
    """What the states hold."""

    def __init__(self) -> None:
        self.sums: dict[Row, tuple[int | None, int | None]] = {}
        self.seen: dict[Row, Row] = {}
        self.side: list[Row] = []

    def copy(self) -> "Model":
        return copy.deepcopy(self)

    def update(self, rows: Sequence[Row]) -> None:
        for *key, end, amount in rows:
            total, most = self.sums.get((*key, end), (None, None))
            if amount is not None:
                total = (total or 0) + amount
                most = amount if most is None else max(most, amount)
            self.sums[*key, end] = (total, most)

    def merge(self, source: Row, target: Row) -> None:
        amounts = [self.sums.pop(source, (None, None)), self.sums.get(target, (None, None))]
        totals = [total for total, _ in amounts if total is not None]
        mosts = [most for _, most in amounts if most is not None]
        self.sums[target] = (sum(totals) if totals else None, max(mosts) if mosts else None)


def keys_batch(keys: Sequence[Row]) -> Batch:
    return a_batch(pa.schema(KEYS), keys)
