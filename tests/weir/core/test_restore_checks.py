"""State that a job cannot own, or not all of it, is refused by name, or given up on purpose."""

from dataclasses import replace

import pytest

from coordinated_job import (
    CHECKPOINT,
    SAVEPOINT,
    SUM,
    SUM_0,
    TOPOLOGY,
    Files,
    a_manifest,
    a_snapshot,
)
from storage_facts import FOREIGN, NEW, read, resolved
from weir.core.enumerator import Pool
from weir.core.ids import NO_CHECKPOINT, ChannelId, CheckpointId, EdgeId, OperatorId, SubtaskId
from weir.core.restore_decision import (
    Refuse,
    RestoreFrom,
    RestoreRequest,
)
from weir.core.snapshots import CoordinatorSnapshot, InFlightHandle, Side, StateFile, Transaction
from weir.core.topology import Edge, EdgeKind, Operator, Topology

# Strict and lenient

GONE = SubtaskId(OperatorId("gone"), 0)


def with_state_of(subtask, kind=CHECKPOINT):
    manifest = a_manifest(9, kind)
    return replace(manifest, snapshots=(*manifest.snapshots, a_snapshot(9, subtask)))


def by_path(manifest, topology=TOPOLOGY, **wishes):
    facts = read(manifests=[(FOREIGN, manifest)])
    return resolved(facts, RestoreRequest(NEW, path=FOREIGN, **wishes), topology)


def test_unknown_operator_state_in_a_savepoint_is_refused_by_uid():
    """C15: restoring a savepoint is strict."""
    refusal = by_path(with_state_of(GONE, SAVEPOINT))

    assert isinstance(refusal, Refuse)
    assert refusal.subject == "state of operator 'gone'"


def test_unknown_operator_state_in_a_checkpoint_of_another_graph_is_refused():
    """C15: another graph by its hash."""
    other = replace(with_state_of(GONE), fingerprint=((("gone", 128, False),), ()))

    assert isinstance(by_path(other), Refuse)


def test_a_checkpoint_of_the_same_graph_is_restored_leniently():
    """C15: its hash proves that nothing is missing."""
    assert isinstance(by_path(with_state_of(GONE)), RestoreFrom)


def test_unknown_state_may_be_given_up_on_purpose():
    """C15: unless the user allowed non-restored state."""
    savepoint = with_state_of(GONE, SAVEPOINT)

    assert isinstance(by_path(savepoint, allow_non_restored=True), RestoreFrom)


@pytest.mark.parametrize("kept", ["a sealed transaction", "an enumerator's splits"])
def test_output_and_splits_are_state_too(kept):
    """C15: a sink or a source may have no files, and still something to lose."""
    savepoint, bare = a_manifest(9, SAVEPOINT), a_snapshot(9, GONE, Files())
    if kept == "a sealed transaction":
        sealed = replace(bare, transactions=(Transaction(GONE.operator, CheckpointId(9), "rows"),))
        savepoint = replace(savepoint, snapshots=(*savepoint.snapshots, sealed))
    else:
        pool = CoordinatorSnapshot(GONE.operator, Pool((), "seen"))
        savepoint = replace(savepoint, coordinators=(*savepoint.coordinators, pool))

    assert isinstance(by_path(savepoint), Refuse)


def test_an_unknown_operator_without_state_is_no_reason_to_refuse():
    """C15: only state can be lost."""
    manifest = a_manifest(9, SAVEPOINT)
    stateless = replace(manifest, snapshots=(*manifest.snapshots, a_snapshot(9, GONE, Files())))

    assert isinstance(by_path(stateless), RestoreFrom)


def changed(**differently):
    operators = tuple(replace(o, **differently) if o.id == SUM else o for o in TOPOLOGY.operators)
    return Topology(operators, TOPOLOGY.edges)


def test_another_max_parallelism_is_refused_with_both_numbers():
    """C15 S11: max parallelism must match."""
    refusal = by_path(a_manifest(9, SAVEPOINT), changed(max_parallelism=64))

    assert isinstance(refusal, Refuse)
    assert refusal.subject == "operator 'sum'"
    assert "64" in refusal.reason
    assert "128" in refusal.reason


def test_another_parallelism_is_fine():
    """S11: widths may change, key groups may not."""
    assert isinstance(by_path(a_manifest(9, SAVEPOINT), changed(parallelism=5)), RestoreFrom)


# In-flight data


def with_rows_in_flight(edge):
    manifest = a_manifest(9)
    caught = InFlightHandle(ChannelId(EdgeId(edge), 0, 0), Side.INPUT, StateFile("rows", 5))
    holder = replace(a_snapshot(9, SUM_0), in_flight=(caught,))
    others = tuple(s for s in manifest.snapshots if s.subtask != SUM_0)
    return replace(manifest, snapshots=(*others, holder))


def rerouted(kind):
    edges = tuple(replace(e, kind=kind) if e.id == "rows" else e for e in TOPOLOGY.edges)
    return Topology(TOPOLOGY.operators, edges)


def test_in_flight_data_of_an_edge_that_changed_is_refused():
    """C15: its rows were meant for other receivers."""
    refusal = by_path(with_rows_in_flight("rows"), rerouted(EdgeKind.BROADCAST))

    assert isinstance(refusal, Refuse)
    assert refusal.subject == "in-flight data of edge 'rows'"


def test_in_flight_data_of_an_edge_that_is_gone_is_refused():
    """C15: no operator would process its rows."""
    gone = Topology((*TOPOLOGY.operators, Operator(OperatorId("new"), 1)), TOPOLOGY.edges[1:])

    assert isinstance(by_path(with_rows_in_flight("rows"), gone), Refuse)


def test_an_edge_without_in_flight_data_may_change():
    """C15: a quiet edge holds nothing that could get lost."""
    changed_edges = (
        TOPOLOGY.edges[0],
        Edge(EdgeId("sums"), SUM, OperatorId("write"), EdgeKind.REBALANCE),
    )
    topology = Topology(TOPOLOGY.operators, changed_edges)

    assert isinstance(by_path(with_rows_in_flight("rows"), topology), RestoreFrom)


def test_one_named_checkpoint_is_restored_without_its_in_flight_data():
    """C15: an option; that edge may have changed."""
    resolution = by_path(
        with_rows_in_flight("rows"), rerouted(EdgeKind.BROADCAST), without_in_flight_of=9
    )

    assert isinstance(resolution, RestoreFrom)
    assert resolution.without_in_flight


@pytest.mark.parametrize("named", [NO_CHECKPOINT, 8])
def test_the_option_holds_for_the_checkpoint_that_it_names_and_no_other(named):
    """C15: else a later restart would drop rows by accident."""
    assert not by_path(with_rows_in_flight("rows"), without_in_flight_of=named).without_in_flight
