"""Remembers what was computed from texts, up to a number of bytes of text.

A count of entries is no bound where other people choose how long a text is: a hundred of the
largest specifications would fill the operator's memory. What was used least recently is forgotten
first; forgetting costs time, never a result.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Memo(Generic[Value]):
    """A function of one text, called again only for texts that are not remembered."""

    def __init__(self, compute: Callable[[str], Value], most_bytes: int) -> None:
        self._compute = compute
        self._most = most_bytes
        self._found: OrderedDict[str, Value] = OrderedDict()
        self.held_bytes = 0
        """Bytes of the texts that are remembered."""

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
