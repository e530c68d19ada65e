"""Timers are kept by key and found by time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyed_state_files import captured, refill, rows
from weir.errors import JobRejected
from weir.ports.keyed_state import TimeMode
from weir.state.memory.row_index import RowIndex
from weir.state.memory.timers import Timers


def timers_of(mode=TimeMode.EVENT_TIME, **expiries):
    """Timers of keys with one letter each."""
    row_index = RowIndex()
    timers = Timers(row_index, mode)
    for key, times in expiries.items():
        row_index.seek((ord(key),))
        for time in times:
            timers.register(time)
    return row_index, timers


def fired(timers, now):
    found = []
    while timers.is_due(now):
        (key,), expiry = timers.seek_earliest()
        timers.delete(expiry)
        found.append((chr(key), expiry))
    return found


def test_due_timers_come_by_time_and_then_as_they_were_set():
    """S1, D6."""
    _, timers = timers_of(b=[20, 10], a=[10, 30])

    assert fired(timers, 31) == [("b", 10), ("a", 10), ("b", 20), ("a", 30)]


def test_a_timer_is_due_at_its_very_time():
    """D6: as in Spark."""
    _, timers = timers_of(a=[10])

    assert not timers.is_due(9)
    assert timers.is_due(10)


def test_a_timer_that_is_set_twice_is_one_timer():
    """S1."""
    _, timers = timers_of(a=[10, 10])

    assert list(timers.of_key()) == [10]
    assert fired(timers, 11) == [("a", 10)]


def test_a_deleted_timer_never_fires_and_can_be_set_again():
    """S1."""
    _, timers = timers_of(a=[10, 20])
    timers.delete(10)
    timers.delete(15)
    assert timers.earliest() == 20

    timers.register(10)
    assert fired(timers, 100) == [("a", 10), ("a", 20)]


def test_a_timer_that_is_pushed_back_again_and_again_leaves_little_behind():
    """R7: the pattern of a session's timeout."""
    row_index, timers = timers_of(a=[0])
    for time in range(50_000):
        timers.delete(time)
        timers.register(time + 1)

    assert len(timers._times) < 2_000  # noqa: SLF001 - memory is what this is about
    assert len(row_index) == 1
    assert timers.earliest() == 50_000


def test_a_snapshot_has_the_timers_of_its_moment():
    """S3."""
    row_index, timers = timers_of(a=[10], b=[10, 20])
    piece = captured(row_index, timers)

    fired(timers, 100)

    assert [(row["id"], row["timer.expires_at"]) for row in rows(piece)] == [
        (ord("a"), 10),
        (ord("b"), 10),
        (ord("b"), 20),
    ]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 20))))
def test_timers_survive_a_file(pairs):
    """S1, S9."""
    row_index, timers = timers_of()
    for key, time in pairs:
        row_index.seek((ord(key),))
        timers.register(time)

    again, restored = timers_of()
    refill(captured(row_index, timers), again, restored)

    assert sorted(fired(restored, 100)) == sorted(set(pairs))


def test_timers_of_another_mode_are_refused():
    """U3."""
    row_index, timers = timers_of(a=[10])
    again, restored = timers_of(TimeMode.PROCESSING_TIME)

    with pytest.raises(JobRejected, match="set the time mode back to EventTime"):
        refill(captured(row_index, timers), again, restored)
