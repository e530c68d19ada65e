"""Chooses the slot for each index of a job, so that a lost slot disturbs no other.

A slot hosts the subtasks of one index, one of each operator, so it is indexes and not subtasks that
are seated. A seat outlives the process that held it: what an index had last, and on which executor,
is what the next choice is made by. Why a slot went, what runs in it and when it is used are not
known here. The choice depends on nothing but its arguments, to the letter.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from weir.core.ids import SlotId

Slots = Mapping[SlotId, str]
"""The registered slots, each with the executor it runs on."""


class Seat(NamedTuple):
    """The slot an index has, or had last."""

    slot: SlotId
    executor: str


Seats = Mapping[int, Seat]


@dataclass(frozen=True, slots=True)
class TooFew:
    """Not every index can have a slot yet."""

    missing: int


def assign(seats: Seats, slots: Slots, indexes: Collection[int]) -> Seats | TooFew:
    """Seat these indexes: survivors stay where they are, free slots fill the gaps."""
    vacant = [index for index in sorted(indexes) if not _is_held(seats, slots, index)]
    taken = {seat.slot for seat in seats.values()}
    free = sorted(slot for slot in slots if slot not in taken)
    if len(vacant) > len(free):
        return TooFew(len(vacant) - len(free))
    assigned = dict(seats)
    for index in vacant:
        lost_on = [seats[index].executor] if index in seats else []
        slot = _best(free, slots, lost_on)
        free.remove(slot)
        assigned[index] = Seat(slot, slots[slot])
    return assigned


def _is_held(seats: Seats, slots: Slots, index: int) -> bool:
    return index in seats and seats[index].slot in slots


def _best(free: list[SlotId], slots: Slots, lost_on: Collection[str]) -> SlotId:
    """Away from the executor that the last slot was lost on, which may be going as a whole."""
    return min(free, key=lambda slot: (slots[slot] in lost_on, slot))
