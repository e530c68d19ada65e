"""Refuses a dataflow that could not be checkpointed, before anything of it runs.

A job that is wrong by its shape must fail at submission and not at three in the morning, so the
shape is judged here once. The judgement is a list of findings; whether to print, raise or write a
condition is the caller's affair.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from weir.core.ids import OperatorId
from weir.core.topology import EdgeKind, Topology


@dataclass(frozen=True, slots=True)
class Refused:
    """The job must not start."""

    subject: str
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Warned:
    """The job may start, and its owner should know this."""

    subject: str
    reason: str


Finding = Refused | Warned


def validate(topology: Topology, *, force_cycles: bool = False) -> tuple[Finding, ...]:
    return (
        *_widths(topology),
        *_cycles(topology, force_cycles=force_cycles),
        *_externally_induced(topology),
    )


def _widths(topology: Topology) -> list[Finding]:
    findings: list[Finding] = [
        Refused(
            f"operator {o.id!r}",
            f"its parallelism {o.parallelism} is above its max parallelism {o.max_parallelism}",
            "lower the parallelism or raise setMaxParallelism before the first checkpoint",
        )
        for o in topology.operators
        if o.parallelism > o.max_parallelism
    ]
    for edge in topology.edges:
        source, target = topology.by_id[edge.source], topology.by_id[edge.target]
        if edge.kind is EdgeKind.FORWARD and source.parallelism != target.parallelism:
            findings.append(
                Refused(
                    f"edge {edge.id!r}",
                    f"a forward edge joins {source.parallelism} to {target.parallelism} subtasks",
                    "use rescale or rebalance, or give both operators one parallelism",
                )
            )
    return findings


def _cycles(topology: Topology, *, force_cycles: bool) -> list[Finding]:
    loop = find_cycle(topology)
    if not loop:
        return []
    path = " -> ".join((*loop, loop[0]))
    if force_cycles:
        return [Warned(f"cycle {path}", "records inside the loop can be lost on recovery")]
    return [
        Refused(
            f"cycle {path}",
            "records inside a loop are in no checkpoint",
            "remove the loop, or force checkpoints in cycles and accept their loss on recovery",
        )
    ]


def _externally_induced(topology: Topology) -> list[Finding]:
    return [
        Refused(
            f"source {o.id!r}",
            "externally induced checkpoints are not supported: only the coordinator starts them",
            "let the source follow triggers, or put a replayable log in front of it",
        )
        for o in topology.operators
        if o.is_externally_induced
    ]


def find_cycle(topology: Topology) -> Sequence[OperatorId]:
    """The operators of one cycle in order, or nothing."""
    targets = {
        o.id: [e.target for e in topology.edges if e.source == o.id] for o in topology.operators
    }
    cleared: set[OperatorId] = set()
    for start in targets:
        path: list[OperatorId] = []
        trail = [iter([start])]
        while trail:
            following = next(trail[-1], None)
            if following is None:
                trail.pop()
                if path:
                    cleared.add(path.pop())
            elif following in path:
                return path[path.index(following) :]
            elif following not in cleared:
                path.append(following)
                trail.append(iter(targets[following]))
    return ()
