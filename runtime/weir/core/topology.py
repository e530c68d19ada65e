"""Describes the running dataflow: operators, edges, and the channels they unfold into.

The graph is what a checkpoint's plan, a region and a restore are decided on, so it is a value with
a stable fingerprint. It knows nothing of user functions or schemas: an operator here is a name with
a width and the few facts that change a decision.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from weir.core.ids import RECOVERED, ChannelId, EdgeId, OperatorId, SubtaskId


class EdgeKind(StrEnum):
    """How an edge spreads its rows over the receivers."""

    FORWARD = "forward"
    """Sender i to receiver i; both sides are equally wide."""
    HASH = "hash"
    """By key group."""
    REBALANCE = "rebalance"
    """Round robin over all receivers."""
    RESCALE = "rescale"
    """Pointwise: each sender serves its own share of the receivers, or the reverse."""
    BROADCAST = "broadcast"
    """Every row to every receiver."""
    GLOBAL = "global"
    """Every row to receiver 0; markers go to all."""


@dataclass(frozen=True, slots=True)
class Operator:
    """One step of the dataflow, as far as decisions care."""

    id: OperatorId
    parallelism: int
    max_parallelism: int = 128
    is_sink: bool = False
    has_union_state: bool = False
    is_coordinated: bool = False
    """A part of it lives in the driver (enumerator, committer, hook) and has a snapshot there."""
    is_externally_induced: bool = False
    """Its source wants to start checkpoints itself, which Weir refuses."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A directed stream between two operators."""

    id: EdgeId
    source: OperatorId
    target: OperatorId
    kind: EdgeKind
    is_feedback: bool = False
    """Closes a loop; barriers do not travel on it."""


ChannelEnd = Callable[[Edge, ChannelId], SubtaskId]


@dataclass(frozen=True)
class Topology:
    """All operators and edges of one job; the derived tables are computed once."""

    operators: tuple[Operator, ...]
    edges: tuple[Edge, ...]

    @cached_property
    def by_id(self) -> dict[OperatorId, Operator]:
        return {operator.id: operator for operator in self.operators}

    @cached_property
    def edge_by_id(self) -> dict[EdgeId, Edge]:
        return {edge.id: edge for edge in self.edges}

    @cached_property
    def subtasks(self) -> tuple[SubtaskId, ...]:
        return tuple(
            SubtaskId(operator.id, index)
            for operator in self.operators
            for index in range(operator.parallelism)
        )

    @cached_property
    def slots_needed(self) -> int:
        """A slot hosts one subtask of each operator, so the widest operator sets the number."""
        return max(operator.parallelism for operator in self.operators)

    @cached_property
    def inputs(self) -> dict[SubtaskId, tuple[ChannelId, ...]]:
        return self._channels_by(lambda edge, channel: SubtaskId(edge.target, channel.receiver))

    @cached_property
    def outputs(self) -> dict[SubtaskId, tuple[ChannelId, ...]]:
        return self._channels_by(lambda edge, channel: SubtaskId(edge.source, channel.sender))

    @cached_property
    def sources(self) -> tuple[OperatorId, ...]:
        fed = {edge.target for edge in self.edges if not edge.is_feedback}
        return tuple(operator.id for operator in self.operators if operator.id not in fed)

    @cached_property
    def sinks(self) -> tuple[OperatorId, ...]:
        return tuple(operator.id for operator in self.operators if operator.is_sink)

    @cached_property
    def regions(self) -> dict[SubtaskId, int]:
        """Subtasks joined by channels share a region; a failure travels no further than that.

        Union state joins them too: each restores what all of them had.
        """
        region = {subtask: number for number, subtask in enumerate(self.subtasks)}
        ties = [
            (self.sender(channel), self.receiver(channel))
            for edge in self.edges
            for channel in self.channels(edge)
        ]
        ties += [
            (SubtaskId(operator.id, 0), SubtaskId(operator.id, index))
            for operator in self.operators
            if operator.has_union_state
            for index in range(1, operator.parallelism)
        ]
        for one, other in ties:
            joined, gone = sorted((region[one], region[other]))
            if joined != gone:
                region = {s: joined if number == gone else number for s, number in region.items()}
        return region

    def channels(self, edge: Edge) -> tuple[ChannelId, ...]:
        senders = self.by_id[edge.source].parallelism
        receivers = self.by_id[edge.target].parallelism
        return tuple(
            ChannelId(edge.id, sender, receiver)
            for sender in range(senders)
            for receiver in receivers_of(edge.kind, sender, senders, receivers)
        )

    def sender(self, channel: ChannelId) -> SubtaskId:
        assert channel.sender != RECOVERED, "a recovered channel has no sender"
        return SubtaskId(self.edge_by_id[channel.edge].source, channel.sender)

    def receiver(self, channel: ChannelId) -> SubtaskId:
        return SubtaskId(self.edge_by_id[channel.edge].target, channel.receiver)

    def fingerprint(self) -> tuple[object, ...]:
        """Equal for two jobs exactly when one restores the other's checkpoints as its own.

        Widths are left out: a rescaled job is the same graph.
        """
        return (
            tuple(sorted((o.id, o.max_parallelism, o.is_sink) for o in self.operators)),
            tuple(sorted((e.id, e.source, e.target, e.kind.value) for e in self.edges)),
        )

    def _channels_by(self, end: ChannelEnd) -> dict[SubtaskId, tuple[ChannelId, ...]]:
        found: dict[SubtaskId, list[ChannelId]] = defaultdict(list)
        for edge in self.edges:
            for channel in self.channels(edge):
                found[end(edge, channel)].append(channel)
        return {subtask: tuple(found[subtask]) for subtask in self.subtasks}


def receivers_of(kind: EdgeKind, sender: int, senders: int, receivers: int) -> tuple[int, ...]:
    """The receivers that one sender has a channel to."""
    match kind:
        case EdgeKind.FORWARD:
            assert senders == receivers, "a forward edge joins operators of one width"
            return (sender,)
        case EdgeKind.RESCALE if senders > receivers:
            return (sender * receivers // senders,)
        case EdgeKind.RESCALE:
            return tuple(r for r in range(receivers) if r * senders // receivers == sender)
        case _:
            return tuple(range(receivers))
