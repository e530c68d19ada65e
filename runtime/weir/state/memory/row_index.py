"""Gives each key a row, and every state of an operator a column of these rows.

Finding a key costs one lookup in one dictionary; after that each state of the key is two list
accesses away, because all states share the cursor with its position. A key whose states are
all empty gives its row back, so keys that come and go leave nothing behind.

The dictionary is not part of a snapshot: the keys are a column like any other.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

from weir.ports.keyed_state import Cursor, Key
from weir.state.memory.chunks import CHUNK_BITS, CHUNK_ROWS, OFFSET_MASK, Chunks
from weir.state.memory.snapshot_diff import Version

T = TypeVar("T")


class RowCursor(Cursor):
    """The row of the key that is being worked on."""

    __slots__ = ("chunk", "offset", "row_number")

    def __init__(self) -> None:
        super().__init__()
        self.row_number = self.chunk = self.offset = 0


class FrozenColumn(Generic[T]):
    """The keys and one state, as they were at a capture."""

    __slots__ = ("_released", "_version")

    def __init__(self, version: Version) -> None:
        self._version = version
        self._released = False

    @property
    def version(self) -> Version:
        assert not self._released, "a released snapshot would be taken for an empty one"
        return self._version

    def __iter__(self) -> Iterator[tuple[Key, T]]:
        for keys, values in zip(*self.version, strict=True):
            for key, value in zip(keys, values, strict=True):
                if value is not None:
                    assert key is not None, "a row without a key is empty"
                    yield key, value

    def release(self) -> None:
        """Let go of the old versions. A reader that has begun keeps its own until it is done."""
        self._released = True
        self._version = Version((), ())


class RowIndex:
    """The keys of one operator's part of the state."""

    def __init__(self) -> None:
        self.cursor = RowCursor()
        self._row_of: dict[Key, int] = {}
        self._keys: Chunks[Key] = Chunks()
        self._columns: list[Chunks[Any]] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._row_of)

    @property
    def chunks(self) -> int:
        return len(self._keys.chunks)

    def column(self) -> Chunks[Any]:
        """A new column of empty rows, which grows with the keys."""
        column: Chunks[Any] = Chunks()
        for _ in range(self.chunks):
            column.grow()
        self._columns.append(column)
        return column

    def drop(self, column: Chunks[Any]) -> None:
        self._columns = [kept for kept in self._columns if kept is not column]

    def seek(self, key: Key) -> None:
        """Let the states refer to this key from now on."""
        cursor = self.cursor
        row_number = self._row_of.get(key)
        if row_number is None:
            row_number = self._take(key)
            cursor.may_be_empty = True
        cursor.row_number = row_number
        cursor.chunk = row_number >> CHUNK_BITS
        cursor.offset = row_number & OFFSET_MASK

    def settle(self) -> None:
        """The work on the key is done: forget the key if nothing is left of it."""
        self.cursor.may_be_empty = False
        self.free_if_empty(self.cursor.row_number)

    def free_if_empty(self, row_number: int) -> None:
        if any(column.at(row_number) is not None for column in self._columns):
            return
        key = self._keys.at(row_number)
        if key is not None:
            del self._row_of[key]
            self._keys.put(row_number, None)
            self._free.append(row_number)

    def key_at(self, row_number: int) -> Key:
        key = self._keys.at(row_number)
        assert key is not None, f"row {row_number} has a timer and no key"
        return key

    def keys_with(self, column: Chunks[Any]) -> list[Key]:
        """The keys that have something in this column."""
        return [
            key for key, row_number in self._row_of.items() if column.at(row_number) is not None
        ]

    def capture(self, columns: Sequence[Chunks[Any]]) -> list[FrozenColumn[Any]]:
        """Each of these columns with the keys, as of now."""
        keys = self._keys.capture()
        return [FrozenColumn(Version(keys, column.capture())) for column in columns]

    def _take(self, key: Key) -> int:
        if not self._free:
            self._grow()
        row_number = self._free.pop()
        self._row_of[key] = row_number
        self._keys.put(row_number, key)
        return row_number

    def _grow(self) -> None:
        first = self.chunks << CHUNK_BITS
        for column in (self._keys, *self._columns):
            column.grow()
        self._free.extend(reversed(range(first, first + CHUNK_ROWS)))
