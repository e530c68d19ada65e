"""Tracks which subtask runs in which slot, the registered slots, and each subtask's progress.

It answers the questions of the decisions about attempts: what a slot hosts, what a failure
affects, whether that is the whole job. It is immutable, and does not know why or when a subtask
starts or stops. Results that list subtasks keep the topology's order.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from weir.core.ids import AttemptId, CheckpointId, SlotId, SubtaskId
from weir.core.placement import (
    Copies,
    CopiesByIndex,
    Placements,
    SlotAddress,
    Slots,
    TooFewSlots,
    assign,
)
from weir.core.topology import Topology


class ExecutionState(StrEnum):
    """The state of one subtask within its attempt."""

    DOWN = "down"
    DEPLOYING = "deploying"
    RUNNING = "running"
    FINISHED = "finished"

    @property
    def is_live(self) -> bool:
        return self in (ExecutionState.DEPLOYING, ExecutionState.RUNNING)


class Execution(NamedTuple):
    """The attempt that a subtask belongs to, and its state in it."""

    attempt: AttemptId
    stage: ExecutionState


@dataclass(frozen=True, slots=True)
class ExecutionGraph:
    """All subtasks and all slots of a job. The mappings are replaced, never changed."""

    topology: Topology
    executions: Mapping[SubtaskId, Execution]
    slots: Slots
    """The registered ones."""
    placements: Placements
    """The last placement of every index, hence of every subtask; lost slots included."""
    copies: CopiesByIndex
    """The local copies that slots had on their disks when they registered."""

    def stage(self, subtask: SubtaskId) -> ExecutionState:
        return self.executions[subtask].stage

    def slot_of(self, subtask: SubtaskId) -> SlotId:
        """Where the subtask runs, or ran last."""
        assert subtask.index in self.placements, f"{subtask} was never placed"
        return self.placements[subtask.index].slot

    def unfinished(self) -> tuple[SubtaskId, ...]:
        return tuple(
            subtask
            for subtask in self.topology.subtasks
            if self.stage(subtask) is not ExecutionState.FINISHED
        )

    def is_whole_job(self, subtasks: Collection[SubtaskId]) -> bool:
        """Everything else has finished."""
        return all(subtask in subtasks for subtask in self.unfinished())

    def union(self, *groups: Iterable[SubtaskId]) -> tuple[SubtaskId, ...]:
        members = {subtask for group in groups for subtask in group}
        return tuple(subtask for subtask in self.topology.subtasks if subtask in members)

    def regions_of(self, subtasks: Iterable[SubtaskId]) -> tuple[SubtaskId, ...]:
        """Every subtask that shares a region with one of these."""
        regions = {self.topology.regions[subtask] for subtask in subtasks}
        return tuple(
            subtask
            for subtask in self.topology.subtasks
            if self.topology.regions[subtask] in regions
        )

    def hosted_by(self, slot: SlotId) -> tuple[SubtaskId, ...]:
        """The regions that go down with the slot.

        A region with one live subtask may still need what its finished ones have left in their
        slots. A region that has finished as a whole needs nothing any more.
        """
        live = (subtask for subtask in self.topology.subtasks if self.stage(subtask).is_live)
        needing = self.regions_of(live)
        return self.regions_of(subtask for subtask in needing if self.slot_of(subtask) == slot)

    def live_by_slot(
        self, subtasks: Iterable[SubtaskId]
    ) -> tuple[tuple[SlotId, tuple[SubtaskId, ...]], ...]:
        """Which of these run in which registered slot."""
        found: dict[SlotId, tuple[SubtaskId, ...]] = {}
        for subtask in subtasks:
            if self.stage(subtask).is_live and self.slot_of(subtask) in self.slots:
                slot = self.slot_of(subtask)
                found[slot] = (*found.get(slot, ()), subtask)
        return tuple((slot, found[slot]) for slot in sorted(found))

    def assign_slots(self, subtasks: Iterable[SubtaskId]) -> "ExecutionGraph | TooFewSlots":
        """Give each of these a registered slot, if there are enough."""
        indexes = {subtask.index for subtask in subtasks}
        placements = assign(self.placements, self.slots, indexes, self.copies)
        return (
            placements
            if isinstance(placements, TooFewSlots)
            else replace(self, placements=placements)
        )

    def move(self, subtasks: Iterable[SubtaskId], execution: Execution) -> "ExecutionGraph":
        return replace(self, executions={**self.executions, **dict.fromkeys(subtasks, execution)})

    def take_down(self, subtasks: Iterable[SubtaskId]) -> "ExecutionGraph":
        down = {
            subtask: self.executions[subtask]._replace(stage=ExecutionState.DOWN)
            for subtask in subtasks
        }
        return replace(self, executions={**self.executions, **down})

    def register(
        self, slot: SlotId, address: SlotAddress, copies: Iterable[tuple[int, CheckpointId]] = ()
    ) -> "ExecutionGraph":
        """Add a slot and the local copies on its disk; of each index the newest copies count."""
        found = dict(self.copies)
        for index, checkpoint in copies:
            if index not in found or found[index].checkpoint < checkpoint:
                found[index] = Copies(address.disk, checkpoint)
        return replace(self, slots={**self.slots, slot: address}, copies=found)

    def remove_slot(self, slot: SlotId) -> "ExecutionGraph":
        """The slot is not to be used again; its placement is remembered."""
        return replace(self, slots={s: on for s, on in self.slots.items() if s != slot})


NOT_BEGUN = Execution(AttemptId(0), ExecutionState.DOWN)
"""Where every subtask starts; no attempt has this number."""


def empty_graph(topology: Topology) -> ExecutionGraph:
    return ExecutionGraph(
        topology, dict.fromkeys(topology.subtasks, NOT_BEGUN), slots={}, placements={}, copies={}
    )
