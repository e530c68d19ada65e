"""Every row leaves once, on the channel that its edge's kind determines, and in order."""

from collections import defaultdict

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.core.ids import ChannelId
from weir.core.key_groups import owner_of
from weir.core.topology import Edge, EdgeKind, Operator, Topology
from weir.exchange.batch_sizes import BATCH_BYTES, size_of
from weir.exchange.routing import WHOLE_ROWS, Router
from weir.wire.keys import key_groups

WIDTHS = st.integers(1, 9)
KEYS = st.lists(st.integers(-50, 50) | st.none(), max_size=60)


def a_router(kind, sender=0, senders=1, receivers=3, keys=()):
    operators = (Operator("map", senders), Operator("sum", receivers))
    edge = Edge("e", "map", "sum", kind)
    return Router(Topology(operators, (edge,)), edge, sender, keys)


def rows(count):
    return pa.record_batch({"n": pa.array(range(count), pa.int64())})


def by_receiver(routed):
    """The numbers that each receiver gets, in order."""
    received = defaultdict(list)
    for channel, batch in routed:
        assert batch.num_rows
        received[channel.receiver] += batch.column("n").to_pylist()
    return dict(received)


@given(KEYS, WIDTHS)
def test_every_row_goes_once_to_the_owner_of_its_key_group(keys, receivers):
    """A10."""
    batch = pa.record_batch(
        {"n": pa.array(range(len(keys)), pa.int64()), "k": pa.array(keys, pa.int64())}
    )
    routed = a_router(EdgeKind.HASH, receivers=receivers, keys=("k",)).route(batch)

    expected = defaultdict(list)
    for row, group in enumerate(key_groups(batch, ("k",), 128).tolist()):
        expected[owner_of(group, receivers, 128)].append(row)
    assert by_receiver(routed) == expected
    for _, piece in routed:
        assert piece.column("k").to_pylist() == [keys[n] for n in piece.column("n").to_pylist()]


@pytest.mark.parametrize("kind", list(EdgeKind))
def test_no_batch_that_leaves_is_too_long_for_a_channel(kind):
    """R7: credits count batches, so they bound bytes only if batches have a longest size."""
    width = 1 if kind is EdgeKind.FORWARD else 3
    batch = rows(BATCH_BYTES)
    routed = a_router(kind, receivers=width, keys=("n",)).route(batch)

    copies = width if kind is EdgeKind.BROADCAST else 1
    assert max(size_of(piece) for _, piece in routed) <= BATCH_BYTES
    assert sum(piece.num_rows for _, piece in routed) == copies * batch.num_rows


def test_more_receivers_than_a_byte_can_count_each_get_their_own():
    topology = Topology(
        (Operator("map", 1), Operator("sum", 300, max_parallelism=512)),
        (edge := Edge("e", "map", "sum", EdgeKind.HASH),),
    )
    batch = rows(20_000)
    routed = Router(topology, edge, 0, ("n",)).route(batch)

    assert len(routed) == 300
    for channel, piece in routed:
        groups = key_groups(piece, ("n",), 512).tolist()
        assert {owner_of(group, 300, 512) for group in groups} == {channel.receiver}


def test_rows_of_one_owner_travel_as_the_batch_they_came_in():
    batch = pa.record_batch({"n": [1, 2, 3], "k": ["same"] * 3})
    ((_, routed),) = a_router(EdgeKind.HASH, keys=("k",)).route(batch)

    assert routed is batch


@given(st.integers(0, 3 * WHOLE_ROWS), WIDTHS, WIDTHS)
def test_round_robin_gives_every_row_to_one_receiver(count, senders, receivers):
    for sender in range(senders):
        router = a_router(EdgeKind.REBALANCE, sender, senders, receivers)
        received = by_receiver(router.route(rows(count)))

        assert sorted(n for got in received.values() for n in got) == list(range(count))


def test_small_batches_are_dealt_whole_and_in_turn():
    router = a_router(EdgeKind.REBALANCE)

    assert [by_receiver(router.route(rows(5))) for _ in range(4)] == [
        {0: [0, 1, 2, 3, 4]},
        {1: [0, 1, 2, 3, 4]},
        {2: [0, 1, 2, 3, 4]},
        {0: [0, 1, 2, 3, 4]},
    ]


def test_senders_begin_with_different_receivers():
    first = [
        a_router(EdgeKind.REBALANCE, sender, senders=3).route(rows(1))[0][0].receiver
        for sender in range(3)
    ]

    assert first == [0, 1, 2]


def test_a_large_batch_is_shared_out():
    routed = a_router(EdgeKind.REBALANCE).route(rows(30 * WHOLE_ROWS))

    assert [batch.num_rows for _, batch in routed] == [10 * WHOLE_ROWS] * 3


@pytest.mark.parametrize(
    ("kind", "sender", "senders", "receivers", "expected"),
    [
        (EdgeKind.FORWARD, 1, 3, 3, [1, 1]),
        (EdgeKind.GLOBAL, 2, 3, 3, [0, 0]),
        (EdgeKind.RESCALE, 3, 4, 2, [1, 1]),
        (EdgeKind.RESCALE, 1, 2, 4, [3, 2]),
        (EdgeKind.HASH, 0, 2, 1, [0, 0]),
    ],
)
def test_each_kind_of_edge_has_its_receivers(kind, sender, senders, receivers, expected):
    router = a_router(kind, sender, senders, receivers, keys=("n",))
    routed = [*router.route(rows(2)), *router.route(rows(2))]

    assert [channel for channel, _ in routed] == [ChannelId("e", sender, r) for r in expected]
    assert all(batch == rows(2) for _, batch in routed)


def test_a_broadcast_goes_to_everyone():
    assert by_receiver(a_router(EdgeKind.BROADCAST).route(rows(2))) == {r: [0, 1] for r in range(3)}


@pytest.mark.parametrize("kind", [kind for kind in EdgeKind if kind is not EdgeKind.FORWARD])
def test_no_rows_leave_nothing(kind):
    assert a_router(kind, keys=("n",)).route(rows(0)) == []
