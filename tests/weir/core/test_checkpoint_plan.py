"""Whom a checkpoint triggers, whom it waits for, and when there can be none."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinated_job import EVERYONE, READ_0, SUM, SUM_0, SUM_1, TOPOLOGY, WRITE_0, a_topology
from weir.core.checkpoint_plan import CheckpointPlan, Unplannable, plan_checkpoint
from weir.core.ids import EdgeId, OperatorId, SubtaskId
from weir.core.reasons import Reason
from weir.core.topology import Edge, EdgeKind, Operator, Topology

UNION_SUM = a_topology(union=(SUM,))


def planned(topology=TOPOLOGY, finished=(), missing=(), *, after_tasks_finish=True):
    running = {s: 1 for s in topology.subtasks if s not in finished and s not in missing}
    return plan_checkpoint(
        topology, running, frozenset(finished), after_tasks_finish=after_tasks_finish
    )


def test_the_sources_are_triggered_and_everyone_is_waited_for():
    """C4: with every subtask alive."""
    assert planned() == CheckpointPlan(trigger=(READ_0,), wait_for=EVERYONE, finished=())


def test_every_subtask_that_takes_part_is_notified():
    """C4: the plan names whom to notify."""
    assert planned(finished=[READ_0]).notify == (SUM_0, SUM_1, WRITE_0)


@pytest.mark.parametrize("missing", EVERYONE)
def test_one_subtask_that_does_not_run_is_enough_to_have_no_checkpoint(missing):
    """C4: NOT_ALL_REQUIRED_TASKS_RUNNING, and the plan names the subtasks that do not run."""
    assert planned(missing=[missing]) == Unplannable(
        Reason.NOT_ALL_REQUIRED_TASKS_RUNNING, (missing,)
    )


# Finished subtasks


def test_barriers_start_at_the_first_running_descendants_of_what_has_finished():
    """C14 C4: a finished subtask is not triggered, not waited for, and contributes nothing."""
    assert planned(finished=[READ_0]) == CheckpointPlan(
        trigger=(SUM_0, SUM_1), wait_for=(SUM_0, SUM_1, WRITE_0), finished=(READ_0,)
    )


def test_a_subtask_with_one_running_sender_left_is_not_triggered():
    """C4: its barrier comes on the channel."""
    plan = planned(finished=[READ_0, SUM_0])

    assert plan.trigger == (SUM_1,)
    assert plan.wait_for == (SUM_1, WRITE_0)


def test_the_last_one_alive_is_triggered_itself():
    """C14: checkpoints go on to the very end."""
    assert planned(finished=[READ_0, SUM_0, SUM_1]).trigger == (WRITE_0,)


def test_there_is_nothing_to_checkpoint_when_all_have_finished():
    """C14: no subtask is left to ack."""
    plan = planned(finished=EVERYONE)

    assert isinstance(plan, Unplannable)
    assert plan.reason is Reason.NOT_ALL_REQUIRED_TASKS_RUNNING


def test_with_the_switch_off_a_finished_subtask_ends_all_checkpoints():
    """C14: off → such a trigger fails with NOT_ALL_REQUIRED_TASKS_RUNNING."""
    assert planned(finished=[READ_0], after_tasks_finish=False) == Unplannable(
        Reason.NOT_ALL_REQUIRED_TASKS_RUNNING, (READ_0,)
    )


def test_the_switch_changes_nothing_while_no_subtask_has_finished():
    """C14: the switch is about finished subtasks alone."""
    assert planned(after_tasks_finish=False) == planned(after_tasks_finish=True)


# Union state


def test_half_of_an_operator_with_union_state_is_in_no_checkpoint():
    """C14: union list state completes only when all or none of the subtasks have finished."""
    assert planned(UNION_SUM, finished=[READ_0, SUM_0]) == Unplannable(
        Reason.CHECKPOINT_DECLINED_TASK_CLOSING, (SUM_0,)
    )


@pytest.mark.parametrize("finished", [[READ_0], [READ_0, SUM_0, SUM_1]])
def test_none_or_all_of_an_operator_with_union_state_is_fine(finished):
    """C14: all or none."""
    assert isinstance(planned(UNION_SUM, finished=finished), CheckpointPlan)


# Loops


def test_a_feedback_edge_neither_delays_nor_starts_a_barrier():
    """C20: in a forced loop barriers travel on the forward edges alone."""
    read, loop = OperatorId("read"), OperatorId("loop")
    topology = Topology(
        (Operator(read, 1), Operator(loop, 1)),
        (
            Edge(EdgeId("in"), read, loop, EdgeKind.FORWARD),
            Edge(EdgeId("back"), loop, loop, EdgeKind.FORWARD, is_feedback=True),
        ),
    )

    assert planned(topology).trigger == (SubtaskId(read, 0),)
    assert planned(topology, finished=[SubtaskId(read, 0)]).trigger == (SubtaskId(loop, 0),)


# Whatever has finished

KINDS = st.sampled_from([EdgeKind.HASH, EdgeKind.REBALANCE, EdgeKind.RESCALE, EdgeKind.BROADCAST])
WIDTHS = st.integers(1, 4)


@st.composite
def histories(draw):
    """A chain of three operators, and a set of finished subtasks in which no sender is missing."""
    names = [OperatorId(name) for name in ("a", "b", "c")]
    topology = Topology(
        tuple(Operator(name, draw(WIDTHS)) for name in names),
        tuple(
            Edge(EdgeId(f"{left}{right}"), left, right, draw(KINDS))
            for left, right in pairwise(names)
        ),
    )
    finished = set()
    for subtask in topology.subtasks:
        senders = {topology.sender(channel) for channel in topology.inputs[subtask]}
        if senders <= finished and draw(st.booleans()):
            finished.add(subtask)
    return topology, frozenset(finished)


@given(histories())
def test_a_barrier_reaches_every_subtask_that_is_waited_for(history):
    """C4: every awaited subtask is triggered, or has a running sender that is reached itself."""
    topology, finished = history
    plan = planned(topology, finished)
    if isinstance(plan, Unplannable):
        assert finished == set(topology.subtasks)
        return
    reached = set(plan.trigger)
    for subtask in topology.subtasks:
        if any(topology.sender(channel) in reached for channel in topology.inputs[subtask]):
            reached.add(subtask)

    assert set(plan.wait_for) <= reached
    assert set(plan.trigger) <= set(plan.wait_for)
    assert {*plan.wait_for, *plan.finished} == set(topology.subtasks)
    assert not {*plan.wait_for} & {*plan.finished}


@given(histories())
def test_no_subtask_is_triggered_that_gets_a_barrier_from_a_sender(history):
    """C4: two barriers of one checkpoint on one subtask would cut twice."""
    topology, finished = history
    plan = planned(topology, finished)
    if isinstance(plan, CheckpointPlan):
        for subtask in plan.trigger:
            assert all(topology.sender(c) in finished for c in topology.inputs[subtask])
