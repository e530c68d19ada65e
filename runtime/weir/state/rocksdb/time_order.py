"""Entries of RocksDB once more in the order of a time, to find those that have expired.

Such an entry is a time and the bytes of the entry that it is about. It may be left over: from a row
that has another time now, or whose key group another subtask has. So what is found is looked up,
and what is left over is deleted then. Scans begin where the last one found something, so what was
deleted before is never passed again.
"""

from collections.abc import Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from weir.state.rocksdb.database import Database
from weir.state.rocksdb.key_codec import bytes_of

Times = npt.NDArray[np.int64]

IN_ORDER = b"\xff\x02"
"""Before these entries, where no key group is, and no timer."""

_TIME_BYTES = 8
_LOWEST = 1 << 63
_BEHIND_TIME = 1 << 64


class TimeOrder:
    """Of one state, whose number tells its entries apart."""

    def __init__(self, database: Database, number: bytes) -> None:
        self._database = database
        self._prefix = IN_ORDER + number
        self._behind = _next_number(self._prefix)
        self._begin = self._prefix

    def entries(self, times: Times, entries: Sequence[bytes]) -> list[bytes]:
        """The entries in order that lead to these."""
        sortable = (times.view(np.uint64) ^ np.uint64(_LOWEST)).astype(">u8")
        heads = bytes_of(sortable.view(np.uint8).reshape(len(times), _TIME_BYTES))
        made = [self._prefix + head + entry for head, entry in zip(heads, entries, strict=True)]
        self._begin = min(self._begin, min(made, default=self._begin))
        return made

    def until(self, bound: int, most: int) -> list[bytes]:
        """The first entries whose time is at most that."""
        stop = self._behind
        if bound + _LOWEST + 1 < _BEHIND_TIME:
            stop = self._prefix + (bound + _LOWEST + 1).to_bytes(_TIME_BYTES, "big")
        if stop <= self._begin:
            return []
        found = [entry for entry, _ in islice(self._database.scan(self._begin, stop), most)]
        self._begin = found[0] if found else stop
        return found

    def times_of(self, found: Sequence[bytes]) -> Times:
        begin = len(self._prefix)
        heads = b"".join(entry[begin : begin + _TIME_BYTES] for entry in found)
        numbers = np.frombuffer(heads, ">u8").astype(np.uint64) ^ np.uint64(_LOWEST)
        return numbers.view(np.int64)

    def leads_to(self, found: Sequence[bytes]) -> list[bytes]:
        """The entries that entries in order are about."""
        begin = len(self._prefix) + _TIME_BYTES
        return [entry[begin:] for entry in found]


def _next_number(prefix: bytes) -> bytes:
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")
