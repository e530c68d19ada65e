"""Which native instance a new subtask opens, and what it deletes from it and copies into it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rescaled_jobs import a_native
from weir.core.key_groups import range_of
from weir.core.native_restore import outside, plan_native_restore
from weir.core.rescale import NativeShare
from weir.core.snapshots import KeyGroupRange, StateFile

GROUPS = 128


def an_instance(first: int, last: int, size: int):
    return a_native(KeyGroupRange(first, last), StateFile(f"shared/{first}", size, shared=True))


def test_without_native_state_there_is_nothing_to_open() -> None:
    """S2: the state comes from open files alone."""
    assert plan_native_restore(()) is None


def test_an_instance_of_the_same_key_groups_is_opened_as_it_is() -> None:
    """S2: nothing is deleted and nothing copied where the parallelism is the same."""
    share = NativeShare(KeyGroupRange(0, 63), an_instance(0, 63, 900))

    plan = plan_native_restore((share,))

    assert plan is not None
    assert (plan.opened, plan.clipped, plan.copied) == (share, (), ())


def test_the_instance_with_the_most_state_in_the_range_is_opened() -> None:
    """S2, S11: half of a large one is more than all of a small one."""
    small = NativeShare(KeyGroupRange(0, 9), an_instance(0, 9, 100))
    large = NativeShare(KeyGroupRange(10, 19), an_instance(10, 29, 1000))

    plan = plan_native_restore((small, large))

    assert plan is not None
    assert plan.opened == large
    assert plan.clipped == (KeyGroupRange(20, 29),)
    assert plan.copied == (small,)


@pytest.mark.parametrize(
    ("groups", "clipped"),
    [
        ((3, 5), [(0, 2), (6, 9)]),
        ((0, 5), [(6, 9)]),
        ((6, 9), [(0, 5)]),
        ((0, 9), []),
    ],
)
def test_what_is_outside_of_a_share_is_clipped_on_both_sides(groups, clipped) -> None:
    """S11: exactly the key groups of other subtasks."""
    share = NativeShare(KeyGroupRange(*groups), an_instance(0, 9, 10))

    assert outside(share) == tuple(KeyGroupRange(*each) for each in clipped)


@given(st.integers(1, 8), st.integers(1, 8), st.lists(st.integers(0, 999), min_size=8, max_size=8))
def test_every_key_group_is_kept_or_copied_once(old: int, new: int, sizes: list[int]) -> None:
    """S11: at every parallelism, however large the instances are."""
    ranges = [KeyGroupRange(*range_of(index, old, GROUPS)) for index in range(old)]
    instances = [an_instance(*each, size) for each, size in zip(ranges, sizes, strict=False)]
    for index in range(new):
        own = range_of(index, new, GROUPS)
        met = [
            NativeShare(KeyGroupRange(max(own.first, g.first), min(own.last, g.last)), instance)
            for g, instance in zip(ranges, instances, strict=True)
            if max(own.first, g.first) <= min(own.last, g.last)
        ]
        plan = plan_native_restore(met)
        assert plan is not None
        first, last = plan.opened.handle.groups
        kept = [
            group
            for group in range(first, last + 1)
            if not any(group in clipped for clipped in plan.clipped)
        ]
        for share in plan.copied:
            kept += range(share.groups.first, share.groups.last + 1)
        assert sorted(kept) == list(range(own.first, own.last + 1))
