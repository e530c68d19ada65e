"""Which splits a simulated source has, and when they are found: at once, or half of them later."""

from dataclasses import replace

from simulation.scenario import Scenario
from weir.core import restore_decision
from weir.core.enumerator import Pool, Splits
from weir.core.ids import OperatorId, SplitId
from weir.core.job_master import SplitsFound
from weir.core.topology import Topology

EVERYTHING = "everything"
"""How far discovery has come once it is over."""


def pools(
    scenario: Scenario, topology: Topology, resolution: restore_decision.Resolution
) -> dict[OperatorId, Splits]:
    """What each enumerator begins with."""
    found = {source: _first_look(scenario, topology, source) for source in topology.sources}
    if isinstance(resolution, restore_decision.RestoreFrom | restore_decision.ReplayCommit):
        for operator, kept in resolution.manifest.coordinators:
            if operator in found:
                assert isinstance(kept, Pool)
                found[operator] = _restored(found[operator], kept)
    return found


def second_look(scenario: Scenario, topology: Topology, source: OperatorId) -> SplitsFound:
    """Finds what the first look did not; after it there is nothing to look for."""
    every = _splits_of(scenario, topology, source)
    return SplitsFound(source, every[len(every) // 2 :], EVERYTHING, is_final=True)


def _first_look(scenario: Scenario, topology: Topology, source: OperatorId) -> Splits:
    every = _splits_of(scenario, topology, source)
    if scenario.finds_late:
        return Splits(every[: len(every) // 2], is_final=False)
    return Splits(every)


def _restored(begun: Splits, kept: Pool) -> Splits:
    """The checkpoint has the splits that were free, and whether discovery was over then."""
    is_final = begun.is_final or kept.seen == EVERYTHING
    return replace(begun, free=kept.free, seen=kept.seen, is_final=is_final)


def _splits_of(scenario: Scenario, topology: Topology, source: OperatorId) -> tuple[SplitId, ...]:
    sources = topology.sources
    own = range(sources.index(source), scenario.splits, len(sources))
    return tuple(SplitId(f"{number:03d}") for number in own)
