"""Decides which rows of a batch leave on which channel of an edge.

Every row leaves exactly once (on a broadcast edge, once for each receiver), rows for one receiver
keep their order, and no batch that leaves is empty or too long for a channel. Markers are not
routed: they go to everyone.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.core.ids import ChannelId
from weir.core.key_groups import owners_of
from weir.core.topology import Edge, EdgeKind, Topology, receivers_of
from weir.exchange.batch_sizes import cut
from weir.wire.keys import key_groups

Routed = list[tuple[ChannelId, pa.RecordBatch]]

Owners = npt.NDArray[np.generic]
Rows = npt.NDArray[np.int64]

PICKED_WIDTH = 32
"""Up to so many receivers it is faster to look for the rows of each than to sort them."""

WHOLE_ROWS = 8192
"""Up to so many rows a batch is dealt as one; a longer one is shared out among the receivers."""


class Router:
    """One sender's end of one edge."""

    def __init__(
        self, topology: Topology, edge: Edge, sender: int, keys: tuple[str, ...] = ()
    ) -> None:
        assert keys or edge.kind is not EdgeKind.HASH, f"hashed edge {edge.id} has no keys"
        target = topology.by_id[edge.target]
        senders = topology.by_id[edge.source].parallelism
        receivers = receivers_of(edge.kind, sender, senders, target.parallelism)
        if edge.kind is EdgeKind.GLOBAL:
            receivers = receivers[:1]
        self._kind = edge.kind
        self._keys = keys
        self._max_parallelism = target.max_parallelism
        self._channels = tuple(ChannelId(edge.id, sender, receiver) for receiver in receivers)
        # Senders begin with different receivers, so that short streams do not all end in one.
        self._turn = sender

    def route(self, batch: pa.RecordBatch) -> Routed:
        if not batch.num_rows:
            return []
        return [(channel, piece) for channel, part in self._parts(batch) for piece in cut(part)]

    def _parts(self, batch: pa.RecordBatch) -> Routed:
        if len(self._channels) == 1:
            return [(self._channels[0], batch)]
        match self._kind:
            case EdgeKind.HASH:
                return self._by_owner(batch)
            case EdgeKind.BROADCAST:
                return [(channel, batch) for channel in self._channels]
            case _:
                return [(self._next_channel(), piece) for piece in self._dealt(batch)]

    def _by_owner(self, batch: pa.RecordBatch) -> Routed:
        groups = key_groups(batch, self._keys, self._max_parallelism)
        width = len(self._channels)
        small = np.uint8 if width <= 1 << 8 else np.uint16
        owners = owners_of(groups, width, self._max_parallelism).astype(small)
        if owners.min() == owners.max():
            return [(self._channels[owners[0]], batch)]
        chosen = picked(owners, width) if width <= PICKED_WIDTH else sorted_out(owners, width)
        return [
            (channel, batch.take(pa.array(rows)))
            for channel, rows in zip(self._channels, chosen, strict=True)
            if len(rows)
        ]

    def _dealt(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        pieces = min(-(-batch.num_rows // WHOLE_ROWS), len(self._channels))
        length = -(-batch.num_rows // pieces)
        for start in range(0, batch.num_rows, length):
            yield batch.slice(start, length)

    def _next_channel(self) -> ChannelId:
        channel = self._channels[self._turn % len(self._channels)]
        self._turn += 1
        return channel


def picked(owners: Owners, width: int) -> list[Rows]:
    """The rows of each receiver, one look over all of them for each: best for a few receivers."""
    return [np.flatnonzero(owners == receiver) for receiver in range(width)]


def sorted_out(owners: Owners, width: int) -> list[Rows]:
    """The rows of each receiver by one sort, which NumPy does by radix for numbers this small."""
    order = np.argsort(owners, kind="stable")
    starts = np.searchsorted(owners[order], np.arange(1, width, dtype=owners.dtype))
    return np.split(order, starts)
