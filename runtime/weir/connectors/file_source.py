"""A source of files: each file that appears in a directory is a split, read once.

Files must appear whole, by a rename or an upload, and never change: a position holds a digest of
the blocks up to the one it lies in, and a restored reader refuses a file in which they differ,
because the rows behind the position would not be those that a checkpoint counts on (spec R5).

A separate thread fetches a remote file piece by piece into an unnamed local file, because a reader
never waits; a local file is read in place.
"""

import logging
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import pyarrow as pa

from weir.connectors.encodings import Encoding
from weir.connectors.file_blocks import blocks_of, inferred_schema
from weir.connectors.file_cursor import Cursor, blaming
from weir.connectors.seen_files import SeenFiles
from weir.core.ids import SplitId
from weir.errors import JobRejected
from weir.ports.operators import Batch
from weir.ports.sources import Discovery
from weir.storage.stores import ObjectStore, store_for

log = logging.getLogger("weir.connectors")

FETCH_REST_MS = 5
FETCH_BYTES = 8 << 20
"""Of a remote file, fetched at once."""
MOST_AT_ONCE = 10_000
"""Files that one discovery returns; the next one continues behind them."""
_HIDDEN = ("_", ".")
_LOCAL = "file://"


@dataclass(frozen=True)
class FileSource:
    """The files of a directory, or a single file."""

    url: str
    encoding: Encoding
    schema: pa.Schema
    bounded: bool = False
    """Only the files that are there at the first look."""
    storage: Mapping[str, str] = field(default_factory=dict)
    is_recursive: bool = False
    """Read the files of subdirectories too, as with Spark's ``recursiveFileLookup``."""

    @property
    def is_endless(self) -> bool:
        return False

    @property
    def is_bounded(self) -> bool:
        return self.bounded

    def discover(self, seen: str) -> Discovery:
        found = list_files(self.url, self._store)
        self._warn_of_passed_over(found)
        fresh = self._seen.fresh(seen, found.directory, found.names(is_recursive=self.is_recursive))
        if not self.bounded:
            fresh = fresh[:MOST_AT_ONCE]
        splits = tuple(SplitId(f"{found.directory}/{name}") for name in fresh)
        after = self._seen.add(seen, found.directory, fresh)
        return Discovery(splits, after, is_final=self.bounded)

    def _warn_of_passed_over(self, found: "Listing") -> None:
        """Warn once that subdirectories are not read; Spark does not read them either."""
        if found.nested and not self.is_recursive and not self._warned:
            self._warned.add(found.directory)
            log.warning(
                "%s has %s files in subdirectories, such as %s, which are not read. To read them, "
                'set option("recursiveFileLookup", true)',
                *(found.directory, len(found.nested), found.nested[0]),
            )

    @cached_property
    def _seen(self) -> SeenFiles:
        return SeenFiles()

    @cached_property
    def _warned(self) -> set[str]:
        return set()

    def open(self, split: SplitId, position: str) -> "FileReader":
        return FileReader(position, _begun(split, lambda: self._cursor(split, position)))

    def _cursor(self, url: str, position: str) -> Cursor:
        with blaming(url):
            blocks = blocks_of(self.encoding, _opened(url, self._store), self.schema)
            return Cursor(url, blocks, self.schema, position)

    @cached_property
    def _store(self) -> ObjectStore:
        return store_for(self.url, self.storage)

    def __reduce__(self) -> tuple[type["FileSource"], tuple[object, ...]]:
        """The store; each process makes its own."""
        settings = (self.url, self.encoding, self.schema, self.bounded, self.storage)
        return FileSource, (*settings, self.is_recursive)


class Listing(NamedTuple):
    """The visible files below a directory, by their paths within it."""

    directory: str
    direct: list[str]
    nested: list[str]
    """Those in subdirectories."""

    def names(self, *, is_recursive: bool) -> list[str]:
        return sorted((*self.direct, *self.nested)) if is_recursive else self.direct


def list_files(url: str, store: ObjectStore) -> Listing:
    """The visible files below a directory, or the one file that it is."""
    directory = url.rstrip("/")
    inside = (found.removeprefix(f"{directory}/") for found in store.list(directory))
    names = sorted(name for name in inside if not _is_hidden(name))
    if not names and _is_file(directory, store):
        parent, _, name = directory.rpartition("/")
        return Listing(parent, [name], [])
    direct = [name for name in names if "/" not in name]
    return Listing(directory, direct, [name for name in names if "/" in name])


def _is_hidden(name: str) -> bool:
    """By its own name, or by that of a directory above it."""
    return any(part.startswith(_HIDDEN) for part in name.split("/"))


def _is_file(url: str, store: ObjectStore) -> bool:
    return Path(url.removeprefix(_LOCAL)).is_file() if _is_local(url) else store.exists(url)


def first_schema(
    url: str, encoding: Encoding, storage: Mapping[str, str], *, is_recursive: bool = False
) -> pa.Schema:
    """The schema of the first file there is, for a job that declares none."""
    store = store_for(url, storage)
    found = list_files(url, store)
    names = found.names(is_recursive=is_recursive)
    if not names:
        raise JobRejected(
            f"the schema of {url} is not known",
            "it holds no file to take the schema from",
            "declare it with .schema(...), or put a file there before the job starts",
        )
    first = f"{found.directory}/{names[0]}"
    with blaming(first):
        return inferred_schema(encoding, _opened(first, store))


class FileReader:
    """One split: nothing is there until the file is."""

    def __init__(self, position: str, opening: Future[Cursor]) -> None:
        self._begin = position
        self._opening = opening

    def read(self, rows: int) -> Batch | None:
        return self._opening.result().read(rows) if self._opening.done() else None

    @property
    def position(self) -> str:
        return self._opening.result().position if self._opening.done() else self._begin

    @property
    def is_exhausted(self) -> bool:
        return self._opening.done() and self._opening.result().is_exhausted

    @property
    def rest_ms(self) -> int:
        return 0 if self._opening.done() else FETCH_REST_MS

    def close(self) -> None:
        """Dropping the last reference closes the file, whichever thread holds it."""


def _begun(url: str, opening: Callable[[], Cursor]) -> Future[Cursor]:
    future: Future[Cursor] = Future()
    if _is_local(url):
        future.set_result(opening())
    else:
        Thread(target=_settle, args=(future, opening), name="fetch-split", daemon=True).start()
    return future


def _settle(future: Future[Cursor], opening: Callable[[], Cursor]) -> None:
    try:
        future.set_result(opening())
    except BaseException as reason:  # noqa: BLE001  # whatever it is, the reader's thread raises it
        future.set_exception(reason)


def _opened(url: str, store: ObjectStore) -> pa.NativeFile:
    if _is_local(url):
        return pa.OSFile(url.removeprefix(_LOCAL))
    with tempfile.TemporaryFile() as file:
        for start in range(0, size := store.size(url), FETCH_BYTES):
            file.write(store.read_range(url, start, min(start + FETCH_BYTES, size)))
        file.flush()
        return pa.OSFile(f"/proc/self/fd/{file.fileno()}")


def _is_local(url: str) -> bool:
    return url.startswith(_LOCAL)
