"""One store for URLs of every scheme: a job may keep checkpoints on disk and savepoints in S3.

Stores are made when they are first needed, in the process that uses them, because a connection does
not survive a fork. A scheme keeps its store, so that what is in memory stays there.
"""

from collections.abc import Iterable, Mapping
from threading import Lock

from weir.storage.object_store import Data, ObjectStore
from weir.storage.stores import store_for


class StoreByScheme:
    """Whatever store a URL belongs to."""

    def __init__(self, options: Mapping[str, object] | None = None) -> None:
        self._options = options
        self._stores: dict[str, ObjectStore] = {}
        self._lock = Lock()

    def read(self, url: str) -> bytes:
        return self._of(url).read(url)

    def read_range(self, url: str, start: int, stop: int) -> bytes:
        return self._of(url).read_range(url, start, stop)

    def size(self, url: str) -> int:
        return self._of(url).size(url)

    def exists(self, url: str) -> bool:
        return self._of(url).exists(url)

    def list(self, directory: str) -> tuple[str, ...]:
        return self._of(directory).list(directory)

    def list_unfinished(self, directory: str) -> tuple[str, ...]:
        return self._of(directory).list_unfinished(directory)

    def write(self, url: str, data: Data) -> None:
        self._of(url).write(url, data)

    def copy(self, source: str, target: str) -> None:
        """Within one scheme."""
        self._of(source).copy(source, target)

    def create_exclusive(self, url: str, data: bytes) -> bool:
        return self._of(url).create_exclusive(url, data)

    def delete(self, urls: Iterable[str]) -> None:
        """In this order, whichever store each is in."""
        for url in urls:
            self._of(url).delete((url,))

    def make_new(self, directory: str) -> None:
        self._of(directory).make_new(directory)

    def _of(self, url: str) -> ObjectStore:
        scheme = url.partition("://")[0]
        with self._lock:
            if scheme not in self._stores:
                self._stores[scheme] = store_for(url, self._options)
            return self._stores[scheme]
