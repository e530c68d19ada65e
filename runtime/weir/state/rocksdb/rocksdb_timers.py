"""Timers in RocksDB: by key, as any other state, and once more by time, to find those that are due.

The earliest of them are in memory, in order: up to a bound everything is there, and nothing behind
it. When the last of these is gone the next ones are read, from the bound on, so the timers that
fired are never passed again.
"""

import struct
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from weir.core.ids import Millis
from weir.core.snapshots import KeyGroupRange
from weir.errors import JobRejected
from weir.ports.keyed_state import TIMERS, Key, Row, TimeMode
from weir.state.rocksdb.database import Database
from weir.state.rocksdb.key_cursor import KeyCursor
from weir.state.rocksdb.write_buffer import WriteBuffer
from weir.state.state_columns import TIMER, TIMER_FIELDS

BY_TIME, BEHIND = b"\xff\x00", b"\xff\x01"
"""Before the entries of the second form and behind them, where no key group is."""

_TIME = struct.Struct(">Q")
_LOWEST = 1 << 63
_HEAD = 1024
_GROUP_BYTES = 2

Waiting = tuple[int, bytes]
"""A time, and the group and bytes of a key."""


class RocksDBTimers:
    """The timers of one operator's keys; the cursor selects the key."""

    name = TIMERS
    kind = TIMER
    fields: tuple[pa.Field, ...] = TIMER_FIELDS
    expires = False

    def __init__(
        self,
        number: bytes,
        stored: tuple[Database, WriteBuffer],
        cursor: KeyCursor,
        mode: TimeMode,
        keys_of: Callable[[Sequence[bytes]], list[Key]],
    ) -> None:
        self.number = number
        self.mode = mode
        self._database, self._buffer = stored
        self._cursor = cursor
        self._keys_of = keys_of
        self._head: list[Waiting] = []
        self._keys: dict[bytes, Key] = {}
        """Of those in the head."""
        self._bound: bytes | None = None
        """Everything before it is in the head; None: everything is."""

    def register(self, expiry: int) -> None:
        cursor = self._cursor
        time = _sortable(expiry)
        if self._buffer.get(self._prefix(), time) is not None:
            return
        whose = cursor.group + cursor.encoded
        self._buffer.put(self._prefix(), time, b"")
        self._buffer.put(BY_TIME, time + whose, b"")
        if self._bound is None or time + whose < self._bound:
            insort(self._head, (expiry, whose))
            self._keys[whose] = cursor.key
            if len(self._head) > 2 * _HEAD or len(self._keys) > 4 * _HEAD:
                self._cut()

    def delete(self, expiry: int) -> None:
        cursor = self._cursor
        time = _sortable(expiry)
        if self._buffer.get(self._prefix(), time) is None:
            return
        whose = cursor.group + cursor.encoded
        self._buffer.put(self._prefix(), time, None)
        self._buffer.put(BY_TIME, time + whose, None)
        at = bisect_left(self._head, (expiry, whose))
        if self._head[at : at + 1] == [(expiry, whose)]:
            del self._head[at]

    def of_key(self) -> Iterator[int]:
        return iter([_time_of(suffix) for suffix, _ in self._buffer.scan(self._prefix())])

    def earliest(self) -> Millis | None:
        if not self._head:
            self._refill()
        return Millis(self._head[0][0]) if self._head else None

    def is_due(self, now: Millis) -> bool:
        earliest = self.earliest()
        return earliest is not None and earliest <= now

    def seek_earliest(self) -> tuple[Key, Millis]:
        self._buffer.bound()
        earliest = self.earliest()
        assert earliest is not None, "someone waits for a timer"
        _, whose = self._head[0]
        cursor = self._cursor
        cursor.group, cursor.encoded = whose[:_GROUP_BYTES], whose[_GROUP_BYTES:]
        cursor.key = self._keys[whose]
        return cursor.key, earliest

    def flat(self, suffix: bytes, value: bytes, ordinal: int) -> Row:
        del value, ordinal
        return _time_of(suffix), self.mode.value

    def entry(self, row: Row, now: Millis) -> tuple[bytes, bytes]:
        del now
        expiry, mode = row
        assert isinstance(expiry, int), "a timer has a time"
        self.check_mode(mode)
        return _sortable(expiry), b""

    def check_mode(self, mode: object) -> None:
        if mode != self.mode.value:
            raise JobRejected(
                f"the restored timers go by {mode}",
                f"the processor now runs with time mode {self.mode.value}",
                f"set the time mode back to {mode}",
            )

    def loaded(self, timers: Sequence[tuple[bytes, bytes, bytes]]) -> None:
        """Entries of the first form were written: by group, bytes of the key and time."""
        self._database.write((BY_TIME + time + group + key, b"") for group, key, time in timers)
        self.restored()

    def restored(self) -> None:
        """There are entries of both forms that were not registered here."""
        self._bound = b""
        self._head, self._keys = [], {}

    def keep_only(self, groups: KeyGroupRange) -> None:
        """Delete the entries of the second form whose key group is another's."""
        at = len(BY_TIME) + _TIME.size
        self._database.write(
            (entry, None)
            for entry, _ in self._database.scan(BY_TIME, BEHIND)
            if int.from_bytes(entry[at : at + _GROUP_BYTES], "big") not in groups
        )

    def _prefix(self) -> bytes:
        cursor = self._cursor
        return cursor.group + self.number + cursor.encoded

    def _cut(self) -> None:
        if len(self._head) > _HEAD:
            self._bound = _suffix(self._head[_HEAD])
            del self._head[_HEAD:]
        self._keys = {whose: self._keys[whose] for _, whose in self._head}

    def _refill(self) -> None:
        if self._bound is None:
            self._keys.clear()
            return
        found: list[bytes] = []
        self._bound_from(found)
        keys = self._keys_of([suffix[_TIME.size :] for suffix in found])
        self._head = [(_time_of(suffix), suffix[_TIME.size :]) for suffix in found]
        self._keys = {whose: key for (_, whose), key in zip(self._head, keys, strict=True)}

    def _bound_from(self, found: list[bytes]) -> None:
        assert self._bound is not None, "something is not in the head"
        begin, self._bound = self._bound, None
        for suffix in self._buffer.suffixes(BY_TIME, begin):
            if len(found) == _HEAD:
                self._bound = suffix
                return
            found.append(suffix)


def _sortable(expiry: int) -> bytes:
    """Signed times in the order of their bytes."""
    return _TIME.pack(expiry + _LOWEST)


def _time_of(suffix: bytes) -> int:
    (time,) = _TIME.unpack_from(suffix)
    return int(time) - _LOWEST


def _suffix(waiting: Waiting) -> bytes:
    expiry, whose = waiting
    return _sortable(expiry) + whose
