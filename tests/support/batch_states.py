"""An operator's subtasks with window sums and batch states, beside dictionaries that do the same.

Rows go to the subtask that has their key group, as on a hashed edge, so a restore may use another
number of subtasks, and another backend.
"""

import copy

import numpy as np
import pyarrow as pa

from captured_state import MAX_PARALLELISM
from weir.core.ids import CheckpointId, Millis, OperatorId, SubtaskId
from weir.core.key_groups import range_of
from weir.dataflow.physical import Aggregate
from weir.ports.operators import RestoredState, TaskInfo
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


def a_batch(schema, rows):
    columns = [pa.array(list(values), field.type) for values, field in zip_columns(schema, rows)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def zip_columns(schema, rows):
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return zip(columns, schema, strict=True)


def rows_of(columns):
    return list(zip(*[column.to_pylist() for column in columns], strict=True))


class Subtask:
    """One backend with all states that are used by batches."""

    def __init__(self, make, index=0, parallelism=1, *, seen=SEEN):
        self.groups = range_of(index, parallelism, MAX_PARALLELISM)
        place = TaskInfo(
            SubtaskId(OperatorId("op"), index),
            parallelism,
            MAX_PARALLELISM,
            1,
            1,
            lambda: Millis(0),
            is_incremental=True,
        )
        self.backend = make(place, KEYS)
        self.sums = self.backend.aggregates(SUMS, WINDOWED, "window_end")
        self.seen = self.backend.batch_value_state("seen", seen, "at")
        self.side = self.backend.batch_list_state("side", SIDE, "at")

    def own(self, batch):
        groups = key_groups(batch, KEY_NAMES, MAX_PARALLELISM)
        is_own = (groups >= self.groups.first) & (groups <= self.groups.last)
        return batch.filter(pa.array(is_own))

    def update(self, rows):
        row_numbers = self.sums.update(self.own(a_batch(WINDOWED, rows)))
        found = rows_of(self.sums.rows(row_numbers))
        self.flush()
        return found

    def flush(self):
        self.backend.needs_flush()
        self.backend.flushed()

    def expired_windows(self, until, most=PORTION):
        """Emitted, then removed."""
        row_numbers = self.sums.expired(until, most)
        assert len(set(row_numbers.tolist())) == len(row_numbers) <= most
        found = rows_of(self.sums.rows(row_numbers))
        self.sums.remove(row_numbers)
        self.flush()
        return found

    def merge(self, sources, targets):
        pairs = [self.own(a_batch(WINDOWS, rows)).columns for rows in (sources, targets)]
        found = rows_of(self.sums.rows(self.sums.merge(*pairs)))
        self.flush()
        return found

    def write(self, checkpoint, base=None):
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

    def __init__(self, make, parallelism=1):
        self.parts = [Subtask(make, index, parallelism) for index in range(parallelism)]

    def restore(self, files, checkpoint):
        for part in self.parts:
            keyed = [
                (part.groups, data)
                for groups, data in files
                if groups.first <= part.groups.last and part.groups.first <= groups.last
            ]
            state = RestoredState(keyed=keyed, checkpoint=CheckpointId(checkpoint))
            assert part.backend.restore(state) == []
        return self

    def close(self):
        for part in self.parts:
            part.backend.close()


class Model:
    """What the states hold."""

    def __init__(self):
        self.sums, self.seen, self.side = {}, {}, []

    def copy(self):
        return copy.deepcopy(self)

    def update(self, rows):
        for *key, end, amount in rows:
            total, most = self.sums.get((*key, end), (None, None))
            if amount is not None:
                total = (total or 0) + amount
                most = amount if most is None else max(most, amount)
            self.sums[*key, end] = (total, most)

    def merge(self, source, target):
        amounts = [self.sums.pop(source, (None, None)), self.sums.get(target, (None, None))]
        totals = [total for total, _ in amounts if total is not None]
        mosts = [most for _, most in amounts if most is not None]
        self.sums[target] = (sum(totals) if totals else None, max(mosts) if mosts else None)


def keys_batch(keys):
    return a_batch(pa.schema(KEYS), keys)


def no_rows():
    return np.empty(0, np.int64)
