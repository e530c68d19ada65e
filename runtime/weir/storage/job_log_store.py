"""The job's log in storage: numbered entries, each created exclusively, and the floor below them.

The core decides what an entry means and which one to read next; this module reads, creates and
truncates entries so that of two drivers one always notices the other (spec C17). A listing only
saves single reads: an entry that it leaves out is found by its number.
"""

import json

from weir.core.log_entries import Entry, above, is_conclusive, to_probe
from weir.errors import JobRejected, Unavailable
from weir.storage.object_store import NotFound, ObjectStore, OutcomeUnknown
from weir.wire.json_codec import dumps, from_json

DIGITS = 12
"""Numbers are padded, so that names sort as numbers do."""


class JobLog:
    """The log of the job whose directory this is."""

    def __init__(self, store: ObjectStore, directory: str) -> None:
        self._store = store
        self._directory = f"{directory}/log"
        self._floor = f"{directory}/log/floor"

    def read(self) -> tuple[tuple[int, Entry], ...] | None:
        """From the oldest entry that counts to the newest; None: not conclusive, read again.

        A truncation may happen while we look. It notes its floor first, so entries that it took
        from under us are never mistaken for entries that never were.
        """
        floor = self._read_floor()
        found: dict[int, Entry] = {}
        absent: frozenset[int] = frozenset()
        hinted = [index for index in self._listed() if index >= floor]
        while (index := hinted.pop() if hinted else to_probe(found, absent, floor)) is not None:
            entry = self._read_entry(index)
            if entry is None:
                absent |= {index}
            else:
                found[index] = entry
        settled = self._read_floor() == floor
        return above(found, floor) if settled and is_conclusive(found, floor) else None

    def create(self, index: int, entry: Entry) -> bool:
        """Whether the entry is there and ours. Without its predecessor it is debris, not an entry.

        A driver that slept through many truncations finds its number free again; the gap before it
        says that the log has moved on.
        """
        if not self._store.create_exclusive(self._url(index), dumps(entry)):
            return False
        try:
            return index == 0 or self._store.exists(self._url(index - 1))
        except (Unavailable, JobRejected) as problem:
            raise OutcomeUnknown(*problem.parts) from problem

    def is_taken(self, index: int) -> bool:
        """Whether the entry is there, or was so long ago that the one before it is gone too."""
        return self._store.exists(self._url(index)) or not self._store.exists(self._url(index - 1))

    def truncate(self, below: int) -> None:
        """The floor is noted first: a truncated log is never taken for an empty one."""
        if below > self._read_floor():
            self._store.write(self._floor, json.dumps({"floor": below}).encode())
        self._store.delete(self._url(index) for index in self._listed() if index < below)

    def _url(self, index: int) -> str:
        return f"{self._directory}/{index:0{DIGITS}d}"

    def _listed(self) -> list[int]:
        names = (url.rpartition("/")[2] for url in self._store.list(self._directory))
        return sorted(int(name) for name in names if name.isdecimal())

    def _read_entry(self, index: int) -> Entry | None:
        url = self._url(index)
        try:
            # The union says which classes an entry can be; mypy cannot follow it.
            return from_json(json.loads(self._store.read(url)), Entry)  # type: ignore[return-value]
        except NotFound:
            return None
        except ValueError as problem:
            raise JobRejected(
                f"entry {url} of the job's log cannot be read",
                str(problem),
                "bring the file back, or start from a savepoint in another checkpoint directory",
            ) from problem

    def _read_floor(self) -> int:
        try:
            return int(json.loads(self._store.read(self._floor))["floor"])
        except NotFound:
            return 0
        except (ValueError, TypeError, KeyError) as problem:
            raise JobRejected(
                f"{self._floor} of the job's log cannot be read",
                str(problem),
                'write the number of the oldest entry into it, as {"floor": 7}',
            ) from problem
