"""A store in memory that fails on request, before it has acted or after.

The names of its operations are those of the contract, so a test chooses which one fails next and
how. A write that acts and then fails looks the same as one that did neither.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from typing import TypeVar

from weir.storage.memory_store import MemoryStore
from weir.storage.object_store import Data

T = TypeVar("T")


class FailingStore(MemoryStore):
    """Objects of ``memory://`` URLs, with mishaps."""

    def __init__(self) -> None:
        super().__init__()
        self._mishaps: dict[str, deque[tuple[Exception, bool]]] = defaultdict(deque)

    def fail(self, operation: str, problem: Exception, *, acts: bool = False) -> None:
        """Let the next call of this operation fail, having acted all the same or not."""
        self._mishaps[operation].append((problem, acts))

    def read(self, url: str) -> bytes:
        return self._try("read", lambda: MemoryStore.read(self, url))

    def exists(self, url: str) -> bool:
        return self._try("exists", lambda: MemoryStore.exists(self, url))

    def write(self, url: str, data: Data) -> None:
        self._try("write", lambda: MemoryStore.write(self, url, data))

    def create_exclusive(self, url: str, data: bytes) -> bool:
        return self._try("create", lambda: MemoryStore.create_exclusive(self, url, data))

    def delete(self, urls: Iterable[str]) -> None:
        self._try("delete", lambda: MemoryStore.delete(self, urls))

    def make_new(self, directory: str) -> None:
        self._try("make_new", lambda: MemoryStore.make_new(self, directory))

    def _try(self, operation: str, act: Callable[[], T]) -> T:
        if not self._mishaps[operation]:
            return act()
        problem, acts = self._mishaps[operation].popleft()
        if acts:
            act()
        raise problem
