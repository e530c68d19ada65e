"""A lost slot's index moves to a free slot, and no other index moves at all."""

from hypothesis import given
from hypothesis import strategies as st

from weir.core import placement
from weir.core.placement import Copies, Placement, SlotAddress, TooFewSlots

ids = st.sampled_from([f"s{n}" for n in range(8)])
executors = st.sampled_from(["e1", "e2", "e3"])
disks = st.sampled_from(["", "d1", "d2"])


def address(place):
    """An address as in ``e1`` or, with a disk, ``e1/d1``."""
    return SlotAddress(*place.split("/"))


def placed(**slots):
    """Placements as in ``placed(i0="a@e1")``: index 0 has slot a on executor e1."""
    parts = {index: place.split("@") for index, place in slots.items()}
    return {
        int(index[1:]): Placement(slot, address(place)) for index, (slot, place) in parts.items()
    }


def assign(placements, slots, indexes, copies=None):
    places = {slot: address(place) for slot, place in slots.items()}
    return placement.assign(placements, places, indexes, copies or {})


def test_the_first_slots_are_given_out_in_order():
    """R3: the same slots always give the same placement."""
    assert assign({}, {"b": "e1", "a": "e2", "c": "e1"}, {0, 1}) == placed(i0="a@e2", i1="b@e1")


def test_a_survivor_keeps_its_index():
    """R3: only the lost slot is replaced."""
    before = placed(i0="a@e1", i1="b@e1")

    assert assign(before, {"b": "e1", "c": "e1"}, {0, 1}) == placed(i0="c@e1", i1="b@e1")


def test_a_standby_on_another_executor_comes_first():
    """R3: the executor of a lost slot may be going down as a whole."""
    before = placed(i0="x@e1")

    assert assign(before, {"a": "e1", "b": "e2", "c": "e2"}, {0}) == placed(i0="b@e2")


def test_a_standby_on_the_same_executor_is_better_than_none():
    """R3: the job does not wait for what it can do without."""
    assert assign(placed(i0="x@e1"), {"b": "e1", "a": "e1"}, {0}) == placed(i0="a@e1")


def test_an_index_that_is_not_asked_for_keeps_its_slot_and_needs_none():
    """R3: what runs or has finished elsewhere is left alone."""
    before = placed(i0="a@e1", i1="x@e1", i2="y@e1")

    assert assign(before, {"a": "e1"}, {1}) == TooFewSlots(1)
    assert assign(before, {"a": "e1", "b": "e1"}, {1}) == placed(i0="a@e1", i1="b@e1", i2="y@e1")


def test_too_few_slots_are_counted():
    """R3: the status can show how many are missing."""
    assert assign({}, {"a": "e1"}, {0, 1, 2}) == TooFewSlots(2)


def test_an_index_goes_where_its_copies_were_found():
    """S13: after the driver's death every slot is new, and the disks are the old ones."""
    copies = {0: Copies("d2", 7), 1: Copies("d1", 7)}

    after = assign({}, {"a": "e1/d1", "b": "e2/d2"}, {0, 1}, copies)

    assert after == placed(i0="b@e2/d2", i1="a@e1/d1")


def test_a_lost_slot_comes_back_beside_its_copies():
    """S13: on the same executor or on another one of that machine, rather than elsewhere."""
    before = placed(i0="x@e1/d1")

    assert assign(before, {"a": "e2/d2", "b": "e1/d1"}, {0}) == placed(i0="b@e1/d1")
    assert assign(before, {"a": "e2/d2", "b": "e3/d1"}, {0}) == placed(i0="b@e3/d1")


def test_of_two_executors_beside_the_copies_the_one_that_lost_nothing_comes_first():
    """S13 R3: the executor of a lost slot may be going down as a whole."""
    after = assign(placed(i0="x@e1/d1"), {"a": "e1/d1", "b": "e3/d1"}, {0})

    assert after == placed(i0="b@e3/d1")


def test_an_index_without_copies_leaves_the_slot_beside_them_to_the_one_that_has():
    """S13: whatever their order."""
    after = assign({}, {"a": "e1/d1", "b": "e2/d2"}, {0, 1}, {1: Copies("d1", 3)})

    assert after == placed(i0="b@e2/d2", i1="a@e1/d1")


def test_copies_out_of_reach_do_not_delay_the_placement():
    """S13: another machine restores from storage."""
    after = assign(placed(i0="x@e1/d1"), {"b": "e2/d2"}, {0, 1}, {1: Copies("d9", 3)})
    assert after == TooFewSlots(1)

    after = assign(placed(i0="x@e1/d1"), {"b": "e2/d2", "c": "e3"}, {0, 1}, {1: Copies("d9", 3)})
    assert after == placed(i0="b@e2/d2", i1="c@e3")


@given(
    st.dictionaries(ids, st.builds(SlotAddress, executors, disks)),
    st.sets(st.integers(0, 4)),
    st.dictionaries(st.integers(0, 4), st.builds(Copies, disks, st.integers(1, 9))),
)
def test_as_many_indexes_as_can_be_are_seated_beside_their_copies(slots, indexes, copies):
    """S13: for each disk, as many as it has slots or copies."""
    after = placement.assign({}, slots, indexes, copies)
    if isinstance(after, TooFewSlots):
        return
    for disk in ("d1", "d2"):
        at_disk = [slot for slot, place in slots.items() if place.disk == disk]
        wanting = [i for i in indexes if i in copies and copies[i].disk == disk]
        near = [i for i in wanting if after[i].address.disk == disk]
        assert len(near) == min(len(wanting), len(at_disk))


@given(
    st.dictionaries(
        st.integers(0, 4), st.builds(Placement, ids, st.builds(SlotAddress, executors, disks))
    ),
    st.dictionaries(ids, st.builds(SlotAddress, executors, disks)),
    st.sets(st.integers(0, 4)),
)
def test_every_index_gets_a_registered_slot_of_its_own(placements, slots, indexes):
    """R3: for any slots that are there, and any that were."""
    one_each = {placement.slot: index for index, placement in placements.items()}
    before = {index: placements[index] for index in sorted(one_each.values())}

    after = placement.assign(before, slots, indexes, {})

    free = set(slots) - set(one_each)
    vacant = [i for i in indexes if i not in before or before[i].slot not in slots]
    if isinstance(after, TooFewSlots):
        assert after.missing == len(vacant) - len(free) > 0
        return
    places = [after[index].slot for index in sorted(indexes)]
    assert len(set(places)) == len(places)
    assert set(places) <= set(slots)
    assert all(after[i] == before[i] for i in before if i not in vacant)
