"""A sender takes no more rows into a turn than its receivers can take in soon."""

from hypothesis import given
from hypothesis import strategies as st

from weir.core.ids import RECOVERED, ChannelId, EdgeId
from weir.slot.demand import Demand, rows_of_a_batch
from weir.slot.subtask_counts import SubtaskCounts
from weir.slot.turn_budget import FEWEST_ROWS, MOST_ROWS

ROWS, LATE = EdgeId("rows"), EdgeId("late")


def channels(edge, count, receiver=0):
    return [ChannelId(edge, sender, receiver) for sender in range(count)]


@given(st.integers(1, 200), st.integers(FEWEST_ROWS, MOST_ROWS))
def test_the_batches_of_all_senders_together_are_one_turn_of_the_receiver(senders, rows):
    """R7: what waits does not take longer with more senders, down to a few rows for each."""
    batch = rows_of_a_batch([*channels(ROWS, senders), ChannelId(ROWS, RECOVERED, 0)], rows)

    assert batch >= FEWEST_ROWS
    assert batch == FEWEST_ROWS or rows - senders < batch * senders <= rows


def test_a_sender_is_not_limited_before_a_receiver_has_asked():
    """R7: the first credit bounds what waits."""
    assert Demand(SubtaskCounts()).limit(MOST_ROWS) == MOST_ROWS


def test_rows_spread_over_the_channels_of_an_edge_and_the_slowest_receiver_counts():
    """R7."""
    demand = Demand(SubtaskCounts())
    for receiver, rows in enumerate((500, 300, 900)):
        demand.asks(ChannelId(ROWS, 0, receiver), rows)

    assert demand.limit(MOST_ROWS) == 3 * 300
    assert demand.limit(20) == 20


def test_every_edge_counts():
    """R7: a turn's rows leave on all edges."""
    demand = Demand(SubtaskCounts())
    demand.asks(ChannelId(ROWS, 0, 0), 500)
    demand.asks(ChannelId(LATE, 0, 0), 40)

    assert demand.limit(MOST_ROWS) == 40


def test_a_receiver_may_ask_for_more_again():
    """R7: nothing is remembered of how slow it was."""
    demand = Demand(SubtaskCounts())
    for rows in (30, 16, 5_000):
        demand.asks(ChannelId(ROWS, 0, 0), rows)

    assert demand.limit(MOST_ROWS) == 5_000


def test_an_operator_that_emits_few_rows_takes_many():
    """R7: what it takes in does not wait behind it."""
    demand = Demand(SubtaskCounts(rows_in=10_000, rows_out=100))
    demand.asks(ChannelId(ROWS, 0, 0), 40)

    assert demand.limit(MOST_ROWS) == 4_000
