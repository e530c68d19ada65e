"""An aggregation emits each changed key once, and its snapshots move between parallelisms."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.core.ids import CheckpointId, EdgeId, Millis, OperatorId, SubtaskId
from weir.core.key_groups import range_of
from weir.dataflow.physical import Aggregate, AggregateHead
from weir.errors import JobRejected
from weir.ports.operators import Operator, RestoredState, TaskInfo
from weir.slot.aggregate import AggregateOperator
from weir.state.memory.memory_backend import MemoryBackend
from weir.state.snapshot_files import write_keyed
from weir.wire.keys import key_groups

MAX_PARALLELISM = 16
EDGE = EdgeId("words")
INPUT = pa.schema([("word", pa.string()), ("day", pa.int32()), ("n", pa.int64())])
HEAD = AggregateHead(
    keys=("word", "day"),
    aggregates=(Aggregate("sum", "n", "total"), Aggregate("count", "", "rows")),
    input=INPUT,
    output=pa.schema(
        [
            ("word", pa.large_string()),
            ("day", pa.int32()),
            ("total", pa.int64()),
            ("rows", pa.int64()),
        ]
    ),
)


def a_place(index=0, parallelism=1):
    subtask = SubtaskId(OperatorId("count"), index)
    return TaskInfo(subtask, parallelism, MAX_PARALLELISM, 1, 1, lambda: Millis(0))


def an_operator(index=0, parallelism=1):
    operator: Operator = AggregateOperator(HEAD, a_place(index, parallelism), MemoryBackend)
    return operator


def a_batch(rows):
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(INPUT.types)]
    return pa.RecordBatch.from_arrays(columns, schema=INPUT)


def take(operator, *rows):
    assert list(operator.process(EDGE, a_batch(rows))) == []


def emitted(batches):
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def snapshot(operator):
    captured = operator.capture(CheckpointId(1))
    (piece,) = captured.keyed
    return piece.groups, piece.write()


def share_out(rows, parallelism):
    """What a hashed edge gives to each subtask."""
    batch = a_batch(rows)
    groups = key_groups(batch, HEAD.keys, MAX_PARALLELISM)
    for index in range(parallelism):
        first, last = range_of(index, parallelism, MAX_PARALLELISM)
        yield batch.filter(pa.array((groups >= first) & (groups <= last)))


def test_a_changed_key_is_emitted_once_with_its_current_values():
    """D6 D8: update mode."""
    operator = an_operator()
    take(operator, ("a", 1, 10), ("b", 1, 1), ("a", 1, 5))
    take(operator, ("a", 1, 100))

    assert sorted(emitted(operator.flush())) == [("a", 1, 115, 3), ("b", 1, 1, 1)]


def test_only_keys_that_changed_since_are_emitted():
    operator = an_operator()
    take(operator, ("a", 1, 1), ("b", 1, 1))
    list(operator.flush())
    take(operator, ("b", 1, 1))

    assert emitted(operator.flush()) == [("b", 1, 2, 2)]
    assert emitted(operator.flush()) == []


def test_what_is_emitted_has_the_schema_that_was_promised():
    operator = an_operator()
    take(operator, ("a", None, None))

    (batch,) = operator.flush()

    assert batch.schema == HEAD.output
    assert emitted([batch]) == [("a", None, None, 1)]


def test_the_end_emits_what_is_left():
    """R6: a bounded job ends with every result."""
    operator = an_operator()
    take(operator, ("a", 1, 1))

    assert emitted(operator.finish()) == [("a", 1, 1, 1)]


def test_an_aggregation_has_no_timers():
    operator = an_operator()
    operator.advance(Millis(5))

    assert not operator.is_due()
    assert operator.next_timer() is None
    assert list(operator.fire()) == []


def test_a_barrier_without_a_flush_is_a_mistake_of_ours():
    """A9: flush, then barrier, then snapshot."""
    operator = an_operator()
    take(operator, ("a", 1, 1))

    with pytest.raises(AssertionError, match="flush"):
        operator.capture(CheckpointId(1))


def test_a_snapshot_is_the_state_at_its_barrier():
    """S3, C1: none of the rows after the barrier, though it is written after them."""
    operator = an_operator()
    take(operator, ("a", 1, 1), ("b", 1, 2))
    list(operator.flush())
    captured = operator.capture(CheckpointId(1))
    take(operator, ("a", 1, 50), ("c", 1, 60))

    table = pa.ipc.open_file(captured.keyed[0].write()).read_all().drop_columns("key_group")
    captured.release()

    found = sorted(tuple(row.values()) for row in table.to_pylist())
    assert found == [("a", 1, 1, 1, 1), ("b", 1, 2, 1, 1)]


def test_a_snapshot_is_a_file_that_plain_pyarrow_reads():
    """S9: with key group, key columns and accumulators by name."""
    operator = an_operator()
    take(operator, ("a", 1, 7))
    list(operator.flush())
    _, data = snapshot(operator)

    table = pa.ipc.open_file(data).read_all()

    assert table.column_names == ["key_group", "word", "day", "sum(n)", "count(n)", "count(*)"]
    expected = key_groups(a_batch([("a", 1, 7)]), HEAD.keys, MAX_PARALLELISM)
    assert table.column("key_group").to_pylist() == expected.tolist()


words = st.text("abc", max_size=2)
some_rows = st.lists(
    st.tuples(st.none() | words, st.integers(0, 2), st.none() | st.integers(-99, 99)), max_size=40
)


@given(some_rows, some_rows, st.integers(1, 5), st.integers(1, 5))
def test_a_restore_at_another_parallelism_loses_and_doubles_nothing(before, after, old, new):
    """S11: state moves by key groups."""
    handed_down = []
    for index, batch in enumerate(share_out(before, old)):
        operator = an_operator(index, old)
        operator.process(EDGE, batch)
        list(operator.flush())
        handed_down.append(snapshot(operator))

    found = []
    for index, batch in enumerate(share_out(after, new)):
        groups = range_of(index, new, MAX_PARALLELISM)
        operator = an_operator(index, new)
        operator.restore(RestoredState(keyed=[(groups, data) for _, data in handed_down]))
        assert list(operator.flush()) == []
        operator.process(EDGE, batch)
        list(operator.flush())
        found += restored_rows(operator)

    alone = an_operator()
    for rows in (before, after):
        alone.process(EDGE, a_batch(rows))
    list(alone.flush())
    assert sorted(found, key=repr) == sorted(restored_rows(alone), key=repr)


def restored_rows(operator):
    _, data = snapshot(operator)
    return [tuple(row.values()) for row in pa.ipc.open_file(data).read_all().to_pylist()]


def test_the_state_of_something_else_is_refused():
    """C15: by name."""
    table = pa.table({"word": ["a"], "day": pa.array([1], pa.int32())})
    groups = key_groups(table.to_batches()[0], HEAD.keys, MAX_PARALLELISM)
    data = write_keyed("sessions", table, groups, HEAD.keys, MAX_PARALLELISM)

    with pytest.raises(JobRejected, match="'sessions'"):
        an_operator().restore(RestoredState(keyed=[(range_of(0, 1, MAX_PARALLELISM), data)]))
