"""Keeps who runs where: the slots there are, the seats of the indexes, each subtask's progress.

It answers the questions that decisions about attempts ask (what a slot hosts, what a failure
reaches, whether that is the whole job) and changes only by being replaced. It does not know why a
subtask goes up or down, nor when. Answers that name subtasks keep the topology's order.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from weir.core.ids import AttemptId, CheckpointId, SlotId, SubtaskId
from weir.core.placement import Berth, Copies, CopiesByIndex, Seats, Slots, TooFew, assign
from weir.core.topology import Topology


class Stage(StrEnum):
    """How far one subtask has come within its attempt."""

    DOWN = "down"
    DEPLOYING = "deploying"
    RUNNING = "running"
    FINISHED = "finished"

    @property
    def is_live(self) -> bool:
        return self in (Stage.DEPLOYING, Stage.RUNNING)


class Execution(NamedTuple):
    """Which attempt a subtask belongs to, and how far it has come in it."""

    attempt: AttemptId
    stage: Stage


@dataclass(frozen=True, slots=True)
class Roster:
    """All subtasks and all slots of a job. The mappings are replaced, never changed."""

    topology: Topology
    executions: Mapping[SubtaskId, Execution]
    slots: Slots
    """The registered ones."""
    seats: Seats
    """The last placement of every index, hence of every subtask; lost slots included."""
    copies: CopiesByIndex
    """What slots found on their disks when they came."""

    def stage(self, subtask: SubtaskId) -> Stage:
        return self.executions[subtask].stage

    def slot_of(self, subtask: SubtaskId) -> SlotId:
        """Where the subtask runs, or ran last."""
        assert subtask.index in self.seats, f"{subtask} was never placed"
        return self.seats[subtask.index].slot

    def unfinished(self) -> tuple[SubtaskId, ...]:
        return tuple(
            subtask
            for subtask in self.topology.subtasks
            if self.stage(subtask) is not Stage.FINISHED
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

    def seat(self, subtasks: Iterable[SubtaskId]) -> "Roster | TooFew":
        """Give each of these a registered slot, if there are enough."""
        indexes = {subtask.index for subtask in subtasks}
        seats = assign(self.seats, self.slots, indexes, self.copies)
        return seats if isinstance(seats, TooFew) else replace(self, seats=seats)

    def move(self, subtasks: Iterable[SubtaskId], execution: Execution) -> "Roster":
        return replace(self, executions={**self.executions, **dict.fromkeys(subtasks, execution)})

    def take_down(self, subtasks: Iterable[SubtaskId]) -> "Roster":
        down = {
            subtask: self.executions[subtask]._replace(stage=Stage.DOWN) for subtask in subtasks
        }
        return replace(self, executions={**self.executions, **down})

    def register(
        self, slot: SlotId, berth: Berth, copies: Iterable[tuple[int, CheckpointId]] = ()
    ) -> "Roster":
        """A slot is there, and so are the copies on its disk; the newest of an index count."""
        found = dict(self.copies)
        for index, checkpoint in copies:
            if index not in found or found[index].checkpoint < checkpoint:
                found[index] = Copies(berth.disk, checkpoint)
        return replace(self, slots={**self.slots, slot: berth}, copies=found)

    def strike(self, slot: SlotId) -> "Roster":
        """The slot is not to be used again; its seat is remembered."""
        return replace(self, slots={s: on for s, on in self.slots.items() if s != slot})


NOT_BEGUN = Execution(AttemptId(0), Stage.DOWN)
"""Where every subtask starts; no attempt has this number."""


def empty_roster(topology: Topology) -> Roster:
    return Roster(
        topology, dict.fromkeys(topology.subtasks, NOT_BEGUN), slots={}, seats={}, copies={}
    )
