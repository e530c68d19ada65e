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


def test_an_input_at_its_end_holds_no_other_back():
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


def test_an_idle_input_holds_no_other_back():
    """D4: until it tells the time again."""
    time = EventTime((A, B))
    time.advance(A, Millis(10))
    time.rest(B)
    assert time.now == 10
    time.advance(B, Millis(3))
    time.advance(A, Millis(20))
    assert time.now == 10
    time.advance(B, Millis(15))
    assert time.now == 15


def test_time_does_not_turn_back_when_an_idle_input_goes_on():
    """D4."""
    time = EventTime((A, B))
    time.rest(B)
    time.advance(A, Millis(10))
    time.advance(B, LONG_AGO)
    assert time.now == 10


def test_where_all_inputs_are_idle_time_is_the_latest_of_them():
    """D4: nothing is left that could be behind it."""
    time = EventTime((A, B, C))
    time.advance(A, Millis(10))
    time.advance(B, Millis(7))
    for channel in CHANNELS:
        assert not time.is_idle
        time.rest(channel)
    assert (time.now, time.is_idle) == (10, True)


def test_a_snapshot_keeps_the_time_that_an_idle_input_did_not_hold_back():
    """A10, D4: its edge restarts where the time was."""
    time = EventTime(CHANNELS)
    time.rest(C)
    time.advance(A, Millis(10))
    time.advance(B, Millis(20))
    assert dict(time.by_edge()) == {"x": 10, "y": 10}


WATERMARKS = st.lists(
    st.tuples(st.sampled_from(CHANNELS), st.one_of(st.none(), st.integers(0, 100)))
)
"""What each channel says; None: it is idle."""


def hear(time, said):
    for channel, watermark in said:
        if watermark is None:
            time.rest(channel)
        else:
            time.advance(channel, Millis(watermark))


@given(WATERMARKS)
def test_time_never_turns_back(said):
    """D4: whichever inputs come, rest and go on."""
    time = EventTime(CHANNELS)
    seen = [time.now]
    for word in said:
        hear(time, [word])
        seen.append(time.now)
    assert seen == sorted(seen)


@given(WATERMARKS, st.sets(st.sampled_from(CHANNELS)))
def test_a_restored_subtask_never_promises_more_than_it_had(watermarks, ended):
    """A10: whatever its channels promised, the heirs begin no later."""
    time = EventTime(CHANNELS)
    hear(time, watermarks)
    for channel in sorted(ended):
        time.end(channel)
    heir = EventTime(CHANNELS)
    heir.restore(dict(time.by_edge()))
    assert heir.now == time.now
