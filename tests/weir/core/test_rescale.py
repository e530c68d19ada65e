"""Nothing of a checkpoint is lost, doubled or reordered when a job changes its width."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rescaled_jobs import (
    COUNT,
    GROUPS,
    READ,
    a_file,
    a_list,
    a_manifest,
    a_native,
    a_topology,
    caught,
    count,
    receivers,
    rescaled,
    rows_of,
)
from weir.core.ids import RECOVERED, EdgeId, Millis, OperatorId, SubtaskId
from weir.core.key_groups import range_of
from weir.core.rescale import (
    InFlightShare,
    ListShare,
    NativeShare,
    StateAssignment,
    assign_state,
    share_of,
    successor_of,
)
from weir.core.snapshots import (
    KeyedHandle,
    KeyGroupRange,
    Manifest,
    Redistribution,
    Side,
    SubtaskSnapshot,
)
from weir.core.topology import EdgeKind, Operator, Topology

POINTWISE = (EdgeKind.FORWARD, EdgeKind.REBALANCE, EdgeKind.RESCALE)


def counts(manifest: Manifest, topology: Topology, **options) -> list[StateAssignment]:
    restored_state = assign_state(manifest, topology, **options)
    assert tuple(restored_state) == topology.subtasks, (
        "one state assignment for every subtask, in order"
    )
    return [restored_state[count(i)] for i in range(topology.by_id[COUNT].parallelism)]


def test_keyed_state_is_read_where_the_old_and_the_new_range_meet():
    """S11: state moves by key groups."""
    manifest = a_manifest(
        a_topology(2),
        SubtaskSnapshot(count(1), keyed=(KeyedHandle(KeyGroupRange(8, 15), a_file("b")),)),
        SubtaskSnapshot(count(0), keyed=(KeyedHandle(KeyGroupRange(0, 7), a_file("a")),)),
    )

    assert [heir.keyed for heir in counts(manifest, a_topology(3))] == [
        (KeyedHandle(KeyGroupRange(0, 5), a_file("a")),),
        (
            KeyedHandle(KeyGroupRange(6, 7), a_file("a")),
            KeyedHandle(KeyGroupRange(8, 10), a_file("b")),
        ),
        (KeyedHandle(KeyGroupRange(11, 15), a_file("b")),),
    ]


def test_native_state_is_read_where_the_old_and_the_new_range_meet():
    """S2, S11: the same files for several new subtasks, each with its own key groups."""
    low = a_native(KeyGroupRange(0, 7), a_file("a"))
    high = a_native(KeyGroupRange(8, 15), a_file("b"))
    manifest = a_manifest(
        a_topology(2),
        SubtaskSnapshot(count(1), native=(high,)),
        SubtaskSnapshot(count(0), native=(low,)),
    )

    assert [heir.native for heir in counts(manifest, a_topology(3))] == [
        (NativeShare(KeyGroupRange(0, 5), low),),
        (NativeShare(KeyGroupRange(6, 7), low), NativeShare(KeyGroupRange(8, 10), high)),
        (NativeShare(KeyGroupRange(11, 15), high),),
    ]


def test_list_items_are_pooled_and_dealt_evenly_when_the_width_changes():
    """S11: operator list state is redistributed; a share may span files."""
    a, b = a_list(Redistribution.SPLIT, 5, "a"), a_list(Redistribution.SPLIT, 2, "b")
    manifest = a_manifest(
        a_topology(2), SubtaskSnapshot(count(0), lists=(a,)), SubtaskSnapshot(count(1), lists=(b,))
    )

    assert [heir.lists for heir in counts(manifest, a_topology(3))] == [
        (ListShare(a, 0, 3),),
        (ListShare(a, 3, 5),),
        (ListShare(b, 0, 2),),
    ]


def test_list_items_stay_where_they_were_when_the_width_stays():
    """S11: uneven shares are the user's own, so they are not evened out."""
    a = a_list(Redistribution.SPLIT, 5)
    manifest = a_manifest(a_topology(2), SubtaskSnapshot(count(1), lists=(a,)))

    assert [heir.lists for heir in counts(manifest, a_topology(2))] == [(), (ListShare(a, 0, 5),)]


def test_states_come_in_the_order_of_their_names_and_empty_files_are_not_read():
    """S11: a restore is equal to the letter whichever subtask answered first."""
    split, union = a_list(Redistribution.SPLIT, 1), a_list(Redistribution.UNION, 1)
    empty = a_list(Redistribution.UNION, 0, "empty")
    manifest = a_manifest(a_topology(1), SubtaskSnapshot(count(0), lists=(union, empty, split)))

    (heir,) = counts(manifest, a_topology(1))
    assert heir.lists == (ListShare(split, 0, 1), ListShare(union, 0, 1))


def test_union_state_goes_to_everyone():
    """S11."""
    a, b = a_list(Redistribution.UNION, 1, "a"), a_list(Redistribution.UNION, 2, "b")
    manifest = a_manifest(
        a_topology(2), SubtaskSnapshot(count(0), lists=(a,)), SubtaskSnapshot(count(1), lists=(b,))
    )

    for width in (1, 2, 5):
        for heir in counts(manifest, a_topology(width)):
            assert heir.lists == (ListShare(a, 0, 1), ListShare(b, 0, 2))


def test_broadcast_state_comes_from_one_old_subtask_that_had_not_finished():
    """S11, C14: a finished subtask contributes nothing, so it has no heirs."""
    b, c = (a_list(Redistribution.BROADCAST, 1, path) for path in "bc")
    manifest = a_manifest(
        a_topology(3),
        SubtaskSnapshot(count(1), lists=(b,)),
        SubtaskSnapshot(count(2), lists=(c,)),
        finished=[count(0)],
    )

    heirs = counts(manifest, a_topology(5))
    assert [[share.handle for share in heir.lists] for heir in heirs] == [[b], [b], [c], [c], [b]]
    assert [successor_of(index, [1, 2]) for index in range(5)] == [1, 1, 2, 2, 1]


def test_replay_begins_with_what_was_recovered_and_takes_input_before_output():
    """A10: edge by edge, then sender, receiver and side, whatever the manifest's own order."""
    old = a_topology(2)
    manifest = a_manifest(
        old,
        SubtaskSnapshot(
            SubtaskId(READ, 1),
            in_flight=(
                caught(EdgeKind.GLOBAL, 1, 0, Side.OUTPUT),
                caught(EdgeKind.HASH, 1, 0, Side.OUTPUT),
            ),
        ),
        SubtaskSnapshot(count(1), in_flight=(caught(EdgeKind.HASH, 0, 1, Side.INPUT),)),
        SubtaskSnapshot(
            count(0),
            in_flight=(
                caught(EdgeKind.HASH, 1, 0, Side.INPUT),
                caught(EdgeKind.HASH, RECOVERED, 0, Side.INPUT),
                caught(EdgeKind.FORWARD, 0, 0, Side.INPUT),
            ),
        ),
        SubtaskSnapshot(SubtaskId(READ, 0), in_flight=(caught(EdgeKind.HASH, 0, 0, Side.OUTPUT),)),
    )

    (only,) = counts(manifest, a_topology(1))
    assert [share.handle.file.path for share in only.in_flight] == [
        "forward 0>0 input",
        "hash -1>0 input",
        "hash 0>0 output",
        "hash 0>1 input",
        "hash 1>0 input",
        "hash 1>0 output",
        "global 1>0 output",
    ]


def test_hashed_rows_are_filtered_only_where_a_channel_is_divided():
    """A10: hashed rows go by key group."""
    channel = caught(EdgeKind.HASH, 0, 1, Side.INPUT)
    manifest = a_manifest(a_topology(2), SubtaskSnapshot(count(1), in_flight=(channel,)))

    def replayed(width):
        return [heir.in_flight for heir in counts(manifest, a_topology(width))]

    assert replayed(1) == [(InFlightShare(channel, None),)]
    assert replayed(2) == [(), (InFlightShare(channel, None),)]
    assert replayed(3) == [
        (),
        (InFlightShare(channel, KeyGroupRange(8, 10)),),
        (InFlightShare(channel, KeyGroupRange(11, 15)),),
    ]


@pytest.mark.parametrize("kind", POINTWISE)
def test_a_channel_without_keys_moves_as_a_whole(kind):
    """A10: to the receiver in the same proportion."""
    handles = [caught(kind, i, i, Side.INPUT) for i in range(4)]
    manifest = a_manifest(
        a_topology(4, senders=4),
        *(SubtaskSnapshot(count(i), in_flight=(handles[i],)) for i in range(4)),
    )

    def replayed(width):
        heirs = counts(manifest, a_topology(width, senders=4))
        return [[share.handle.channel.receiver for share in heir.in_flight] for heir in heirs]

    assert replayed(2) == [[0, 1], [2, 3]]
    assert replayed(4) == [[0], [1], [2], [3]]
    assert replayed(8) == [[0], [], [1], [], [2], [], [3], []]


def test_a_checkpoint_can_be_restored_without_its_in_flight_data():
    """C15: the rest of it stays."""
    kept = a_list(Redistribution.SPLIT, 1)
    manifest = a_manifest(
        a_topology(1),
        SubtaskSnapshot(
            count(0), lists=(kept,), in_flight=(caught(EdgeKind.GLOBAL, 0, 0, Side.INPUT),)
        ),
    )

    (heir,) = counts(manifest, a_topology(1), without_in_flight=True)
    assert heir == StateAssignment(count(0), lists=(ListShare(kept, 0, 1),))


def test_watermarks_restart_at_the_lowest_of_all_old_subtasks():
    """A10: the minimum per input, at any width; an input without a recorded one has none."""
    hashed, forward = EdgeId(EdgeKind.HASH), EdgeId(EdgeKind.FORWARD)
    manifest = a_manifest(
        a_topology(2),
        SubtaskSnapshot(count(0), watermarks=((hashed, Millis(7)),)),
        SubtaskSnapshot(count(1), watermarks=((hashed, Millis(5)), (forward, Millis(9)))),
    )

    for width in (1, 2, 3):
        for heir in counts(manifest, a_topology(width)):
            assert heir.watermarks == ((forward, Millis(9)), (hashed, Millis(5)))


def test_a_finished_subtask_stays_finished_and_inherits_nothing_while_the_width_stays():
    """C14: not even a copy of what is broadcast, or a watermark."""
    rules = a_list(Redistribution.BROADCAST, 1)
    manifest = a_manifest(
        a_topology(2),
        SubtaskSnapshot(
            count(1),
            lists=(rules,),
            in_flight=(caught(EdgeKind.BROADCAST, 0, 1, Side.INPUT),),
            watermarks=((EdgeId(EdgeKind.HASH), Millis(5)),),
        ),
        finished=[count(0)],
    )

    finished, running = counts(manifest, a_topology(2))
    assert finished == StateAssignment(count(0), finished=True)
    assert not running.finished
    assert len(running.in_flight) == len(running.lists) == 1


def test_after_a_change_of_width_only_an_operator_that_finished_as_a_whole_is_finished():
    """C14: a part of it has no counterpart among the new subtasks."""
    partly = a_manifest(a_topology(2), finished=[count(0)])
    wholly = a_manifest(a_topology(2), finished=[count(1), count(0)])

    assert [heir.finished for heir in counts(partly, a_topology(3))] == [False] * 3
    assert [heir.finished for heir in counts(wholly, a_topology(3))] == [True] * 3


def test_an_operator_that_the_checkpoint_does_not_know_begins_empty():
    """C15: and one that the topology does not know leaves nothing behind."""
    newcomer, gone = Operator(OperatorId("new"), 2, GROUPS), Operator(OperatorId("old"), 1, GROUPS)
    before, after = Topology((gone,), ()), Topology((newcomer,), ())
    left = SubtaskSnapshot(SubtaskId(gone.id, 0), lists=(a_list(Redistribution.UNION, 1),))

    assert assign_state(a_manifest(before, left), after) == {
        subtask: StateAssignment(subtask) for subtask in after.subtasks
    }


def test_what_recovery_should_have_refused_fails_an_assertion():
    """S11, C14, C15: another max parallelism, a lost edge, a finished subtask with state."""
    old = a_topology(2)
    in_flight = SubtaskSnapshot(count(0), in_flight=(caught(EdgeKind.HASH, 0, 0, Side.INPUT),))

    moved = replace(old, operators=tuple(replace(o, max_parallelism=32) for o in old.operators))
    with pytest.raises(AssertionError, match="max parallelism moved"):
        assign_state(a_manifest(old), moved)
    with pytest.raises(AssertionError, match="is no more"):
        assign_state(a_manifest(old, in_flight), replace(old, edges=()))
    with pytest.raises(AssertionError, match="finished and has a snapshot"):
        assign_state(a_manifest(old, in_flight, finished=[count(0)]), old)
    with pytest.raises(AssertionError, match="caught elsewhere"):
        assign_state(a_manifest(old, replace(in_flight, subtask=count(1))), old)
    united = SubtaskSnapshot(count(0), lists=(a_list(Redistribution.UNION, 1),))
    with pytest.raises(AssertionError, match="partly finished"):
        assign_state(a_manifest(old, united, finished=[count(1)]), old)
    late = caught(EdgeKind.HASH, 0, 1, Side.OUTPUT)
    sender = SubtaskSnapshot(SubtaskId(READ, 0), in_flight=(late,))
    with pytest.raises(AssertionError, match="on their way to a subtask that had finished"):
        assign_state(a_manifest(old, sender, finished=[count(1)]), old)


@given(st.integers(1, 40), st.integers(0, 200))
def test_shares_are_even_and_contiguous(parallelism, items):
    """S11: sizes differ by at most one."""
    shares = [share_of(index, parallelism, items) for index in range(parallelism)]

    assert [item for first, stop in shares for item in range(first, stop)] == list(range(items))
    sizes = [stop - first for first, stop in shares]
    assert max(sizes) - min(sizes) <= 1


# --- Restore after snapshot, with real contents ---------------------------------------------------

width = st.integers(1, 8)
salt = st.integers(0, 1000)
topologies = st.builds(a_topology, width, width)


@given(topologies, topologies, salt)
def test_every_key_group_and_list_item_finds_exactly_one_new_home(old, new, salt):
    """S11: a new subtask has its own key groups and an even run of the pooled items."""
    before, after = rescaled(old, new, salt=salt)

    homes, parallelism = receivers(after), new.by_id[COUNT].parallelism
    for index, held in enumerate(homes):
        own = range_of(index, parallelism, GROUPS)
        assert held.groups == list(range(own.first, own.last + 1))
    pool = [item for held in receivers(before) for item in held.lists[Redistribution.SPLIT]]
    dealt = [held.lists[Redistribution.SPLIT] for held in homes]
    assert [item for items in dealt for item in items] == pool
    if old.by_id[COUNT].parallelism != parallelism:
        assert max(map(len, dealt)) - min(map(len, dealt)) <= 1


@given(topologies, topologies, salt)
def test_every_new_subtask_has_the_whole_union(old, new, salt):
    """S11."""
    before, after = rescaled(old, new, salt=salt)

    union = [item for held in receivers(before) for item in held.lists[Redistribution.UNION]]
    assert all(held.lists[Redistribution.UNION] == union for held in receivers(after))


@given(topologies, topologies, salt)
def test_every_row_in_flight_is_replayed_by_exactly_one_new_subtask(old, new, salt):
    """A10: on every kind of edge but broadcast; hashed rows by the owner of their key group."""
    before, after = rescaled(old, new, salt=salt)

    for kind in EdgeKind:
        if kind is not EdgeKind.BROADCAST:
            assert Counter(rows_of(after, kind)) == Counter(rows_of(before, kind))
    for held in receivers(after):
        assert all(row.group in held.groups for row in held.replay(EdgeKind.HASH))


@given(topologies, topologies, salt)
def test_a_new_subtask_follows_one_old_subtask_in_all_that_is_broadcast(old, new, salt):
    """A10: its copy of the state together with its own in-flight rows, all of them."""
    before, after = rescaled(old, new, salt=salt)

    for held in receivers(after):
        (copy,) = held.lists[Redistribution.BROADCAST]
        followed = int(copy.removeprefix("copy of "))
        assert Counter(held.replay(EdgeKind.BROADCAST)) == Counter(
            row for row in rows_of(before, EdgeKind.BROADCAST) if row.origin.receiver == followed
        )


@given(topologies, topologies, topologies, salt)
def test_rows_keep_their_order_and_recovered_ones_go_first(old, mid, new, salt):
    """A10: by key on a hashed edge, else by channel; also if rescaled again before they ran."""
    _, after = rescaled(old, mid, new, salt=salt)

    for held in receivers(after):
        for kind in EdgeKind:
            last: dict[object, int] = {}
            live: set[object] = set()
            for row in held.replay(kind):
                channel = row.origin
                group = row.group if kind is EdgeKind.HASH else None
                assert row.number > last.get((channel, group), -1)
                last[channel, group] = row.number
                if channel.sender == RECOVERED:
                    assert (channel.receiver, group) not in live
                else:
                    live.add((channel.receiver, group))


@given(topologies, salt)
def test_at_the_same_width_everyone_inherits_from_itself(topology, salt):
    """S11, A10: restoring in place changes nothing."""
    before, after = rescaled(topology, topology, salt=salt)

    for old, new in zip(receivers(before), receivers(after), strict=True):
        assert new.groups == old.groups
        for kept in (Redistribution.SPLIT, Redistribution.BROADCAST):
            assert new.lists[kept] == old.lists[kept]
    for index, held in enumerate(receivers(after)):
        for kind in EdgeKind:
            assert all(row.origin.receiver == index for row in held.replay(kind))
            own = [row for row in rows_of(before, kind) if row.origin.receiver == index]
            assert Counter(held.replay(kind)) == Counter(own)


@given(topologies, topologies, salt)
def test_there_and_back_again_nothing_is_missing(here, there, salt):
    """S11, A10: P -> Q -> P returns every key group, item and row."""
    before, after = rescaled(here, there, here, salt=salt)

    for old, new in zip(receivers(before), receivers(after), strict=True):
        assert new.groups == old.groups
        (copy,) = new.lists[Redistribution.BROADCAST]
        assert {f"copy of {row.origin.receiver}" for row in new.replay(EdgeKind.BROADCAST)} <= {
            copy
        }
    assert [i for held in receivers(after) for i in held.lists[Redistribution.SPLIT]] == [
        i for held in receivers(before) for i in held.lists[Redistribution.SPLIT]
    ]
    for kind in EdgeKind:
        if kind is not EdgeKind.BROADCAST:
            assert Counter(rows_of(after, kind)) == Counter(rows_of(before, kind))
