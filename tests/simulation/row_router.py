"""Routes the rows of a simulated subtask, one row at a time, over all edges that leave it."""

from simulation.row_values import GROUPS, Row, Rows
from simulation.scenario import MAX_PARALLELISM
from weir.core.ids import ChannelId, EdgeId, SubtaskId
from weir.core.key_groups import owner_of
from weir.core.topology import EdgeKind, Topology
from weir.ports.operators import Batch


class RowRouter:
    """Spreads rows over the output channels of one subtask."""

    def __init__(self, topology: Topology, subtask: SubtaskId) -> None:
        by_edge: dict[EdgeId, list[ChannelId]] = {}
        for channel in topology.outputs[subtask]:
            by_edge.setdefault(channel.edge, []).append(channel)
        self._edges = [
            (topology.edge_by_id[edge], channels, topology.by_id[topology.edge_by_id[edge].target])
            for edge, channels in by_edge.items()
        ]
        self._turn = 0

    def route(self, batch: Batch) -> list[tuple[ChannelId, Batch]]:
        routed: list[tuple[ChannelId, Batch]] = []
        for row in batch:
            for edge, channels, target in self._edges:
                element = Rows((self._tagged(edge.id, row),))
                picked = self._pick(edge.kind, channels, row, target.parallelism)
                routed += [(channel, element) for channel in picked]
        return routed

    def _pick(
        self, kind: EdgeKind, channels: list[ChannelId], row: Row, width: int
    ) -> list[ChannelId]:
        if kind is EdgeKind.BROADCAST:
            return channels
        if kind is EdgeKind.HASH:
            owner = owner_of(GROUPS[row[3]], width, MAX_PARALLELISM)
            return [channel for channel in channels if channel.receiver == owner]
        if kind is EdgeKind.GLOBAL:
            return [channel for channel in channels if channel.receiver == 0]
        self._turn += 1
        return [channels[self._turn % len(channels)]]

    def _tagged(self, edge: EdgeId, row: Row) -> Row:
        """Rows that branch carry the name of the branch they took."""
        if len(self._edges) == 1:
            return row
        return (row[0], row[1], row[2] + str(edge), row[3], row[4])
