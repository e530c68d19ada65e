"""Caches the results of a function of one text, up to a number of bytes of text.

A limit on entries is no limit where tenants choose the length of a text: a hundred of the largest
specifications would fill the operator's memory. The least recently used entry is evicted first; an
eviction costs time, never a result.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class BoundedCache(Generic[Value]):
    """A function of one text with a size-bounded LRU cache."""

    def __init__(self, compute: Callable[[str], Value], most_bytes: int) -> None:
        self._compute = compute
        self._most = most_bytes
        self._found: OrderedDict[str, Value] = OrderedDict()
        self.held_bytes = 0
        """Bytes of the cached texts."""

    def __call__(self, text: str) -> Value:
        if text in self._found:
            self._found.move_to_end(text)
            return self._found[text]
        value = self._compute(text)
        self._found[text] = value
        self.held_bytes += len(text.encode())
        while self.held_bytes > self._most:
            forgotten, _ = self._found.popitem(last=False)
            self.held_bytes -= len(forgotten.encode())
        return value
