"""Collects the changes of states of one key at a time, and writes them in one batch.

Reads see what is collected. Changes are kept by the bytes of their key and then by what is behind
those, so that the entries of a key, such as those of a map, are found without a search.
"""

from collections.abc import Iterable

from weir.state.rocksdb.database import Database, Entry, after

Changes = dict[bytes, bytes | None]

_OVERHEAD = 200
"""About what the objects of one change take beside its bytes."""
_NOTHING: Changes = {}


class WriteBuffer:
    """Changes that RocksDB does not have yet."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changes: dict[bytes, Changes] = {}
        self._fetched: dict[bytes, bytes | None] = {}
        self.bytes = 0
        self._changed: set[bytes] | None = None

    def remember_changes(self) -> None:
        """From now on, say which keys of states were changed."""
        self._changed = set()

    def take_changed(self) -> set[bytes]:
        """What is before the suffixes of all entries that changed since the last call."""
        changed, self._changed = self._changed or set(), set()
        return changed

    def fetch(self, entries: Iterable[bytes]) -> None:
        """Read these at once; only what was fetched last is kept."""
        wanted = [entry for entry in entries if entry not in self._changes]
        self._fetched = dict(zip(wanted, self._database.multi_get(wanted), strict=True))

    def get(self, prefix: bytes, suffix: bytes = b"") -> bytes | None:
        changes = self._changes.get(prefix, _NOTHING)
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
        self.bytes += _OVERHEAD + len(prefix) + len(value or b"")

    def scan(self, prefix: bytes) -> list[Entry]:
        """What is behind the prefix, in order, and the values."""
        skipped = len(prefix)
        stored = self._database.scan(prefix, after(prefix))
        found: Changes = {entry[skipped:]: value for entry, value in stored}
        changes = self._changes.get(prefix)
        if changes:
            found = dict(sorted({**found, **changes}.items()))
        return [(suffix, value) for suffix, value in found.items() if value is not None]

    def clear(self, prefix: bytes) -> None:
        for suffix, _ in self.scan(prefix):
            self.put(prefix, suffix, None)

    def flush(self) -> None:
        """Write everything, in one batch."""
        if not self._changes:
            return
        self._database.write(
            (prefix + suffix, value)
            for prefix, changes in self._changes.items()
            for suffix, value in changes.items()
        )
        self._changes = {}
        self.bytes = 0
