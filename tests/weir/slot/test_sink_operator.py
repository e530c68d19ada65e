"""A sink's transactions: sealed at each barrier, held until a committing checkpoint covers them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_connectors import WRITE_0, FakeSink, rows
from weir.core.ids import CheckpointId, EdgeId, Millis
from weir.ports.operators import TaskInfo
from weir.slot.sink_operator import SinkOperator

EDGE = EdgeId("done")
PLACE = TaskInfo(WRITE_0, 1, 16, 1, 1, lambda: Millis(0))


@pytest.fixture
def sink():
    return FakeSink()


@pytest.fixture
def operator(sink):
    return SinkOperator(sink, PLACE)


def write(operator, *numbers):
    assert list(operator.process(EDGE, rows(*numbers))) == []


def held(operator, checkpoint, sink):
    """The rows of each transaction that the snapshot holds."""
    captured = operator.capture(CheckpointId(checkpoint))
    return [sink.sealed[transaction.name] for transaction in captured.transactions]


def test_a_transaction_ends_at_the_barrier(operator, sink):
    """R5: begin, write, pre-commit at the barrier."""
    write(operator, 1, 2)
    assert held(operator, 1, sink) == [[1, 2]]
    write(operator, 3)
    assert operator.capture(CheckpointId(2)).transactions[-1].checkpoint == 2


def test_a_barrier_without_rows_seals_nothing(operator, sink):
    """R5."""
    assert held(operator, 1, sink) == []


def test_a_sealed_transaction_is_held_until_a_committing_checkpoint_completes(operator, sink):
    """C9: all transactions of id ≤ n are committed with n."""
    write(operator, 1)
    held(operator, 1, sink)
    write(operator, 2)
    assert held(operator, 2, sink) == [[1], [2]]
    operator.completed(CheckpointId(1))
    write(operator, 3)
    assert held(operator, 3, sink) == [[2], [3]]
    operator.completed(CheckpointId(3))
    assert held(operator, 4, sink) == []


def test_an_aborted_checkpoint_loses_nothing(operator, sink):
    """C9: the sink is not notified; what it had sealed travels on with the next."""
    write(operator, 1)
    held(operator, 1, sink)
    assert held(operator, 2, sink) == [[1]]


def test_a_transaction_is_made_durable_once_however_many_snapshots_hold_it(operator, sink):
    """R5."""
    write(operator, 1)
    first = operator.capture(CheckpointId(1))
    second = operator.capture(CheckpointId(2))
    for make_durable in (*first.before_ack, *second.before_ack):
        make_durable()
    assert sink.durable == [first.transactions[0].name]


def test_a_transaction_that_could_not_be_made_durable_is_tried_again_with_the_next(operator, sink):
    """C18: the next checkpoint does not take it for done."""
    write(operator, 1)
    sink.loses = True
    (make_durable,) = operator.capture(CheckpointId(1)).before_ack
    with pytest.raises(OSError, match="full"):
        make_durable()
    sink.loses = False
    for again in operator.capture(CheckpointId(2)).before_ack:
        again()
    assert len(sink.durable) == 1


def test_a_closed_sink_leaves_everything_as_it_is(operator, sink):
    """R5: the restart of the subtask resolves what it left."""
    write(operator, 1)
    operator.close()
    assert sink.writers[0].closed
    assert sink.sealed == {}


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=12))
def test_every_row_is_committed_exactly_once_whichever_checkpoints_complete(story):
    """C9, R5: a driver that commits what each completed checkpoint newly covers gets all rows."""
    sink = FakeSink()
    operator = SinkOperator(sink, PLACE)
    committed, number = [], 0
    for checkpoint, (count, completes) in enumerate([*story, (0, True)], start=1):
        write(operator, *range(number, number + count))
        number += count
        snapshot = held(operator, checkpoint, sink)
        if completes:
            committed += [row for transaction in snapshot for row in transaction]
            operator.completed(CheckpointId(checkpoint))
    assert committed == list(range(number))
