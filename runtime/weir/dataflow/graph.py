"""Turns what a user described into the graph that runs: stages, their edges, their ids.

Decided here and nowhere else: steps without state fold into the stage before them where rows need
not move, and everything that has state gets a stage, an id and a width. The same description gives
the same ids in every run, because a checkpoint finds its state by them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from weir.core.graph_validation import Refused, validate
from weir.core.ids import EdgeId, OperatorId
from weir.core.key_groups import default_max_parallelism
from weir.core.snapshots import Redistribution
from weir.core.topology import Edge, EdgeKind, Operator, Topology
from weir.dataflow.logical import (
    Apply,
    Exchange,
    Keyed,
    Node,
    OperatorSettings,
    Process,
    Read,
    Union,
    WrittenStream,
    inputs_of,
)
from weir.dataflow.physical import (
    AggregateHead,
    FunctionHead,
    Head,
    JobGraph,
    ProcessorHead,
    RelayHead,
    SinkHead,
    SourceHead,
    Stage,
    Step,
)
from weir.errors import JobRejected, reject_all


@dataclass(frozen=True, slots=True)
class GraphDefaults:
    """For operators of which nothing else was asked."""

    parallelism: int = 1
    max_parallelism: int | None = None
    """None: what the operator inherits, or else derived from its parallelism."""
    inherited: Mapping[OperatorId, int] = field(default_factory=dict)
    """The max parallelism of the state that the job goes on from, by operator (spec S11)."""


def build(sinks: Sequence[WrittenStream], defaults: GraphDefaults) -> JobGraph:
    """The graph of everything that is written, or a refusal that lists all that is wrong."""
    if not sinks:
        raise JobRejected(
            "the job writes nothing",
            "no stream of it ends in a sink",
            "end a stream with writeStream…start()",
        )
    plan = _Plan(sinks, defaults)
    graph = plan.graph()
    admit(graph)
    return graph


def admit(graph: JobGraph) -> None:
    """Refuse a graph that could not be checkpointed, with every reason there is (spec C20)."""
    refusals = [found for found in validate(graph.topology) if isinstance(found, Refused)]
    if refusals:
        found = [JobRejected(f"{r.subject} is refused", r.reason, r.remedy) for r in refusals]
        raise reject_all("the job", found)


@dataclass(frozen=True, slots=True, eq=False)
class _Link:
    """Where rows come from, and how they get here if the user said so."""

    draft: "_Draft"
    kind: EdgeKind | None = None
    keys: tuple[str, ...] = ()
    parallelism: int = 0
    is_broadcast_input: bool = False
    """It is the second input of a function, the one that may change broadcast state."""


@dataclass(slots=True, eq=False)
class _Draft:
    """A stage to which steps are still being added."""

    head: Head
    parallelism: int
    output: pa.Schema
    settings: OperatorSettings
    links: list[_Link]
    id: OperatorId
    steps: list[Step] = field(default_factory=list)


class _Plan:
    """Visits every node once, inputs first, and numbers the stages in that order."""

    def __init__(self, sinks: Sequence[WrittenStream], defaults: GraphDefaults) -> None:
        self.defaults = defaults
        self.drafts: list[_Draft] = []
        self._made: dict[int, _Draft] = {}
        nodes = _nodes(sinks)
        self._consumers = Counter(id(below) for node in nodes for below in inputs_of(node))
        _refuse_twins(nodes)
        for sink in sinks:
            links = self._links(sink.input)
            self._draft(SinkHead(sink.sink), sink.settings, links, pa.schema([]))

    def graph(self) -> JobGraph:
        edges: list[Edge] = []
        keys: dict[EdgeId, tuple[str, ...]] = {}
        broadcast: dict[OperatorId, list[EdgeId]] = {}
        taken: Counter[str] = Counter()
        for draft in self.drafts:
            for link in draft.links:
                path = f"{link.draft.id}->{draft.id}"
                taken[path] += 1
                edge = EdgeId(path if taken[path] == 1 else f"{path}#{taken[path]}")
                kind = link.kind or _natural(link.draft, draft)
                edges.append(Edge(edge, link.draft.id, draft.id, kind))
                if kind is EdgeKind.HASH:
                    keys[edge] = link.keys
                if link.is_broadcast_input:
                    broadcast.setdefault(draft.id, []).append(edge)
        operators = tuple(self._operator(draft) for draft in self.drafts)
        stages = tuple(
            Stage(
                d.id,
                _with_broadcast_edges(d.head, broadcast.get(d.id, ())),
                tuple(d.steps),
                d.output,
                d.settings.name,
            )
            for d in self.drafts
        )
        return JobGraph(Topology(operators, tuple(edges)), stages, keys)

    def _links(self, node: Node) -> list[_Link]:
        """The stages that a node's rows come from; the redistribution nearest to us counts."""
        match node:
            case Union():
                return [link for below in node.inputs for link in self._links(below)]
            case Exchange():
                return [
                    _Link(link.draft, node.kind, node.keys, node.parallelism or link.parallelism)
                    for link in self._links(node.input)
                ]
            case _:
                return [_Link(self._stage(node))]

    def _stage(self, node: Read | Apply | Keyed | Process) -> _Draft:
        if id(node) not in self._made:
            self._made[id(node)] = self._new_stage(node)
        return self._made[id(node)]

    def _new_stage(self, node: Read | Apply | Keyed | Process) -> _Draft:
        match node:
            case Read():
                head = SourceHead(node.source, node.event_time, node.delay_ms)
                return self._draft(head, node.settings, [], node.schema)
            case Keyed():
                links = [
                    _Link(link.draft, EdgeKind.HASH, node.head.keys, link.parallelism)
                    for link in self._links(node.input)
                ]
                return self._draft(node.head, node.settings, links, node.schema)
            case Process():
                return self._function(node)
            case Apply():
                return self._folded(node) or self._relay(node)

    def _folded(self, node: Apply) -> _Draft | None:
        """The stage before, with this step added, if rows need not move for it."""
        links = self._links(node.input)
        before = links[0].draft
        stays = len(links) == 1 and links[0].kind is None
        is_only_consumer = self._consumers[id(node.input)] == 1
        fits = (
            node.settings.parallelism in {0, before.parallelism}
            and not node.settings.max_parallelism
        )
        if not (stays and is_only_consumer and fits):
            return None
        before.steps.append(node.step)
        before.output = node.schema
        return before

    def _relay(self, node: Apply) -> _Draft:
        """A stage for the step alone, as wide as what comes before it if that is one stage."""
        links = self._links(node.input)
        draft = self._draft(RelayHead(), node.settings, links, node.schema, _inherited(links))
        draft.steps.append(node.step)
        return draft

    def _function(self, node: Process) -> _Draft:
        """A stage for the function; what is broadcast to it says nothing about its width."""
        links = self._links(node.input)
        broadcast = [
            _Link(link.draft, EdgeKind.BROADCAST, is_broadcast_input=True)
            for below in node.broadcasts
            for link in self._links(below)
        ]
        inherited = _inherited(links)
        return self._draft(node.head, node.settings, [*links, *broadcast], node.schema, inherited)

    def _draft(
        self,
        head: Head,
        settings: OperatorSettings,
        links: list[_Link],
        output: pa.Schema,
        inherited: int = 0,
    ) -> _Draft:
        hint = max((link.parallelism for link in links), default=0)
        parallelism = settings.parallelism or hint or inherited or self.defaults.parallelism
        name = OperatorId(settings.uid or f"{_kind_of(head)}-{len(self.drafts) + 1}")
        draft = _Draft(head, parallelism, output, settings, links, name)
        self._refuse_twin(draft)
        self.drafts.append(draft)
        return draft

    def _refuse_twin(self, draft: _Draft) -> None:
        if any(other.id == draft.id for other in self.drafts):
            raise JobRejected(
                f"uid {draft.id!r} is given to two operators",
                "it is also the name that was generated for another operator",
                "choose a uid that does not look like a generated one",
            )

    def _operator(self, draft: _Draft) -> Operator:
        defaults = self.defaults
        most = (
            draft.settings.max_parallelism
            or defaults.max_parallelism
            or defaults.inherited.get(draft.id)
        )
        return Operator(
            draft.id,
            draft.parallelism,
            most or default_max_parallelism(draft.parallelism),
            is_sink=isinstance(draft.head, SinkHead),
            has_union_state=_has_union_state(draft.head),
            is_coordinated=isinstance(draft.head, SourceHead),
        )


def _nodes(sinks: Sequence[WrittenStream]) -> list[Node | WrittenStream]:
    """Every node once, each sink before what it reads."""
    found: dict[int, Node | WrittenStream] = {}
    waiting: list[Node | WrittenStream] = list(sinks)
    while waiting:
        node = waiting.pop()
        if id(node) not in found:
            found[id(node)] = node
            waiting.extend(inputs_of(node))
    return list(found.values())


def _refuse_twins(nodes: Sequence[Node | WrittenStream]) -> None:
    uids = Counter(node.settings.uid for node in nodes if not isinstance(node, Exchange | Union))
    twins = sorted(uid for uid, times in uids.items() if uid and times > 1)
    if twins:
        raise JobRejected(
            f"uid {twins[0]!r} is given to {uids[twins[0]]} operators",
            "state is found by its uid",
            "give each operator another uid",
        )


def _inherited(links: Sequence[_Link]) -> int:
    """The width of what comes before, if that is one stage and rows need not move."""
    return links[0].draft.parallelism if len(links) == 1 and not links[0].kind else 0


def _with_broadcast_edges(head: Head, broadcast: Sequence[EdgeId]) -> Head:
    """A function head with the edges that are its broadcast input."""
    return replace(head, broadcast=tuple(broadcast)) if isinstance(head, FunctionHead) else head


def _has_union_state(head: Head) -> bool:
    states = head.states if isinstance(head, FunctionHead) else ()
    return any(state.kind is Redistribution.UNION for state in states)


def _natural(sender: _Draft, receiver: _Draft) -> EdgeKind:
    is_even = sender.parallelism == receiver.parallelism
    return EdgeKind.FORWARD if is_even else EdgeKind.REBALANCE


def _kind_of(head: Head) -> str:
    match head:
        case SourceHead():
            return "source"
        case AggregateHead():
            return "aggregate"
        case ProcessorHead():
            return "process"
        case FunctionHead():
            return "function"
        case RelayHead():
            return "relay"
        case SinkHead():
            return "sink"
