"""Computes the row at any offset of a generated split.

A row depends only on the recipe, its split and its offset. So a restored reader, or a test that
checks a job's results, can recompute any range of rows, and a replay needs no other state. One hash
of the offset gives the key, the value and the lateness of a row, each from different bits.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.ports.operators import Batch

Words = npt.NDArray[np.uint64]

COLUMNS = pa.schema(
    [
        ("split", pa.int32()),
        ("offset", pa.int64()),
        ("key", pa.int64()),
        ("value", pa.int64()),
        ("event_time", pa.timestamp("ms")),
    ]
)

_GOLDEN = 0x9E3779B97F4A7C15
_WORD = 1 << 64
_HALF = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_VALUE_BITS = np.uint64(1023)


def splitmix64(words: Words) -> Words:
    """Steele, Lea and Flood's finalizer: one to one over 64 bits, and it looks random."""
    return _scrambled(words.copy())


def _scrambled(mixed: Words) -> Words:
    """The same in place: fresh memory costs more than the arithmetic."""
    mixed += np.uint64(_GOLDEN)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


@dataclass(frozen=True, slots=True)
class Recipe:
    """How rows are made."""

    columns: tuple[str, ...] = tuple(COLUMNS.names)
    keys: int = 1_000
    """So many distinct keys, all equally frequent; at most 2^32."""
    sparse_keys: bool = False
    """Spread the keys over all 64-bit integers instead of counting them from zero."""
    start_ms: int = 0
    step_ms: int = 1
    """Event time of a split's first row, and from each row to the next."""
    out_of_orderness_ms: int = 0
    """A row is at most so much older than its offset implies."""
    seed: int = 0

    @property
    def schema(self) -> pa.Schema:
        return _schema(self.columns)

    def rows(self, split: int, first: int, stop: int) -> Batch:
        """The rows of a split from one offset to before another."""
        offsets = np.arange(first, stop, dtype=np.uint64)
        hashes = self._hashes(split, offsets)
        arrays = [self._column(name, split, offsets, hashes) for name in self.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _hashes(self, split: int, offsets: Words) -> Words:
        if not {"key", "value", "event_time"} & set(self.columns):
            return offsets
        return _scrambled(offsets + _beginning(self.seed, split))

    def _column(self, name: str, split: int, offsets: Words, hashes: Words) -> pa.Array:
        match name:
            case "split":
                return pa.array(np.full(len(offsets), split, dtype=np.int32))
            case "offset":
                return pa.array(offsets.view(np.int64))
            case "key":
                return pa.array(self._keys(hashes).view(np.int64))
            case "value":
                return pa.array((hashes & _VALUE_BITS).view(np.int64))
            case _:
                return pa.array(self._times(offsets, hashes)).view(pa.timestamp("ms"))

    def _keys(self, hashes: Words) -> Words:
        index = _below(self.keys, hashes & _LOW_HALF)
        if not self.sparse_keys:
            return index
        index += np.uint64(self.seed % _WORD)
        return _scrambled(index)

    def _times(self, offsets: Words, hashes: Words) -> npt.NDArray[np.int64]:
        times = offsets.view(np.int64) * self.step_ms
        times += self.start_ms
        if self.out_of_orderness_ms:
            times -= _below(self.out_of_orderness_ms + 1, hashes >> _HALF).view(np.int64)
        return times


def _below(bound: int, halves: Words) -> Words:
    """Scale 32 random bits to whole numbers below a bound, in place and without a division."""
    halves *= np.uint64(bound)
    halves >>= _HALF
    return halves


@cache
def _schema(columns: tuple[str, ...]) -> pa.Schema:
    return pa.schema([COLUMNS.field(name) for name in columns])


@cache
def _beginning(seed: int, split: int) -> np.uint64:
    """Where a split's offsets begin among all words that can be hashed."""
    word = np.array([(seed * _GOLDEN + split) % _WORD], dtype=np.uint64)
    return np.uint64(splitmix64(word)[0])
