"""Running aggregates in RocksDB's own files come back at every parallelism."""

import numpy as np
import pyarrow as pa
import pytest

from captured_state import MAX_PARALLELISM
from native_checkpoints import NativeSubtask, a_native_place, assigned, storage_in
from weir.core.ids import CheckpointId, EdgeId, SubtaskId
from weir.core.key_groups import range_of
from weir.dataflow.physical import Aggregate, AggregateHead
from weir.slot.aggregate import AggregateOperator
from weir.wire.keys import key_groups

ROWS = pa.schema([("key", pa.int64()), ("n", pa.int64())])
HEAD = AggregateHead(
    ("key",),
    (Aggregate("sum", "n", "total"), Aggregate("min", "n", "least")),
    ROWS,
    pa.schema([("key", pa.int64()), ("total", pa.int64()), ("least", pa.int64())]),
)


def sums(operators):
    found = {}
    for operator in operators:
        for batch in operator.flush():
            for key, *numbers in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                found[key] = numbers
    return found


def a_batch(keys, n):
    return pa.RecordBatch.from_arrays(
        [pa.array(keys, pa.int64()), pa.array([n] * len(keys), pa.int64())], schema=ROWS
    )


def subtask_of(operator, place, storage, tmp_path, attempt):
    return NativeSubtask(operator, place, storage, tmp_path, attempt)


@pytest.mark.parametrize("new", range(1, 9))
def test_sums_restore_at_every_parallelism(rocksdb_backends, tmp_path, new):
    """S2 S4 S11: three generations, with keys that only some of them changed."""
    place, storage = a_native_place(), storage_in(tmp_path)
    operator = AggregateOperator(HEAD, place, rocksdb_backends)
    subtask = subtask_of(operator, place, storage, tmp_path, 1)
    keys = list(range(500))
    sizes = []
    for number, some in enumerate((keys, keys[::50], keys[1::50]), 1):
        list(operator.process(EdgeId("in"), a_batch(some, number)))
        list(operator.flush())
        snapshot = subtask.checkpoint(number, CheckpointId(number - 1))
        sizes.append(subtask.written_bytes)
        subtask.completed(number)
    assert max(sizes[1:]) < sizes[0]
    expected = {}
    for key in keys:
        added = [n for n, some in ((2, keys[::50]), (3, keys[1::50])) if key in some]
        expected[key] = [1 + sum(added) + 10, 1]

    shares, operators = assigned([snapshot], 1, new), []
    groups = key_groups(a_batch(keys, 1), ["key"], MAX_PARALLELISM)
    for index in range(new):
        there = a_native_place(index, new)
        one = AggregateOperator(HEAD, there, rocksdb_backends)
        subtask_of(one, there, storage, tmp_path, 2).restore(shares[SubtaskId("op", index)], 3)
        own = range_of(index, new, MAX_PARALLELISM)
        ours = np.flatnonzero((groups >= own.first) & (groups <= own.last)).tolist()
        list(one.process(EdgeId("in"), a_batch(ours, 10)))
        operators.append(one)

    assert sums(operators) == expected
    for one in (operator, *operators):
        one.close()


def test_a_sum_is_widened(rocksdb_backends, tmp_path):
    """S12: the accumulators of an instance are rewritten where their types are others now."""
    place, storage = a_native_place(), storage_in(tmp_path)
    narrow = pa.schema([("key", pa.int64()), ("n", pa.int32())])
    head = AggregateHead(("key",), (Aggregate("min", "n", "least"),), narrow, narrow)
    operator = AggregateOperator(head, place, rocksdb_backends)
    batch = pa.RecordBatch.from_arrays(
        [pa.array(range(9), pa.int64()), pa.array([None, *range(8)], pa.int32())], schema=narrow
    )
    list(operator.process(EdgeId("in"), batch))
    list(operator.flush())
    snapshot = subtask_of(operator, place, storage, tmp_path, 1).checkpoint(1)
    wide = AggregateHead(("key",), (Aggregate("min", "n", "least"),), ROWS, ROWS)
    other = AggregateOperator(wide, place, rocksdb_backends)
    subtask_of(other, place, storage, tmp_path, 2).restore(
        assigned([snapshot], 1, 1)[place.subtask], 1
    )
    list(other.process(EdgeId("in"), a_batch(list(range(9)), 5)))

    assert sums([other]) == {key: [min(5, key - 1) if key else 5] for key in range(9)}
    operator.close()
    other.close()
