"""What a reader of the job's log may believe."""

from hypothesis import given
from hypothesis import strategies as st

from weir.core.journal import IdsReserved, readable


def entry(ids_until=1):
    return IdsReserved(epoch=1, driver="driver-a", ids_until=ids_until)


def indexes(*present):
    return [index for index, _ in readable({index: entry() for index in present})]


def test_a_log_is_read_from_its_first_entry_to_its_last():
    """C17: one numbered log."""
    assert indexes(2, 0, 1) == [0, 1, 2]


def test_an_empty_log_has_nothing_to_say():
    """C17: a job that never ran."""
    assert indexes() == []


def test_a_log_may_begin_anywhere_because_old_entries_are_truncated():
    """C17: truncated from the oldest, far behind the end."""
    assert indexes(7, 8, 9) == [7, 8, 9]


def test_what_lies_before_a_gap_is_debris():
    """C17: a zombie may create anew what had been truncated, and must not be believed."""
    assert indexes(2, 7, 8, 9) == [7, 8, 9]


def test_entries_keep_what_they_say():
    """C17: reading neither orders nor merges what was written."""
    assert readable({4: entry(20), 3: entry(10)}) == ((3, entry(10)), (4, entry(20)))


@given(st.sets(st.integers(0, 40), min_size=1))
def test_the_readable_part_is_unbroken_ends_at_the_newest_and_cannot_be_longer(present):
    """C17: whatever a listing shows."""
    run = indexes(*sorted(present))

    assert run == list(range(run[0], max(present) + 1))
    assert run[0] - 1 not in present
