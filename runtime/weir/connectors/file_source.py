"""A source of files: each file that appears in a directory is a split, read once.

Files must appear whole, by a rename or an upload, and never change: a position holds a digest of
the blocks up to the one it lies in, and a restored reader refuses a file in which they differ,
because the rows behind the position would not be those that a checkpoint counts on (spec R5).

A remote file is fetched into memory on a thread of its own, for a reader never waits; a local one
is read in place.
"""

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Thread

import pyarrow as pa

from weir.connectors.encodings import Encoding
from weir.connectors.file_blocks import blocks_of, inferred_schema
from weir.connectors.file_cursor import Cursor, blaming
from weir.core.ids import SplitId
from weir.errors import JobRejected
from weir.ports.operators import Batch
from weir.ports.sources import Discovery
from weir.storage.objects import ObjectStore, store_for

FETCH_REST_MS = 5
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

    @property
    def is_endless(self) -> bool:
        return False

    def discover(self, seen: str) -> Discovery:
        known = frozenset(json.loads(seen)) if seen else frozenset()
        found = list_files(self.url, self._store)
        fresh = tuple(SplitId(url) for url in found if _name(url) not in known)
        names = sorted(known.union(_name(url) for url in fresh))
        return Discovery(fresh, json.dumps(names), is_final=self.bounded)

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
        """Another process makes a store of its own."""
        return FileSource, (self.url, self.encoding, self.schema, self.bounded, self.storage)


def list_files(url: str, store: ObjectStore) -> list[str]:
    """The visible files of a directory in the order of their names, or the one file it is."""
    directory = url.rstrip("/")
    inside = (found.removeprefix(f"{directory}/") for found in store.list(directory))
    names = sorted(n for n in inside if "/" not in n and not n.startswith(_HIDDEN))
    if names:
        return [f"{directory}/{name}" for name in names]
    return [url] if _is_file(url, store) else []


def _is_file(url: str, store: ObjectStore) -> bool:
    return Path(url.removeprefix(_LOCAL)).is_file() if _is_local(url) else store.exists(url)


def first_schema(url: str, encoding: Encoding, storage: Mapping[str, str]) -> pa.Schema:
    """The schema of the first file there is, for a job that declares none."""
    store = store_for(url, storage)
    files = list_files(url, store)
    if not files:
        raise JobRejected(
            f"{url} holds no file to take the schema from. Declare it with .schema(...), or put a "
            "file there before the job starts"
        )
    with blaming(files[0]):
        return inferred_schema(encoding, _opened(files[0], store))


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
    return pa.BufferReader(store.read(url))


def _is_local(url: str) -> bool:
    return url.startswith(_LOCAL)


def _name(url: str) -> str:
    return url.rpartition("/")[2]
