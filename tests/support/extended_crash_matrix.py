"""The crash matrix in depth: deaths among overtaken rows, kinds of state and other parallelisms.

A cell is one death: at a step, on one side of it, of a slot or the driver, with barriers that
overtake at once or after a timeout, with state in memory or in RocksDB, with snapshots in full or
incremental, with a changelog or without, in files of each subtask or merged files, restored from
storage or from local copies. And the parallelism changes, or does not:

- When a driver dies, the next one is as wide, wider or narrower.
- When a slot dies, its driver keeps its width. The death then counts as one among higher or lower
  parallelism if its fault is armed when a wider or narrower driver has just begun: it hits the
  first checkpoint which that takes, and up to the log's entry what comes after is restored from
    the old width once more. After a checkpoint of the same width, the death counts as one among the
  same.

So a driver's death that changes the width goes together with a slot's death after it, and a run,
which keeps its circumstances, is a walk from width to width. No width is one: there a subtask
would have one input, and none of its barriers would be the first of several. With that, and as a
barrier that overtakes also is the first of several somewhere, no cell is impossible.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import combinations, product, zip_longest

from crash_matrix import MOST_SKIPPED, VICTIMS
from faults import Fault, FaultKind, Moment, Step
from job_setting import JobSetting

WIDTHS = (2, 3, 4)
MOST_DRIVERS = 20
"""So many drivers die in one run at most."""

SLOT_COST, DRIVER_COST = 1, 2
"""What a death costs when cells are chosen; a dearer driver would only mean more slots."""

FREQUENT = (Step.BARRIER, Step.ALIGNMENT, Step.CAPTURE, Step.UPLOAD, Step.ACK)
"""Steps that each slot passes more than once in one checkpoint."""


class Barriers(StrEnum):
    """When they overtake."""

    UNALIGNED = "at once"
    TIMED = "after 50 ms"


class Change(StrEnum):
    """How wide the job is, compared with the checkpoint it is restored from."""

    SAME = "same"
    HIGHER = "higher"
    LOWER = "lower"


class Snapshots(StrEnum):
    """What goes up."""

    FULL = "full"
    INCREMENTAL = "incremental"


class Recovery(StrEnum):
    """Where state is read first."""

    REMOTE = "remote"
    LOCAL = "local"


class Backend(StrEnum):
    """Where state is while the job runs."""

    HASHMAP = "hashmap"
    ROCKSDB = "rocksdb"


class Files(StrEnum):
    """What a file in storage has the snapshots of."""

    APART = "apart"
    MERGED = "merged"


class Changelog(StrEnum):
    """Whether changes of state are uploaded between checkpoints."""

    LOGGED = "changelog"
    UNLOGGED = "no changelog"


DIMENSIONS: tuple[type[StrEnum], ...] = (
    Barriers,
    Snapshots,
    Recovery,
    Backend,
    Files,
    Changelog,
)

SETTINGS: Mapping[StrEnum, tuple[str, str]] = {
    Barriers.UNALIGNED: ("weir.checkpointing.alignedTimeout", "0 ms"),
    Barriers.TIMED: ("weir.checkpointing.alignedTimeout", "50 ms"),
    Snapshots.FULL: ("weir.checkpointing.incremental", "false"),
    Snapshots.INCREMENTAL: ("weir.checkpointing.incremental", "true"),
    Recovery.REMOTE: ("weir.state.localRecovery", "false"),
    Recovery.LOCAL: ("weir.state.localRecovery", "true"),
    Backend.HASHMAP: ("weir.state.backend", "hashmap"),
    Backend.ROCKSDB: ("weir.state.backend", "rocksdb"),
    Files.APART: ("weir.checkpointing.fileMerging.enabled", "false"),
    Files.MERGED: ("weir.checkpointing.fileMerging.enabled", "true"),
    Changelog.LOGGED: ("weir.state.changelog.enabled", "true"),
    Changelog.UNLOGGED: ("weir.state.changelog.enabled", "false"),
}
"""Of each value of each dimension; no two dimensions have a value of the same name."""


@dataclass(frozen=True, order=True)
class Circumstances:
    """What stays as it is through a run: one value of each dimension."""

    values: tuple[StrEnum, ...]

    def __str__(self) -> str:
        return ", ".join(self.values)

    def around(self, setting: JobSetting) -> JobSetting:
        return setting.having(
            ("weir.checkpointing.unaligned", "true"),
            ("weir.checkpointing.inlineThreshold", "0 B"),
            ("weir.state.changelog.materializationInterval", "1 s"),
            *(SETTINGS[value] for value in self.values),
        )


@dataclass(frozen=True)
class Cell:
    """One death."""

    step: Step
    moment: Moment
    victim: FaultKind
    change: Change
    among: Circumstances

    @property
    def is_early(self) -> bool:
        """It strikes before a checkpoint of the new width is complete."""
        return self.victim is FaultKind.KILL_SLOT and self.change is not Change.SAME

    def fault(self, number: int, dice: random.Random) -> Fault:
        most = int(self.step in FREQUENT) if self.is_early else MOST_SKIPPED
        return Fault(number, self.step, self.moment, self.victim, dice.randint(0, most))

    @cached_property
    def pairs(self) -> frozenset[tuple[object, object]]:
        """Every two of its values."""
        own = (self.step, self.moment, self.victim, self.change)
        return frozenset(combinations((*own, *self.among.values), 2))


def every_circumstance() -> list[Circumstances]:
    return [Circumstances(values) for values in product(*DIMENSIONS)]


def every_cell(among: Iterable[Circumstances] = ()) -> list[Cell]:
    chosen = list(among) or every_circumstance()
    return [Cell(*values) for values in product(Step, Moment, VICTIMS, Change, chosen)]


def all_pairs(cells: Iterable[Cell]) -> set[tuple[object, object]]:
    return {pair for cell in cells for pair in cell.pairs}


def every_pair() -> set[tuple[object, object]]:
    """Those of all cells, without making the cells."""
    kinds: list[Iterable[StrEnum]] = [Step, Moment, VICTIMS, Change, *DIMENSIONS]
    return {pair for one, other in combinations(kinds, 2) for pair in product(one, other)}


# -- the sample


def sample(dice: random.Random) -> list[Cell]:
    """Cells that have every pair of two values, the cheapest first; a greedy choice."""
    cells = every_cell(_few(dice))
    dice.shuffle(cells)
    missing = every_pair()
    chosen: list[Cell] = []
    while missing:
        moves = [_best_move(kinds, missing) for kinds in _kinds(cells)]
        best = max(moves, key=lambda move: len(all_pairs(move) & missing) / _cost(move))
        chosen += best
        missing -= all_pairs(best)
    return chosen


def _few(dice: random.Random) -> list[Circumstances]:
    """Six that have every two of their values together, of up to ten dimensions.

    In the first, every dimension has its one value. Each has its other value in three of the next
    five, in no same three: then any two have it together in one, and each has it without the other.
    """
    threes = dice.sample(list(combinations(range(1, 6), 3)), len(DIMENSIONS))
    both = [(three, dice.sample(list(d), 2)) for three, d in zip(threes, DIMENSIONS, strict=True)]
    return [Circumstances(tuple(two[n in three] for three, two in both)) for n in range(6)]


def _kinds(cells: Sequence[Cell]) -> Iterator[list[list[Cell]]]:
    """Lists of like cells; one cell of each makes a move that leaves the job as wide as it was."""
    by_kind: dict[tuple[object, ...], list[Cell]] = defaultdict(list)
    for cell in cells:
        by_kind[cell.victim, cell.change].append(cell)
        by_kind[cell.victim, cell.change, cell.among].append(cell)
    yield [by_kind[FaultKind.KILL_SLOT, Change.SAME]]
    yield [by_kind[FaultKind.KILL_DRIVER, Change.SAME]]
    for among in sorted({cell.among for cell in cells}):
        there_and_back = product((Change.HIGHER, Change.LOWER), VICTIMS)
        yield [by_kind[victim, change, among] for change, victim in there_and_back]


def _best_move(kinds: list[list[Cell]], missing: set[tuple[object, object]]) -> list[Cell]:
    move: list[Cell] = []
    for cells in kinds:
        left = missing - all_pairs(move)
        move.append(max(cells, key=lambda cell: len(cell.pairs & left)))
    return move


def _cost(move: Sequence[Cell]) -> int:
    return sum(DRIVER_COST if c.victim is FaultKind.KILL_DRIVER else SLOT_COST for c in move)


# -- the runs


@dataclass(frozen=True)
class Run:
    """One job, and how it dies again and again."""

    among: Circumstances
    width: int
    """Of its first driver."""
    deaths: tuple[tuple[Cell, int], ...]
    """Each with the width of whatever comes after it."""

    @property
    def cells(self) -> list[Cell]:
        return [cell for cell, _ in self.deaths]


def runs(cells: Sequence[Cell], dice: random.Random) -> list[Run]:
    """All cells, those of the same circumstances together as far as a walk can go."""
    found: list[Run] = []
    for among in sorted({cell.among for cell in cells}):
        rounds = _rounds([cell for cell in cells if cell.among == among], dice)
        while rounds:
            run, rounds = _walk(rounds, dice)
            found.append(run)
    return found


def _rounds(cells: Sequence[Cell], dice: random.Random) -> list[list[Cell]]:
    """Each begins with at most one driver's death; higher and lower take turns."""
    rounds: list[list[Cell]] = []
    changing = [_changing(cells, change, dice) for change in (Change.HIGHER, Change.LOWER)]
    for both in zip_longest(*changing):
        rounds += [one for one in both if one]
    alike = [cell for cell in cells if cell.change is Change.SAME]
    for cell in dice.sample(alike, len(alike)):
        rounds.insert(dice.randint(0, len(rounds)), [cell])
    return rounds


def _changing(cells: Sequence[Cell], change: Change, dice: random.Random) -> list[list[Cell]]:
    drivers = [c for c in cells if c.change is change and c.victim is FaultKind.KILL_DRIVER]
    slots = [c for c in cells if c.change is change and c.victim is FaultKind.KILL_SLOT]
    assert len(slots) <= len(drivers), "no slot can die in a wider job without a wider driver"
    dice.shuffle(drivers)
    return [[driver, *slots[n : n + 1]] for n, driver in enumerate(drivers)]


def _walk(rounds: list[list[Cell]], dice: random.Random) -> tuple[Run, list[list[Cell]]]:
    """As many rounds as one job can go through, and the others."""
    changes = [cells[0].change for cells in rounds if cells[0].change is not Change.SAME]
    first = width = max(WIDTHS) if changes[:1] == [Change.LOWER] else min(WIDTHS)
    deaths: list[tuple[Cell, int]] = []
    drivers = 0
    for number, cells in enumerate(rounds):
        next_widths = _next_widths(width, cells[0].change)
        if not next_widths or drivers == MOST_DRIVERS:
            return Run(cells[0].among, first, tuple(deaths)), rounds[number:]
        width = dice.choice(next_widths)
        drivers += cells[0].victim is FaultKind.KILL_DRIVER
        deaths += [(cell, width) for cell in cells]
    return Run(rounds[0][0].among, first, tuple(deaths)), []


def _next_widths(width: int, change: Change) -> list[int]:
    match change:
        case Change.SAME:
            return [width]
        case Change.HIGHER:
            return [w for w in WIDTHS if w > width]
        case Change.LOWER:
            return [w for w in WIDTHS if w < width]
