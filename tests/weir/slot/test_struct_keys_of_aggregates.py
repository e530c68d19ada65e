"""An aggregation by a struct column: its output, its snapshots, and other parallelisms."""

import pyarrow as pa
import pytest

from random_seed import SEED, dice
from weir.core.ids import CheckpointId, EdgeId, Millis, OperatorId, SubtaskId
from weir.core.key_groups import range_of
from weir.core.snapshots import KeyGroupRange
from weir.dataflow.keyed import aggregate_head
from weir.dataflow.physical import Aggregate
from weir.dataflow.types import schema_of
from weir.errors import JobRejected
from weir.ports.operators import RestoredState, TaskInfo
from weir.slot.aggregate import AggregateOperator
from weir.slot.in_flight import read_in_flight, write_in_flight
from weir.state.memory.memory_backend import MemoryBackend
from weir.state.state_file_reader import rows_of
from weir.wire.keys import key_groups

MAX_PARALLELISM = 16
EDGE = EdgeId("rows")
INPUT = schema_of("k struct<a:int,in:struct<s:string>>, day date, n long")
KEYS = ("k", "day")


def an_operator(index=0, parallelism=1, schema=INPUT, *, is_incremental=False):
    aggregates = [Aggregate("sum", "n", "total"), Aggregate("count", "", "rows")]
    subtask = SubtaskId(OperatorId("count"), index)
    place = TaskInfo(
        subtask,
        parallelism,
        MAX_PARALLELISM,
        1,
        1,
        lambda: Millis(0),
        is_incremental=is_incremental,
    )
    return AggregateOperator(aggregate_head(KEYS, aggregates, schema), place, MemoryBackend)


def random_batch(chance, count=200):
    def or_null(value):
        return None if chance.random() < 0.2 else value

    rows = [
        {
            "k": or_null(
                {
                    "a": or_null(chance.randrange(3)),
                    "in": or_null({"s": or_null(chance.choice("xy"))}),
                }
            ),
            "day": None,
            "n": chance.randrange(100),
        }
        for _ in range(count)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=INPUT)


def expected(*batches):
    """Sums and counts by what Python prints of a key, for a dict is no key there."""
    found = {}
    for row in (row for batch in batches for row in batch.to_pylist()):
        total, rows = found.get(repr(row["k"]), (0, 0))
        found[repr(row["k"])] = (total + row["n"], rows + 1)
    return found


def emitted(operator):
    rows = [row for batch in operator.flush() for row in batch.to_pylist()]
    found = {repr(row["k"]): (row["total"], row["rows"]) for row in rows}
    assert len(found) == len(rows), "a key is emitted once"
    return found


def take(operator, batch):
    assert list(operator.process(EDGE, batch)) == []


def share_out(batch, parallelism):
    """What a hashed edge gives to each subtask."""
    groups = key_groups(batch, KEYS, MAX_PARALLELISM)
    for index in range(parallelism):
        first, last = range_of(index, parallelism, MAX_PARALLELISM)
        yield batch.filter(pa.array((groups >= first) & (groups <= last)))


def test_rows_are_aggregated_by_their_struct():
    """D7: with the schema that was promised; nulls of every depth are keys of their own."""
    operator, batch = an_operator(), random_batch(dice("struct keys"))

    take(operator, batch)

    (out,) = operator.flush()
    assert out.schema.field("k").type == INPUT.field("k").type
    take(operator, batch)
    assert emitted(operator) == expected(batch, batch), SEED


@pytest.mark.parametrize(("old", "new"), [(1, 3), (3, 2), (2, 1)])
def test_a_restore_at_another_parallelism_loses_and_doubles_nothing(old, new):
    """S9, S11."""
    chance = dice("rescaled struct keys")
    before, after = random_batch(chance), random_batch(chance)
    files = []
    for index, part in enumerate(share_out(before, old)):
        operator = an_operator(index, old)
        take(operator, part)
        emitted(operator)
        (piece,) = operator.capture(CheckpointId(1)).keyed
        files.append((piece.groups, piece.write()))

    found = {}
    for index, part in enumerate(share_out(after, new)):
        groups = range_of(index, new, MAX_PARALLELISM)
        operator = an_operator(index, new)
        operator.restore(RestoredState(keyed=[(groups, data) for _, data in files]))
        take(operator, part)
        mine = emitted(operator)
        assert not set(mine) & set(found), SEED
        found |= mine

    both = expected(before, after)
    assert found == {key: both[key] for key in expected(after)}, SEED


def test_changes_are_laid_over_what_was_there():
    """S4: a layer has the keys that changed, and a reader sees the newest of each."""
    chance = dice("layers of struct keys")
    first, second = random_batch(chance), random_batch(chance, 5)
    operator = an_operator(is_incremental=True)
    take(operator, first)
    emitted(operator)
    (whole,) = operator.capture(CheckpointId(1)).keyed
    base = whole.write()
    operator.completed(CheckpointId(1))
    take(operator, second)
    emitted(operator)
    (piece,) = operator.capture(CheckpointId(2)).keyed
    layer = piece.since(CheckpointId(1))

    read = [
        row
        for batch in rows_of([base, layer], KeyGroupRange(0, MAX_PARALLELISM - 1))
        for row in batch.to_pylist()
    ]

    found = {repr(row["k"]): (row["sum(n)"], row["count(*)"]) for row in read}
    assert found == expected(first, second), SEED
    assert len(read) == len(found), SEED


def test_rows_in_flight_find_their_heirs():
    """A10, S11: each row has one, whatever its struct."""
    batch = random_batch(dice("struct keys in flight"))
    content = write_in_flight([batch])

    parts = [
        read_in_flight(content, range_of(index, 3, MAX_PARALLELISM), KEYS, MAX_PARALLELISM)
        for index in range(3)
    ]

    assert expected(*(each for part in parts for each in part)) == expected(batch)


def test_not_null_in_a_struct_makes_no_other_key():
    """S12: and another field does."""
    operator = an_operator()
    take(operator, random_batch(dice("strict structs")))
    kept = emitted(operator)
    (piece,) = operator.capture(CheckpointId(1)).keyed
    restored_state = RestoredState(keyed=[(piece.groups, piece.write())])
    strict = pa.struct([pa.field("a", pa.int32(), nullable=False), INPUT.field("k").type[1]])
    other = pa.struct([("a", pa.int64()), INPUT.field("k").type[1]])

    again = an_operator(schema=INPUT.set(0, pa.field("k", strict)))
    again.restore(restored_state)
    assert len(kept) > 1
    with pytest.raises(JobRejected, match=r"the state was kept by k struct<a: int32, in: "):
        an_operator(schema=INPUT.set(0, pa.field("k", other))).restore(restored_state)
