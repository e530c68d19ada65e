"""A queue of bounded size between two threads.

The slot's mailbox never waits when it takes an item. When it puts one, it waits for room: that is
the back-pressure of a slow writer. Either side can abandon the queue, so that the other does not
wait for ever.
"""

from collections import deque
from collections.abc import Iterator
from threading import Condition
from typing import Generic, TypeVar

T = TypeVar("T")


class Abandoned(Exception):
    """The other side has given up."""


class BoundedQueue(Generic[T]):
    """A queue of items, each with a size; a single one fits however large it is."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._items: deque[tuple[T, int]] = deque()
        self._inside = 0
        self._changed = Condition()
        self._is_closed = False
        self._is_abandoned = False

    def put(self, item: T, size: int) -> None:
        """Wait for room; raises Abandoned."""
        with self._changed:
            while self._items and self._inside + size > self._room and not self._is_abandoned:
                self._changed.wait()
            if self._is_abandoned:
                raise Abandoned
            self._items.append((item, size))
            self._inside += size
            self._changed.notify_all()

    def take(self, most: int) -> list[T]:
        """What is there at the moment, up to so many items."""
        with self._changed:
            taken = [self._pop() for _ in range(min(most, len(self._items)))]
            self._changed.notify_all()
            return taken

    def __iter__(self) -> Iterator[T]:
        """Each item when it is there, until the other side closes; raises Abandoned."""
        while True:
            with self._changed:
                while not (self._items or self._is_closed or self._is_abandoned):
                    self._changed.wait()
                if self._is_abandoned:
                    raise Abandoned
                if not self._items:
                    return
                item = self._pop()
                self._changed.notify_all()
            yield item

    def close(self) -> None:
        """Nothing is put any more; what is inside can still be taken."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def abandon(self) -> None:
        """Give up; a waiting or later call of the other side raises Abandoned."""
        with self._changed:
            self._is_abandoned = True
            self._changed.notify_all()

    @property
    def is_over(self) -> bool:
        """Closed and empty."""
        with self._changed:
            return self._is_closed and not self._items

    @property
    def is_empty(self) -> bool:
        with self._changed:
            return not self._items

    def _pop(self) -> T:
        item, size = self._items.popleft()
        self._inside -= size
        return item
