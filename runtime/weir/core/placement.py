"""Chooses the slot for each index of a job, so that the loss of a slot moves no other index.

A slot hosts the subtasks of one index, one of each operator, so slots are assigned to indexes and
not to subtasks. A placement outlives the slot's process: the next choice considers the executor
and the disk that the index had last. An index returns first of all to the disk with its local
copies of state (spec S13). This module does not know why a slot was lost, what runs in it or when
it is used. The choice depends on the arguments only.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from weir.core.ids import CheckpointId, SlotId


class SlotAddress(NamedTuple):
    """Where a slot runs."""

    executor: str
    disk: str = ""
    """Where it keeps local copies of state; empty: nowhere."""


Slots = Mapping[SlotId, SlotAddress]
"""The registered ones."""


class Placement(NamedTuple):
    """The slot an index has, or had last."""

    slot: SlotId
    address: SlotAddress


Placements = Mapping[int, Placement]


class Copies(NamedTuple):
    """The disk with an index's newest local copies, and the checkpoint they are good for."""

    disk: str
    checkpoint: CheckpointId


CopiesByIndex = Mapping[int, Copies]


@dataclass(frozen=True, slots=True)
class TooFewSlots:
    """Not every index can have a slot yet."""

    missing: int


def assign(
    placements: Placements, slots: Slots, indexes: Collection[int], copies: CopiesByIndex
) -> Placements | TooFewSlots:
    """Assign slots to these indexes: survivors stay where they are, free slots fill the gaps."""
    vacant = [index for index in sorted(indexes) if not _is_held(placements, slots, index)]
    taken = {placement.slot for placement in placements.values()}
    free = sorted(slot for slot in slots if slot not in taken)
    if len(vacant) > len(free):
        return TooFewSlots(len(vacant) - len(free))
    disks = {index: _disk(index, placements, copies) for index in vacant}
    there = {slots[slot].disk for slot in free} - {""}
    assigned = dict(placements)
    for index in sorted(vacant, key=lambda index: disks[index] not in there):
        lost_on = placements[index].address.executor if index in placements else ""
        slot = _best(free, slots, disks[index], lost_on)
        free.remove(slot)
        assigned[index] = Placement(slot, slots[slot])
    return assigned


def _is_held(placements: Placements, slots: Slots, index: int) -> bool:
    return index in placements and placements[index].slot in slots


def _disk(index: int, placements: Placements, copies: CopiesByIndex) -> str:
    """The disk with the index's newest copies: its last slot's, else where they were found."""
    if index in placements:
        return placements[index].address.disk
    return copies[index].disk if index in copies else ""


def _best(free: list[SlotId], slots: Slots, disk: str, lost_on: str) -> SlotId:
    """With its copies, else away from the executor it was lost on, which may be lost as a whole."""

    def rank(slot: SlotId) -> tuple[bool, bool, SlotId]:
        return (slots[slot].disk != disk, slots[slot].executor == lost_on, slot)

    return min(free, key=rank)
