"""Chooses the slot for each index of a job, so that a lost slot disturbs no other.

A slot hosts the subtasks of one index, one of each operator, so it is indexes and not subtasks that
are placed. A placement outlives the process that held it: what an index had last, on which executor and
beside which disk, is what the next choice is made by. Where local copies of state are kept, an
index goes back to its copies before anything else (spec S13). Why a slot went, what runs in it and
when it is used are not known here. The choice depends on nothing but its arguments, to the letter.
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
    """Placement these indexes: survivors stay where they are, free slots fill the gaps."""
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
    """Where the index's newest copies are: beside its last placement, else where they were found."""
    if index in placements:
        return placements[index].address.disk
    return copies[index].disk if index in copies else ""


def _best(free: list[SlotId], slots: Slots, disk: str, lost_on: str) -> SlotId:
    """Beside its copies, else away from the executor it was lost on, which may go as a whole."""

    def rank(slot: SlotId) -> tuple[bool, bool, SlotId]:
        return (slots[slot].disk != disk, slots[slot].executor == lost_on, slot)

    return min(free, key=rank)
