"""Collects the changes of states of one key at a time, and writes them in one batch.

Reads see what is collected. Changes are kept by the bytes of their key and then by what is behind
those, so that the entries of a key, such as those of a map, are found without a search.

At a barrier the changes are frozen: they belong to the capture, which writes them when it is
settled, and new changes are collected beside them. The two are never more than one capture apart.
"""

from collections.abc import Iterable, Iterator
from heapq import merge

from weir.state.rocksdb.database import Database, Entry, after
from weir.state.rocksdb.rocksdb_capture import RocksDBCapture
from weir.state.rocksdb.rocksdb_memory import RocksDBMemory

Changes = dict[bytes, bytes | None]

_OVERHEAD = 200
"""About what the objects of one change take beside its bytes."""
_NOTHING: Changes = {}


class WriteBuffer:
    """Changes that RocksDB does not have yet."""

    def __init__(self, database: Database, memory: RocksDBMemory) -> None:
        self._database = database
        self._memory = memory
        self._changes: dict[bytes, Changes] = {}
        self._new_bytes = 0
        self._frozen: dict[bytes, Changes] = {}
        self._frozen_bytes = 0
        self._capture: RocksDBCapture | None = None
        """Writes what is frozen; None: nothing is."""
        self._fetched: dict[bytes, bytes | None] = {}
        self._changed: set[bytes] | None = None

    def remember_changes(self) -> None:
        """From now on, say which keys of states were changed."""
        self._changed = set()

    def take_changed(self) -> set[bytes]:
        """What is before the suffixes of all entries that changed since the last call."""
        changed, self._changed = self._changed or set(), set()
        return changed

    @property
    def unwritten_bytes(self) -> int:
        return self._new_bytes + self._frozen_bytes

    @property
    def is_frozen(self) -> bool:
        """Whether a write would first have to wait for what is frozen."""
        return self._capture is not None and not self._capture.is_settled

    @property
    def is_empty(self) -> bool:
        return not self._changes and not self._frozen

    def fetch(self, entries: Iterable[bytes]) -> None:
        """Read these at once; only what was fetched last is kept."""
        if self._capture is not None and self._capture.is_settled:
            self.settle()
        wanted = [e for e in entries if e not in self._changes and e not in self._frozen]
        self._fetched = dict(zip(wanted, self._database.multi_get(wanted), strict=True))

    def get(self, prefix: bytes, suffix: bytes = b"") -> bytes | None:
        for changes in (self._changes.get(prefix, _NOTHING), self._frozen.get(prefix, _NOTHING)):
            if suffix in changes:
                return changes[suffix]
        if not suffix and prefix in self._fetched:
            return self._fetched[prefix]
        return self._database.get(prefix + suffix)

    def put(self, prefix: bytes, suffix: bytes, value: bytes | None) -> None:
        """None deletes."""
        changes = self._changes.get(prefix)
        if changes is None:
            changes = self._changes[prefix] = {}
        changes[suffix] = value
        if self._changed is not None:
            self._changed.add(prefix)
        self._fetched.pop(prefix, None)
        self._new_bytes += _OVERHEAD + len(prefix) + len(value or b"")

    def scan(self, prefix: bytes) -> list[Entry]:
        """What is behind the prefix, in order, and the values."""
        skipped = len(prefix)
        changes = self._unwritten(prefix)
        stored = self._database.scan(prefix, after(prefix))
        found: Changes = {entry[skipped:]: value for entry, value in stored}
        if changes:
            found = dict(sorted({**found, **changes}.items()))
        return [(suffix, value) for suffix, value in found.items() if value is not None]

    def suffixes(self, prefix: bytes, first: bytes) -> Iterator[bytes]:
        """What is behind the prefix from this one on, in order, read as far as it is asked for."""
        changes = self._unwritten(prefix)
        skipped = len(prefix)
        stored = (
            entry[skipped:] for entry, _ in self._database.scan(prefix + first, after(prefix))
        )
        added = sorted(s for s, value in changes.items() if value is not None and s >= first)
        return merge((suffix for suffix in stored if suffix not in changes), added)

    def clear(self, prefix: bytes) -> None:
        for suffix, _ in self.scan(prefix):
            self.put(prefix, suffix, None)

    def freeze(self, *, keeps_files: bool) -> RocksDBCapture:
        """The state of this moment."""
        self.settle()
        frozen, database = self._changes, self._database
        self._frozen, self._changes = frozen, {}
        self._frozen_bytes, self._new_bytes = self._new_bytes, 0
        self._fetched = {}
        self._capture = RocksDBCapture(
            database, lambda: _write(database, frozen), keeps_files=keeps_files
        )
        return self._capture

    def bound(self) -> None:
        """Write everything if it is more than the memory allows."""
        if self.unwritten_bytes > self._memory.unwritten_bytes:
            self.flush()

    def settle(self) -> None:
        """What is frozen is written when this returns."""
        if self._capture is not None:
            self._capture.settle()
            self._capture, self._frozen, self._frozen_bytes = None, {}, 0

    def flush(self) -> None:
        """Write everything, in one batch."""
        self.settle()
        _write(self._database, self._changes)
        self._changes = {}
        self._new_bytes = 0

    def _unwritten(self, prefix: bytes) -> Changes:
        """Taken before the database is read, which may get what is frozen meanwhile."""
        frozen, changes = self._frozen.get(prefix), self._changes.get(prefix, _NOTHING)
        return {**frozen, **changes} if frozen else changes


def _write(database: Database, collected: dict[bytes, Changes]) -> None:
    if collected:
        database.write(
            (prefix + suffix, value)
            for prefix, changes in collected.items()
            for suffix, value in changes.items()
        )
