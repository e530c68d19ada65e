"""Running aggregates go on when a number they are made of has become wider."""

import pyarrow as pa
import pytest

from weir.core.ids import CheckpointId, EdgeId, Millis, OperatorId, SubtaskId
from weir.dataflow.physical import Aggregate, AggregateHead
from weir.dataflow.types import schema_of
from weir.ports.operators import RestoredState, TaskInfo
from weir.slot.aggregate import AggregateOperator
from weir.state.memory.memory_backend import MemoryBackend

FIRST, SECOND = CheckpointId(1), CheckpointId(2)


def begun(kind, restored_state=None):
    rows = schema_of(f"word string, amount {kind}")
    aggregates = (Aggregate("max", "amount", "most"), Aggregate("sum", "amount", "s"))
    output = schema_of(f"word string, most {kind}, s bigint")
    place = TaskInfo(
        SubtaskId(OperatorId("sums"), 0), 1, 16, 1, 1, lambda: Millis(0), is_incremental=True
    )
    operator = AggregateOperator(
        AggregateHead(("word",), aggregates, rows, output), place, MemoryBackend
    )
    operator.restore(restored_state or RestoredState())
    return operator


def take(operator, kind, **amounts):
    batch = pa.record_batch({"word": list(amounts), "amount": list(amounts.values())})
    operator.process(EdgeId("in"), batch.cast(schema_of(f"word string, amount {kind}")))
    return {row["word"]: row["most"] for out in operator.flush() for row in out.to_pylist()}


@pytest.fixture
def kept():
    operator = begun("int")
    take(operator, "int", a=7, b=8)
    files = [(piece.groups, piece.write()) for piece in operator.capture(FIRST).keyed]
    return RestoredState(files, checkpoint=FIRST)


def test_old_aggregates_are_read_as_wider_ones(kept):
    """S12."""
    assert take(begun("bigint", kept), "bigint", a=3, b=3_000_000_000) == {"a": 7, "b": 3 * 10**9}


@pytest.mark.parametrize(("kind", "is_layered"), [("int", True), ("bigint", False)])
def test_what_has_other_types_is_written_anew_as_a_whole(kept, kind, is_layered):
    """S12, S4: files that lie over each other have the same columns."""
    operator = begun(kind, kept)
    take(operator, kind, a=9)

    (piece,) = operator.capture(SECOND).keyed

    assert (piece.since(FIRST) is not None) == is_layered
