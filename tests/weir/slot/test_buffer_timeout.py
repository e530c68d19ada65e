"""Buffered rows leave after a timeout that grows only with what flushes cost."""

from hypothesis import given
from hypothesis import strategies as st

from weir.slot.buffer_timeout import (
    BACKLOG,
    KEEPING_UP,
    LONGEST_SECONDS,
    TIMEOUT_SECONDS,
    BufferTimeout,
)

seconds = st.floats(0.0, 10.0)


def test_nothing_is_due_where_nothing_is_buffered():
    """R9."""
    buffer = BufferTimeout()
    assert not buffer.is_due(1000.0, has_backlog=False)
    buffer.processed(1.0)
    buffer.flushed(2.0, 2.0)
    assert not buffer.is_due(1000.0, has_backlog=False)


def test_the_oldest_buffered_row_counts():
    """R9: rows that come later do not prolong its wait."""
    buffer = BufferTimeout()
    buffer.processed(1.0)
    buffer.processed(1.0 + TIMEOUT_SECONDS)
    assert buffer.is_due(1.0 + 1.01 * TIMEOUT_SECONDS, has_backlog=True)
    assert not buffer.is_due(1.0 + 0.99 * TIMEOUT_SECONDS, has_backlog=True)


@given(cost=seconds, waited=seconds, has_backlog=st.booleans())
def test_flushes_take_a_bounded_share_of_the_time(cost, waited, has_backlog):
    """R9: up to the longest wait, an operator with a backlog flushes less often."""
    buffer = BufferTimeout()
    buffer.processed(0.0)
    buffer.flushed(0.0, cost)
    buffer.processed(0.0)
    if buffer.is_due(waited, has_backlog=has_backlog):
        assert waited >= TIMEOUT_SECONDS
        assert waited >= min(cost * (BACKLOG if has_backlog else KEEPING_UP), LONGEST_SECONDS)
    else:
        assert waited < LONGEST_SECONDS


def test_a_flush_of_nothing_does_not_count_as_cheap():
    """R9: the barrier's flush right after another one has nothing to emit."""
    buffer = BufferTimeout()
    buffer.processed(0.0)
    buffer.flushed(0.0, 0.02)
    buffer.flushed(0.02, 0.02)
    buffer.processed(1.0)
    assert not buffer.is_due(1.0 + 2 * TIMEOUT_SECONDS, has_backlog=True)
