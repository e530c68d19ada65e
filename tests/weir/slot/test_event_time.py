"""A subtask's time is the least of what its inputs have promised."""

from hypothesis import given
from hypothesis import strategies as st

from weir.core.ids import ChannelId, EdgeId, Millis
from weir.slot.event_time import FOREVER, LONG_AGO, EventTime

A, B, C = (ChannelId(EdgeId(edge), sender, 0) for edge, sender in (("x", 0), ("x", 1), ("y", 0)))
CHANNELS = (A, B, C)


def test_time_is_the_least_of_the_inputs():
    """D4."""
    time = EventTime(CHANNELS)
    time.advance(A, Millis(10))
    time.advance(B, Millis(20))
    assert time.now == LONG_AGO
    time.advance(C, Millis(5))
    assert time.now == 5


def test_an_older_watermark_does_not_turn_time_back():
    """D4."""
    time = EventTime((A,))
    time.advance(A, Millis(10))
    time.advance(A, Millis(3))
    assert time.now == 10


def test_an_input_at_its_end_holds_nobody_back():
    """D4, C14."""
    time = EventTime((A, B))
    time.advance(A, Millis(10))
    time.end(B)
    assert time.now == 10
    assert not time.is_over
    time.end(A)
    assert (time.now, time.is_over) == (FOREVER, True)


def test_a_snapshot_keeps_the_least_of_each_edge():
    """A10: so that it can be restored at another parallelism."""
    time = EventTime(CHANNELS)
    time.advance(A, Millis(10))
    time.advance(B, Millis(20))
    time.advance(C, Millis(5))
    assert time.by_edge() == (("x", 10), ("y", 5))


def test_an_edge_at_its_end_is_kept_as_that():
    """A10."""
    time = EventTime((A, B, C))
    time.end(A)
    time.end(B)
    assert dict(time.by_edge()) == {"x": FOREVER, "y": LONG_AGO}


def test_watermarks_restart_at_the_least_of_each_edge():
    """A10, D4: for every channel of the edge, however many there are now."""
    time = EventTime(CHANNELS)
    time.restore({EdgeId("x"): Millis(10)})
    assert time.now == LONG_AGO
    time.advance(C, Millis(50))
    assert time.now == 10


def test_a_channel_of_restored_rows_has_no_time_of_its_own():
    """A10: watermarks come before the in-flight rows."""
    time = EventTime((A,))
    time.advance(ChannelId(EdgeId("x"), -1, 0), Millis(10))
    assert time.now == LONG_AGO


WATERMARKS = st.lists(st.tuples(st.sampled_from(CHANNELS), st.integers(0, 100)))


@given(WATERMARKS, st.sets(st.sampled_from(CHANNELS)))
def test_a_restored_subtask_never_promises_more_than_it_had(watermarks, ended):
    """A10: whatever its channels promised, the heirs begin no later."""
    time = EventTime(CHANNELS)
    for channel, watermark in watermarks:
        time.advance(channel, Millis(watermark))
    for channel in sorted(ended):
        time.end(channel)
    heir = EventTime(CHANNELS)
    heir.restore(dict(time.by_edge()))
    assert heir.now == time.now
