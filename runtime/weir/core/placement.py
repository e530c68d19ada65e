"""Chooses the slot for each index of a job, so that a lost slot disturbs no other.

A slot hosts the subtasks of one index, one of each operator, so it is indexes and not subtasks that
are seated. A seat outlives the process that held it: what an index had last, on which executor and
beside which disk, is what the next choice is made by. Where local copies of state are kept, an
index goes back to its copies before anything else (spec S13). Why a slot went, what runs in it and
when it is used are not known here. The choice depends on nothing but its arguments, to the letter.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from weir.core.ids import CheckpointId, SlotId


class Berth(NamedTuple):
    """Where a slot runs."""

    executor: str
    disk: str = ""
    """Where it keeps local copies of state; empty: nowhere."""


Slots = Mapping[SlotId, Berth]
"""The registered ones."""


class Seat(NamedTuple):
    """The slot an index has, or had last."""

    slot: SlotId
    berth: Berth


Seats = Mapping[int, Seat]


class Copies(NamedTuple):
    """The disk with an index's newest local copies, and the checkpoint they are good for."""

    disk: str
    checkpoint: CheckpointId


CopiesByIndex = Mapping[int, Copies]


@dataclass(frozen=True, slots=True)
class TooFew:
    """Not every index can have a slot yet."""

    missing: int


def assign(
    seats: Seats, slots: Slots, indexes: Collection[int], copies: CopiesByIndex
) -> Seats | TooFew:
    """Seat these indexes: survivors stay where they are, free slots fill the gaps."""
    vacant = [index for index in sorted(indexes) if not _is_held(seats, slots, index)]
    taken = {seat.slot for seat in seats.values()}
    free = sorted(slot for slot in slots if slot not in taken)
    if len(vacant) > len(free):
        return TooFew(len(vacant) - len(free))
    disks = {index: _disk(index, seats, copies) for index in vacant}
    there = {slots[slot].disk for slot in free} - {""}
    assigned = dict(seats)
    for index in sorted(vacant, key=lambda index: disks[index] not in there):
        lost_on = seats[index].berth.executor if index in seats else ""
        slot = _best(free, slots, disks[index], lost_on)
        free.remove(slot)
        assigned[index] = Seat(slot, slots[slot])
    return assigned


def _is_held(seats: Seats, slots: Slots, index: int) -> bool:
    return index in seats and seats[index].slot in slots


def _disk(index: int, seats: Seats, copies: CopiesByIndex) -> str:
    """Where the index's newest copies are: beside its last seat, else where they were found."""
    if index in seats:
        return seats[index].berth.disk
    return copies[index].disk if index in copies else ""


def _best(free: list[SlotId], slots: Slots, disk: str, lost_on: str) -> SlotId:
    """Beside its copies, else away from the executor it was lost on, which may go as a whole."""

    def rank(slot: SlotId) -> tuple[bool, bool, SlotId]:
        return (slots[slot].disk != disk, slots[slot].executor == lost_on, slot)

    return min(free, key=rank)
