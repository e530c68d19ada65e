"""Plans one checkpoint: the subtasks to trigger, to wait for and to notify, and the finished ones.

With every subtask alive the plan is simple: trigger the sources, wait for all. When some have
finished, barriers must start at the first running descendants instead, and what has finished
contributes nothing (spec C4, C14).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from weir.core.ids import SubtaskId
from weir.core.reasons import Reason
from weir.core.topology import Topology


@dataclass(frozen=True, slots=True)
class CheckpointPlan:
    """The subtasks of one checkpoint by their role."""

    trigger: tuple[SubtaskId, ...]
    wait_for: tuple[SubtaskId, ...]
    finished: tuple[SubtaskId, ...]

    @property
    def notify(self) -> tuple[SubtaskId, ...]:
        """Every subtask that took part is notified of the result."""
        return self.wait_for


@dataclass(frozen=True, slots=True)
class Unplannable:
    """No checkpoint can be taken now; these subtasks stand in the way."""

    reason: Reason
    subtasks: tuple[SubtaskId, ...]


def plan_checkpoint(
    topology: Topology,
    running: Mapping[SubtaskId, object],
    finished: frozenset[SubtaskId],
    *,
    after_tasks_finish: bool,
) -> CheckpointPlan | Unplannable:
    missing = tuple(s for s in topology.subtasks if s not in running and s not in finished)
    if missing:
        return Unplannable(Reason.NOT_ALL_REQUIRED_TASKS_RUNNING, missing)
    if finished and not after_tasks_finish:
        return Unplannable(Reason.NOT_ALL_REQUIRED_TASKS_RUNNING, tuple(sorted(finished)))
    if len(finished) == len(topology.subtasks):
        return Unplannable(Reason.NOT_ALL_REQUIRED_TASKS_RUNNING, topology.subtasks)
    halved = _halved_unions(topology, finished)
    if halved:
        return Unplannable(Reason.CHECKPOINT_DECLINED_TASK_CLOSING, halved)
    alive = tuple(s for s in topology.subtasks if s not in finished)
    return CheckpointPlan(
        trigger=tuple(s for s in alive if _starts_barriers(topology, s, finished)),
        wait_for=alive,
        finished=tuple(s for s in topology.subtasks if s in finished),
    )


def _starts_barriers(
    topology: Topology, subtask: SubtaskId, finished: frozenset[SubtaskId]
) -> bool:
    """A source, or a subtask that no running one can send a barrier to."""
    return all(
        topology.sender(channel) in finished
        for channel in topology.inputs[subtask]
        if not topology.edge_by_id[channel.edge].is_feedback
    )


def _halved_unions(topology: Topology, finished: frozenset[SubtaskId]) -> tuple[SubtaskId, ...]:
    """Union state is whole only while all or none of its subtasks have finished."""
    halved: list[SubtaskId] = []
    for operator in topology.operators:
        if operator.has_union_state:
            gone = sorted(s for s in finished if s.operator == operator.id)
            if 0 < len(gone) < operator.parallelism:
                halved += gone
    return tuple(halved)
