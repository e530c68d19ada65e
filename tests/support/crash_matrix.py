"""The crash matrix: which process dies on which side of which step, in which mode.

All cells are the product of the four, except for one step: only a barrier that overtakes rows has
any to upload, and here none does (see ``extended_crash_matrix`` for those). The sample has every
pair of two values in at least one cell (each step with each victim, each victim in each mode, and
so on), which a quarter of them can do.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from faults import Fault, FaultKind, Moment, Step
from job_setting import AT_LEAST_ONCE, EXACTLY_ONCE

MODES = (EXACTLY_ONCE, AT_LEAST_ONCE)
VICTIMS = (FaultKind.KILL_SLOT, FaultKind.KILL_DRIVER)
STEPS = tuple(step for step in Step if step is not Step.IN_FLIGHT)
LONGEST_RUN = 14
MOST_SKIPPED = 2


@dataclass(frozen=True, slots=True)
class Cell:
    """One death."""

    step: Step
    moment: Moment
    victim: FaultKind
    mode: str

    def fault(self, number: int, dice: random.Random) -> Fault:
        skip = dice.randint(0, MOST_SKIPPED)
        return Fault(number, self.step, self.moment, self.victim, skip)


def every_cell() -> list[Cell]:
    return [Cell(*values) for values in product(STEPS, Moment, VICTIMS, MODES)]


def sample(dice: random.Random) -> list[Cell]:
    """Two cells a step, which differ in everything else; as many of each kind as of the other."""
    steps = list(STEPS)
    dice.shuffle(steps)
    kinds = list(product(Moment, VICTIMS, MODES))
    opposites = {kind: _opposite(*kind) for kind in kinds}
    halves = [kind for kind in kinds if kind[1] is FaultKind.KILL_SLOT]
    chosen = [(step, halves[number % len(halves)]) for number, step in enumerate(steps)]
    return [Cell(step, *k) for step, kind in chosen for k in (kind, opposites[kind])]


def _opposite(moment: Moment, victim: FaultKind, mode: str) -> tuple[Moment, FaultKind, str]:
    return (
        Moment.AFTER if moment is Moment.BEFORE else Moment.BEFORE,
        FaultKind.KILL_DRIVER if victim is FaultKind.KILL_SLOT else FaultKind.KILL_SLOT,
        AT_LEAST_ONCE if mode == EXACTLY_ONCE else EXACTLY_ONCE,
    )


def runs(cells: Sequence[Cell], mode: str, dice: random.Random) -> list[list[Cell]]:
    """The cells of a mode in chance's order, cut so that each part ends with a driver's death."""
    drivers = [c for c in cells if c.mode == mode and c.victim is FaultKind.KILL_DRIVER]
    slots = [c for c in cells if c.mode == mode and c.victim is FaultKind.KILL_SLOT]
    dice.shuffle(drivers)
    dice.shuffle(slots)
    count = -(-(len(drivers) + len(slots)) // LONGEST_RUN)
    return [_one_run(drivers[n::count], slots[n::count], dice) for n in range(count)]


def _one_run(drivers: list[Cell], slots: list[Cell], dice: random.Random) -> list[Cell]:
    last, *others = drivers
    mixed = [*others, *slots]
    dice.shuffle(mixed)
    return [*mixed, last]
