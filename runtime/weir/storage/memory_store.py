"""Keeps objects in this process, for experiments: they end with it, and no other process sees them.

Stores share nothing: code that needs the same objects must use the same store.
"""

from collections.abc import Iterable
from threading import Lock

from weir.errors import JobRejected
from weir.storage.object_store import Data, NotFound, refuse_used

LIMIT_BYTES = 64 << 20
"""Of all objects together."""


class MemoryStore:
    """Objects of ``memory://`` URLs."""

    def __init__(self, limit: int = LIMIT_BYTES) -> None:
        self._limit = limit
        self._objects: dict[str, bytes] = {}
        self._lock = Lock()

    def read(self, url: str) -> bytes:
        try:
            return self._objects[url]
        except KeyError:
            raise NotFound(url) from None

    def read_range(self, url: str, start: int, stop: int) -> bytes:
        return self.read(url)[start:stop]

    def size(self, url: str) -> int:
        return len(self.read(url))

    def exists(self, url: str) -> bool:
        return url in self._objects

    def list(self, directory: str) -> tuple[str, ...]:
        with self._lock:
            return tuple(sorted(url for url in self._objects if url.startswith(f"{directory}/")))

    def list_unfinished(self, directory: str) -> tuple[str, ...]:
        """None: an object is kept in one step."""
        del directory
        return ()

    def write(self, url: str, data: Data) -> None:
        with self._lock:
            self._keep(url, bytes(memoryview(data)))

    def copy(self, source: str, target: str) -> None:
        self.write(target, self.read(source))

    def create_exclusive(self, url: str, data: bytes) -> bool:
        with self._lock:
            if url not in self._objects:
                self._keep(url, data)
            return self._objects[url] == data

    def delete(self, urls: Iterable[str]) -> None:
        with self._lock:
            for url in urls:
                self._objects.pop(url, None)

    def make_new(self, directory: str) -> None:
        if self.list(directory):
            raise refuse_used(directory)

    def _keep(self, url: str, data: bytes) -> None:
        others = sum(len(kept) for name, kept in self._objects.items() if name != url)
        if others + len(data) > self._limit:
            raise JobRejected(
                f"{url} does not fit",
                f"memory:// holds at most {self._limit >> 20} MiB, for experiments",
                "keep checkpoints in a directory, as in file:///data or s3://bucket",
            )
        self._objects[url] = data
