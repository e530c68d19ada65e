"""Spark's ``rate`` source: so many rows a second, each with its number and its time.

Value ``v`` belongs to the moment ``start + v / rowsPerSecond``, is there from that moment on, and
has it as its timestamp. The first discovery of a job sets the start, which is part of every split's
id; so any range of rows can be recomputed, with the same times, after any failure. A job that was
down catches up, as in Spark. Split ``i`` of ``n`` has the values ``i, i + n, …``, so
that all splits are at about the same time.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from weir.core.ids import SplitId
from weir.dataflow.options import Options
from weir.dataflow.types import TIMESTAMP
from weir.errors import JobRejected
from weir.ports.operators import Batch
from weir.ports.sources import Discovery

SCHEMA = pa.schema([("timestamp", TIMESTAMP), ("value", pa.int64())])

SECOND_MS = 1_000
MOST_ROWS_A_SECOND = 1 << 40
MOST_PARTITIONS = 10_000

WallClock = Callable[[], int]
"""Milliseconds since 1970."""


def wall_clock() -> int:
    return time.time_ns() // 1_000_000


class RateSplit(NamedTuple):
    """One split, as its id describes it."""

    start_ms: int
    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.start_ms}-{self.number}-{self.of}"


def _parsed(split: str) -> RateSplit:
    parts = split.split("-")
    if len(parts) != len(RateSplit._fields):
        raise JobRejected(
            f"split {split} cannot be read by the rate source",
            "it was saved when the source made other columns",
            'read it with format("generator"), or start without this state',
        )
    return RateSplit(*map(int, parts))


@dataclass(frozen=True, slots=True)
class RateSource:
    """Numbers by the clock."""

    rows_per_second: int = 1
    partitions: int = 2
    clock: WallClock = wall_clock

    @property
    def schema(self) -> pa.Schema:
        return SCHEMA

    @property
    def is_endless(self) -> bool:
        return True

    @property
    def is_bounded(self) -> bool:
        return False

    def discover(self, seen: str) -> Discovery:
        """The splits of the first look, for good: another number of them would change the rows."""
        if seen:
            return Discovery((), seen, is_final=True)
        start = self.clock()
        splits = (RateSplit(start, number, self.partitions) for number in range(self.partitions))
        return Discovery(tuple(SplitId(str(split)) for split in splits), str(start), is_final=True)

    def open(self, split: SplitId, position: str) -> "RateReader":
        return RateReader(self, _parsed(split), int(position or 0))


class RateReader:
    """One split, from a number of rows on."""

    def __init__(self, source: RateSource, split: RateSplit, read: int) -> None:
        self._rate = source.rows_per_second
        self._clock = source.clock
        self._split = split
        self._read = read

    def read(self, rows: int) -> Batch | None:
        count = min(rows, self._due() - self._read)
        if count <= 0:
            return None
        numbers = np.arange(self._read, self._read + count, dtype=np.int64)
        self._read += count
        values = numbers * self._split.of + self._split.number
        return pa.record_batch([self._times(values), pa.array(values)], schema=SCHEMA)

    def _times(self, values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
        """To the millisecond, as in Spark; whole seconds apart, so that nothing overflows."""
        seconds, rest = np.divmod(values, self._rate)
        millis = self._split.start_ms + seconds * SECOND_MS + rest * SECOND_MS // self._rate
        return pa.array(millis * SECOND_MS).cast(pa.timestamp("us")).cast(TIMESTAMP)

    def _due(self) -> int:
        """How many rows of the split there are by now."""
        elapsed = max(0, self._clock() - self._split.start_ms)
        newest = elapsed * self._rate // SECOND_MS
        return max(0, (newest - self._split.number) // self._split.of + 1)

    @property
    def position(self) -> str:
        return str(self._read)

    @property
    def is_exhausted(self) -> bool:
        return False

    @property
    def rest_ms(self) -> int:
        value = self._read * self._split.of + self._split.number
        due = self._split.start_ms - (-value * SECOND_MS // self._rate)
        return max(0, due - self._clock())

    def close(self) -> None:
        """Nothing is open."""


def rate_source(options: Options) -> RateSource:
    """Spark's options; what Spark has besides (``rampUpTime``) is refused by its name."""
    return RateSource(
        _positive(options, "rowsPerSecond", 1, MOST_ROWS_A_SECOND),
        _positive(options, "numPartitions", 2, MOST_PARTITIONS),
    )


def _positive(options: Options, name: str, default: int, most: int) -> int:
    number = options.integer(name, default)
    if not 1 <= number <= most:
        raise options.refusal(name, "it is out of range", f"choose 1 to {most}")
    return number
