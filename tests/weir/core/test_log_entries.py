"""What a reader of the job's log may believe."""

from hypothesis import given
from hypothesis import strategies as st

from weir.core.log_entries import IdsReserved, above, is_conclusive, readable, to_probe


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


# Reading beyond a listing


def read_through(log, listed, floor=0):
    """Follow the probes from what a listing showed; the entries that were found, if any must be."""
    found, absent = {index: entry() for index in listed}, set()
    while (index := to_probe(found, frozenset(absent), floor)) is not None:
        if index in log:
            found[index] = entry()
        else:
            absent.add(index)
    if not is_conclusive(found, floor):
        return "read it again"
    return [index for index, _ in above(found, floor)]


def test_a_stale_listing_does_not_hide_the_end_of_the_log():
    """C17 C18: a driver that missed the last entries would restore what is not the newest."""
    assert read_through(range(6), listed=[0, 1, 2]) == [0, 1, 2, 3, 4, 5]


def test_a_hole_in_a_listing_does_not_cut_the_log_in_two():
    """C17: what a listing does not show may still be there."""
    assert read_through(range(6), listed=[0, 1, 4]) == [0, 1, 2, 3, 4, 5]


def test_probing_ends_where_truncation_has_been():
    """C17: the log's beginning is wherever its oldest entry is."""
    assert read_through(range(3, 6), listed=[4]) == [3, 4, 5]


def test_a_truncated_log_is_never_taken_for_an_empty_one():
    """C17 C18: a driver that believed it would start the job from nothing."""
    assert read_through(range(40, 50), listed=[], floor=40) == list(range(40, 50))
    assert read_through(range(60, 70), listed=[], floor=40) == "read it again"


def test_a_log_that_was_never_truncated_may_be_empty():
    """C17: the first driver of a job finds nothing, and that is all there is."""
    assert read_through((), listed=[], floor=0) == []


def test_what_a_zombie_created_below_the_floor_is_no_part_of_the_log():
    """C17: entries are truncated far behind the end, and may come back as debris."""
    assert read_through([3, 40, 41], listed=[3], floor=40) == [40, 41]


@given(st.integers(0, 9), st.integers(1, 9), st.data())
def test_whatever_part_of_the_log_a_listing_shows_all_of_it_is_read(first, length, data):
    """C17 C18: as long as it shows one entry of a truncated log."""
    log = range(first, first + length)
    listed = data.draw(st.sets(st.sampled_from(log), min_size=1 if first else 0))

    assert read_through(log, listed) == list(log)
