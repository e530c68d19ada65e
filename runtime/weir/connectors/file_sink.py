"""A directory of files in which every row appears exactly once.

A transaction is staged under ``_staging``, moved to ``part-<transaction>`` when it is committed,
and then named by a record under ``_commits``. Every step can be repeated after a crash and ends in
the same files, because a file's place depends on its transaction alone and not on the number: a
savepoint may hold one that was committed under another number since. So the files of one commit may
be moved side by side, in any order, as long as all of them are there before the record is.

A reader of the records sees each commit atomically (``committed_files``). A reader that lists the
directory, as Spark does, sees the same files, but those of one commit appear one after another.
"""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from weir.connectors.commit_records import CommitRecord, CommitRecords
from weir.connectors.directory_owner import DirectoryOwner
from weir.connectors.encodings import Encoding
from weir.connectors.staging import Staging, StagingWriter
from weir.connectors.transaction_names import new_token
from weir.core.ids import SubtaskId
from weir.errors import JobRejected, Unavailable
from weir.ports.operators import TaskInfo
from weir.ports.sinks import SinkOwner
from weir.storage.stores import NotFound, ObjectStore, store_for

_LOCAL = "file://"

SIDE_BY_SIDE = 8
"""Files of one commit that are moved at the same time."""


@dataclass(frozen=True, slots=True)
class FileSink:
    """Writes one file for each subtask and checkpoint."""

    url: str
    encoding: Encoding
    storage: Mapping[str, str] = field(default_factory=dict)
    token: str = field(default_factory=new_token)

    def open(self, place: TaskInfo) -> StagingWriter:
        return StagingWriter(self.staging(), place, self.token)

    def committer(self) -> "FileCommitter":
        staging = self.staging()
        return FileCommitter(staging, CommitRecords(staging.store, staging.directory))

    def staging(self) -> Staging:
        return Staging(store_for(self.url, self.storage), self.url.rstrip("/"), self.encoding)


@dataclass(slots=True)
class FileCommitter:
    """Moves staged files to where readers look, and writes down that they count."""

    staging: Staging
    records: CommitRecords
    _owner: SinkOwner | None = None

    def claim(self, owner: SinkOwner) -> None:
        newest = self.records.newest()
        if newest and not owner.commits:
            raise JobRejected(
                f"{self.staging.directory} holds {newest} commits of another job or of another "
                "sink",
                f"{owner} has made none",
                "give every sink a directory that no other sink uses, empty at the job's first "
                "start",
            )
        self._directory.claim(owner)
        self._owner = owner

    @property
    def _directory(self) -> DirectoryOwner:
        return DirectoryOwner(self.staging.store, self.staging.directory)

    def _check_owner(self) -> None:
        if self._owner is not None:
            self._directory.check(self._owner)

    def commit(self, sequence: int, names: tuple[str, ...]) -> None:
        self._check_owner()
        if self.records.find(sequence, names) is None:
            files = _publish_all(self.staging, names)
            self.records.create(CommitRecord(sequence, names, files))

    def resolve(
        self, subtasks: tuple[SubtaskId, ...], owner: tuple[int, int], keep: frozenset[str]
    ) -> None:
        self._check_owner()
        self.staging.resolve(subtasks, owner, keep)


def _publish_all(staging: Staging, names: tuple[str, ...]) -> tuple[str, ...]:
    """Whatever happens, nothing is being moved any more when this ends."""
    with ThreadPoolExecutor(SIDE_BY_SIDE, thread_name_prefix="weir-publish") as pool:
        return tuple(pool.map(lambda name: publish(staging, name), names))


def publish(staging: Staging, name: str) -> str:
    """Put a staged file where readers look, if it is not there yet; gives the file's name."""
    file = f"part-{name}.{staging.encoding}"
    staged, published = staging.url(name), f"{staging.directory}/{file}"
    try:
        if staged.startswith(_LOCAL):
            _rename(staged, published)
        else:
            _copy(staging.store, staged, published)
    except NotFound:  # an earlier try has moved it, or a driver that has taken over
        if not staging.store.exists(published):
            raise _missed(staged) from None
    return file


def _missed(staged: str) -> JobRejected:
    return JobRejected(
        f"{staged} is to be committed and is not there",
        "the job wrote to another directory when it was saved, or the savepoint's output was "
        "given up since, or the file was deleted",
        "give the sink the path that it had, or restore a newer checkpoint",
    )


def _rename(source: str, target: str) -> None:
    path = Path(target.removeprefix(_LOCAL))
    try:
        Path(source.removeprefix(_LOCAL)).replace(path)
        _sync(path.parent)
    except FileNotFoundError:
        raise NotFound(source) from None
    except OSError as problem:
        raise Unavailable(
            f"{target} may not be durable",
            f"{problem.strerror}",
            "check the file system of the output; the commit is repeated",
            retry_after=1.0,
        ) from problem


def _copy(store: ObjectStore, source: str, target: str) -> None:
    """An object store knows no renaming. The copy is durable before its original goes."""
    store.copy(source, target)
    store.delete([source])


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def committed_files(url: str, storage: Mapping[str, str] | None = None) -> list[str]:
    """The files that count, in the order of their commits."""
    directory = url.rstrip("/")
    records = CommitRecords(store_for(url, storage or {}), directory)
    files = (file for record in records.all() for file in record.files)
    return [f"{directory}/{file}" for file in dict.fromkeys(files)]


def read_committed(url: str, storage: Mapping[str, str] | None = None) -> pa.Table:
    """All rows that were committed so far; a table without columns if none were."""
    store = store_for(url, storage or {})
    tables = [_read(store, file) for file in committed_files(url, storage)]
    return pa.concat_tables(tables, promote_options="default") if tables else pa.table({})


def _read(store: ObjectStore, url: str) -> pa.Table:
    return Encoding(url.rpartition(".")[2]).decode(store.read(url))
