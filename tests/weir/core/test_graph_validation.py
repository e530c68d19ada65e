"""A dataflow that could not be checkpointed is refused before anything of it runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinated_job import TOPOLOGY
from weir.core.graph_validation import Refused, Warned, find_cycle, validate
from weir.core.ids import EdgeId, OperatorId
from weir.core.topology import Edge, EdgeKind, Operator, Topology


def a_graph(*edges, kind=EdgeKind.HASH, **widths):
    """Edges as "a>b"; an operator is one wide unless its width is given."""
    ends = [edge.split(">") for edge in edges]
    names = sorted({*widths, *(name for pair in ends for name in pair)})
    return Topology(
        tuple(Operator(OperatorId(name), widths.get(name, 1)) for name in names),
        tuple(Edge(EdgeId(f"{a}>{b}"), OperatorId(a), OperatorId(b), kind) for a, b in ends),
    )


def test_an_honest_graph_passes_without_a_word():
    """C20: no finding, no refusal."""
    assert validate(TOPOLOGY) == ()


def test_a_cycle_is_refused_with_its_path_and_a_remedy():
    """C20: a graph with a cycle is refused."""
    assert validate(a_graph("a>b", "b>c", "c>b")) == (
        Refused(
            "cycle b -> c -> b",
            "records inside a loop are in no checkpoint",
            "remove the loop, or force checkpoints in cycles and accept their loss on recovery",
        ),
    )


def test_a_forced_cycle_passes_with_a_warning():
    """C20: forcing it is possible and warns that in-flight loop records can be lost."""
    assert validate(a_graph("a>a"), force_cycles=True) == (
        Warned("cycle a -> a", "records inside the loop can be lost on recovery"),
    )


def test_two_ways_to_one_operator_are_no_cycle():
    """C20: a diamond is honest."""
    assert find_cycle(a_graph("a>b", "a>c", "b>d", "c>d")) == ()


def test_externally_induced_checkpoints_are_refused_by_name():
    """C20: only the coordinator starts checkpoints."""
    topology = Topology((Operator(OperatorId("pulsar"), 1, is_externally_induced=True),), ())

    (finding,) = validate(topology)

    assert isinstance(finding, Refused)
    assert finding.subject == "source 'pulsar'"
    assert "externally induced checkpoints are not supported" in finding.reason


def test_forcing_cycles_does_not_let_externally_induced_checkpoints_pass():
    """C20: the switch is about cycles alone."""
    topology = Topology((Operator(OperatorId("pulsar"), 1, is_externally_induced=True),), ())

    assert isinstance(validate(topology, force_cycles=True)[0], Refused)


def test_an_operator_wider_than_its_key_groups_is_refused():
    """S11: some subtask would own no key group."""
    topology = Topology((Operator(OperatorId("sum"), 4, max_parallelism=2),), ())

    (finding,) = validate(topology)

    assert isinstance(finding, Refused)
    assert finding.reason == "its parallelism 4 is above its max parallelism 2"


def test_a_forward_edge_between_unequal_widths_is_refused():
    """U3: named with both numbers, before a channel is missing."""
    (finding,) = validate(a_graph("a>b", a=2, b=3, kind=EdgeKind.FORWARD))

    assert isinstance(finding, Refused)
    assert finding.subject == "edge 'a>b'"
    assert "joins 2 to 3 subtasks" in finding.reason


PAIRS = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)


@given(PAIRS)
def test_a_cycle_is_found_exactly_when_there_is_one(pairs):
    """C20: against the definition: no order of the operators has all edges point forward."""
    edges = sorted(pairs)
    topology = a_graph(*(f"{a}>{b}" for a, b in edges), **{str(n): 1 for n in range(6)})
    left = set(range(6))
    while sources := {n for n in left if not any(b == n and a in left for a, b in edges)}:
        left -= sources

    assert bool(find_cycle(topology)) == bool(left)


@given(PAIRS)
def test_what_is_called_a_cycle_is_one(pairs):
    """C20: the message shows a path that a person can follow."""
    edges = {(str(a), str(b)) for a, b in pairs}
    topology = a_graph(*(f"{a}>{b}" for a, b in sorted(edges)), **{str(n): 1 for n in range(6)})

    loop = list(find_cycle(topology))

    assert all(step in edges for step in zip(loop, [*loop[1:], *loop[:1]], strict=True))


@pytest.mark.parametrize("force", [True, False])
def test_every_finding_names_its_subject(force):
    """U3: errors name the thing, the cause and the remedy."""
    for finding in validate(a_graph("a>b", "b>a"), force_cycles=force):
        assert finding.subject
        assert finding.reason
