"""A lost slot's index moves to a free slot, and no other index moves at all."""

from hypothesis import given
from hypothesis import strategies as st

from weir.core.placement import Seat, TooFew, assign

ids = st.sampled_from([f"s{n}" for n in range(8)])
executors = st.sampled_from(["e1", "e2", "e3"])


def seated(**slots):
    """Seats as in ``seated(i0="a@e1")``: index 0 has slot a on executor e1."""
    return {int(index[1:]): Seat(*place.split("@")) for index, place in slots.items()}


def test_the_first_slots_are_given_out_in_order():
    """R3: the same slots always give the same placement."""
    assert assign({}, {"b": "e1", "a": "e2", "c": "e1"}, {0, 1}) == seated(i0="a@e2", i1="b@e1")


def test_a_survivor_keeps_its_index():
    """R3: only the lost slot is replaced."""
    before = seated(i0="a@e1", i1="b@e1")

    assert assign(before, {"b": "e1", "c": "e1"}, {0, 1}) == seated(i0="c@e1", i1="b@e1")


def test_a_standby_on_another_executor_comes_first():
    """R3: the executor of a lost slot may be going down as a whole."""
    before = seated(i0="x@e1")

    assert assign(before, {"a": "e1", "b": "e2", "c": "e2"}, {0}) == seated(i0="b@e2")


def test_a_standby_on_the_same_executor_is_better_than_none():
    """R3: the job does not wait for what it can do without."""
    assert assign(seated(i0="x@e1"), {"b": "e1", "a": "e1"}, {0}) == seated(i0="a@e1")


def test_an_index_that_is_not_asked_for_keeps_its_slot_and_needs_none():
    """R3: what runs or has finished elsewhere is left alone."""
    before = seated(i0="a@e1", i1="x@e1", i2="y@e1")

    assert assign(before, {"a": "e1"}, {1}) == TooFew(1)
    assert assign(before, {"a": "e1", "b": "e1"}, {1}) == seated(i0="a@e1", i1="b@e1", i2="y@e1")


def test_too_few_slots_are_counted():
    """R3: the status can say how many are missing."""
    assert assign({}, {"a": "e1"}, {0, 1, 2}) == TooFew(2)


@given(
    st.dictionaries(st.integers(0, 4), st.builds(Seat, ids, executors)),
    st.dictionaries(ids, executors),
    st.sets(st.integers(0, 4)),
)
def test_every_index_gets_a_registered_slot_of_its_own(seats, slots, indexes):
    """R3: for any slots that are there, and any that were."""
    one_each = {seat.slot: index for index, seat in seats.items()}
    before = {index: seats[index] for index in sorted(one_each.values())}

    after = assign(before, slots, indexes)

    free = set(slots) - set(one_each)
    vacant = [i for i in indexes if i not in before or before[i].slot not in slots]
    if isinstance(after, TooFew):
        assert after.missing == len(vacant) - len(free) > 0
        return
    places = [after[index].slot for index in sorted(indexes)]
    assert len(set(places)) == len(places)
    assert set(places) <= set(slots)
    assert all(after[i] == before[i] for i in before if i not in vacant)
