"""A sender takes no more rows into a turn than its receivers can take in soon."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.core.ids import RECOVERED, ChannelId, EdgeId
from weir.core.topology import EdgeKind
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
        demand.asks(ChannelId(ROWS, 0, receiver), rows, EdgeKind.HASH)

    assert demand.limit(MOST_ROWS) == 3 * 300
    assert demand.limit(20) == 20


@pytest.mark.parametrize("kind", [EdgeKind.BROADCAST, EdgeKind.GLOBAL])
def test_rows_that_do_not_spread_all_go_to_the_receiver_that_asks_for_the_fewest(kind):
    """R7: each receiver of a broadcast edge gets every row."""
    demand = Demand(SubtaskCounts())
    for receiver, rows in enumerate((500, 16, 900)):
        demand.asks(ChannelId(ROWS, 0, receiver), rows, kind)

    assert demand.limit(MOST_ROWS) == 16


def test_every_edge_counts():
    """R7: a turn's rows leave on all edges."""
    demand = Demand(SubtaskCounts())
    demand.asks(ChannelId(ROWS, 0, 0), 500, EdgeKind.HASH)
    demand.asks(ChannelId(LATE, 0, 0), 40, EdgeKind.HASH)

    assert demand.limit(MOST_ROWS) == 40


def test_a_receiver_may_ask_for_more_again():
    """R7: nothing is remembered of how slow it was."""
    demand = Demand(SubtaskCounts())
    for rows in (30, 16, 5_000):
        demand.asks(ChannelId(ROWS, 0, 0), rows, EdgeKind.HASH)

    assert demand.limit(MOST_ROWS) == 5_000


def test_an_operator_that_emits_few_rows_takes_many():
    """R7: what it takes in does not wait behind it."""
    demand = Demand(SubtaskCounts(rows_in=10_000, rows_out=100))
    demand.asks(ChannelId(ROWS, 0, 0), 40, EdgeKind.HASH)

    assert demand.limit(MOST_ROWS) == 4_000


def after(counts, demand, turns, emits):
    """What the demand allows after turns that take all they may and emit this share of it."""
    for _ in range(turns):
        rows = demand.limit(MOST_ROWS)
        counts.rows_in += rows
        counts.rows_out += int(rows * emits)
    return demand.limit(MOST_ROWS)


def test_an_operator_that_begins_to_emit_everything_takes_few_rows_within_a_few_turns():
    """R7: however long it emitted one row of a thousand before, in turns however large."""
    counts = SubtaskCounts(rows_in=100_000_000, rows_out=100_000)
    demand = Demand(counts)
    demand.asks(ChannelId(ROWS, 0, 0), 16, EdgeKind.HASH)
    assert demand.limit(MOST_ROWS) == 16_000

    assert after(counts, demand, turns=5, emits=1) <= 32


def test_an_operator_that_ceases_to_emit_takes_more_rows_within_a_few_turns():
    """R7: what it emitted once does not hold it back."""
    counts = SubtaskCounts(rows_in=100_000_000, rows_out=100_000_000)
    demand = Demand(counts)
    demand.asks(ChannelId(ROWS, 0, 0), 16, EdgeKind.HASH)
    assert demand.limit(MOST_ROWS) == 16

    assert after(counts, demand, turns=20, emits=0) >= 1_000


def test_asking_again_between_turns_changes_nothing():
    """R7: each grant of credit asks."""
    demand = Demand(SubtaskCounts(rows_in=10_000, rows_out=100))
    demand.asks(ChannelId(ROWS, 0, 0), 40, EdgeKind.HASH)

    assert [demand.limit(MOST_ROWS) for _ in range(50)] == [4_000] * 50


def test_what_a_flush_emits_counts_for_the_turns_before_it():
    """R7: it takes no rows by itself."""
    counts = SubtaskCounts(rows_in=1_000)
    demand = Demand(counts)
    demand.asks(ChannelId(ROWS, 0, 0), 40, EdgeKind.HASH)
    assert demand.limit(MOST_ROWS) == 40_000

    counts.rows_out += 100

    assert demand.limit(MOST_ROWS) == 400
