"""A source that generates its rows: for demonstrations, tests and measurements.

Splits are numbers and positions are offsets, so the replay is exact after any failure. The reader
keeps a rate by returning no rows yet; it never sleeps. The schedule begins when a split is opened:
a job that was down does not catch up with a burst.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from weir.connectors.generator_rows import Recipe
from weir.core.ids import SplitId
from weir.ports.operators import Batch
from weir.ports.sources import Discovery

Seconds = Callable[[], float]

PULSE_S = 0.01
"""A paced reader rests until so much time's worth of rows is due, so that batches are not tiny."""


@dataclass(frozen=True, slots=True)
class GeneratorSource:
    """So many splits of made-up rows."""

    recipe: Recipe = field(default_factory=Recipe)
    splits: int = 2
    total: int = 0
    """Rows of all splits together; zero: without end."""
    rows_per_second: int = 0
    """Of all splits together; zero: as fast as they are asked for."""
    clock: Seconds = time.monotonic

    @property
    def schema(self) -> pa.Schema:
        return self.recipe.schema

    @property
    def is_endless(self) -> bool:
        return not self.total

    @property
    def is_bounded(self) -> bool:
        return not self.is_endless

    def discover(self, seen: str) -> Discovery:
        known = int(seen or 0)
        fresh = tuple(SplitId(f"{split:04d}") for split in range(known, self.splits))
        return Discovery(fresh, str(max(known, self.splits)), is_final=True)

    def open(self, split: SplitId, position: str) -> "GeneratorReader":
        return GeneratorReader(self, int(split), int(position or 0))

    def share(self, split: int) -> int | None:
        """How many rows of the total fall to this split; None without end."""
        if not self.total:
            return None
        return self.total // self.splits + (split < self.total % self.splits)


class Pace:
    """How many rows are due by now, at so many a second since the first question."""

    def __init__(self, rate: float, clock: Seconds) -> None:
        self._rate = rate
        self._clock = clock
        self._began: float | None = None

    def due(self, given: int, wanted: int) -> int:
        """How many of the wanted rows may be given, after those that were."""
        if not self._rate:
            return wanted
        return max(0, min(wanted, int(self._elapsed() * self._rate) - given))

    def rest_ms(self, given: int) -> int:
        if not self._rate:
            return 0
        ahead = given + max(1.0, PULSE_S * self._rate) - self._elapsed() * self._rate
        return max(0, math.ceil(1_000 * ahead / self._rate)) if self.due(given, 1) == 0 else 0

    def _elapsed(self) -> float:
        now = self._clock()
        if self._began is None:
            self._began = now
        return now - self._began


class GeneratorReader:
    """One split, from an offset on."""

    def __init__(self, source: GeneratorSource, split: int, first: int) -> None:
        self._recipe = source.recipe
        self._split = split
        self._stop = source.share(split)
        self._first = first
        self._next = first
        self._pace = Pace(source.rows_per_second / source.splits, source.clock)

    def read(self, rows: int) -> Batch | None:
        left = rows if self._stop is None else min(rows, self._stop - self._next)
        due = self._pace.due(self._next - self._first, left)
        if due <= 0:
            return None
        begin, self._next = self._next, self._next + due
        return self._recipe.rows(self._split, begin, self._next)

    @property
    def position(self) -> str:
        return str(self._next)

    @property
    def is_exhausted(self) -> bool:
        return self._stop is not None and self._next >= self._stop

    @property
    def rest_ms(self) -> int:
        return 0 if self.is_exhausted else self._pace.rest_ms(self._next - self._first)

    def close(self) -> None:
        """Nothing is open."""
