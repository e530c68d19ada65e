"""The numbered records of a directory, which list its committed files.

A record is created exclusively and never changed. If two drivers commit under one number, one wins,
and the other learns whether its commit was a repetition or a conflict.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from weir.connectors import transaction_names
from weir.errors import Fenced, JobRejected
from weir.storage.stores import ObjectStore


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """One commit as it was written down."""

    sequence: int
    names: tuple[str, ...]
    files: tuple[str, ...]
    """The transactions' files, by name within the directory."""


@dataclass(frozen=True, slots=True)
class CommitRecords:
    """All commits of one directory."""

    store: ObjectStore
    directory: str

    def all(self) -> list[CommitRecord]:
        urls = sorted(self.store.list(f"{self.directory}/_commits"))
        return [self._read(url) for url in urls if url.rpartition("/")[2].isdecimal()]

    def find(self, sequence: int, names: tuple[str, ...]) -> CommitRecord | None:
        """The record under this number, if these transactions are what it committed.

        A number that comes without transactions closes a gap after a rollback: whatever is
        recorded under it stays.
        """
        url = self._url(sequence)
        if not self.store.exists(url):
            return None
        record = self._read(url)
        if names and record.names != names:
            raise self._conflict(record, names)
        return record

    def create(self, record: CommitRecord) -> None:
        content = {"sequence": record.sequence, "names": record.names, "files": record.files}
        data = json.dumps(content, indent=1).encode()
        if not self.store.create_exclusive(self._url(record.sequence), data):
            self.find(record.sequence, record.names)

    def newest(self) -> int:
        """The highest number that is recorded; zero if none is."""
        files = (url.rpartition("/")[2] for url in self.store.list(f"{self.directory}/_commits"))
        return max((int(file) for file in files if file.isdecimal()), default=0)

    def forget(self, sequence: int) -> None:
        """Delete a record, for a sink that needs records only to detect a repetition."""
        self.store.delete((self._url(sequence),))

    def _url(self, sequence: int) -> str:
        return f"{self.directory}/_commits/{sequence:08d}"

    def _read(self, url: str) -> CommitRecord:
        content = json.loads(self.store.read(url))
        return CommitRecord(
            int(content["sequence"]), tuple(content["names"]), tuple(content["files"])
        )

    def _conflict(self, record: CommitRecord, names: tuple[str, ...]) -> Fenced | JobRejected:
        if not record.names or _epoch(record.names) > _epoch(names):
            return Fenced(
                f"commit {record.sequence} of {self.directory} was made by a newer driver of "
                "this job",
                "this driver is no longer the owner",
            )
        return JobRejected(
            f"{self.directory} holds commit {record.sequence} of another job or of another sink",
            "each sink numbers its commits in its own directory",
            "give every sink a directory that no other sink uses, empty at the job's first start",
        )


def _epoch(names: Iterable[str]) -> int:
    parsed = (transaction_names.parse(name) for name in names)
    return max((name.epoch for name in parsed if name), default=0)
