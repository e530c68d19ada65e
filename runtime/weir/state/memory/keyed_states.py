"""Keeps the value, list and map states of keys, typed and safe to be shared with snapshots.

The content of a row is never changed in place, except for the end of a list and for a map that was
made after the newest capture. A list is kept with its length: appending behind the end is invisible
to a snapshot that knows the shorter length, so an append copies nothing. A map remembers how many
captures there were when it was made, and is copied by the first write after another one.

Each state also defines how its rows become flat rows of a snapshot's file and are read back;
``weir.state.memory.keyed_snapshot`` writes and reads the files.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from weir.core.ids import Millis
from weir.ports.keyed_state import Row, Rows
from weir.state.memory.chunks import Chunks
from weir.state.memory.row_index import RowIndex
from weir.state.state_columns import LIST, MAP, ORDINAL, VALUE, prefixed

Elements: TypeAlias = tuple[list[Any], int]
"""A list and how much of it counts."""
Entries: TypeAlias = tuple[int, dict[Row, Any]]
"""How many captures there were when this dictionary was made, and the dictionary."""


class KeyedColumn(Protocol):
    """A state, as far as writing it to files and reading it back needs it."""

    name: str
    kind: str
    """The kind of state in the rows; a file of another kind is refused."""
    fields: tuple[pa.Field, ...]
    """Of the flat rows; every name has a dot, so that none can be a key column's."""
    column: Chunks[Any]

    def flat(self, stored: Any, now: Millis) -> Sequence[Row]:  # noqa: ANN401 - a row's content
        """The rows of one row."""

    def load(self, row_number: int, rows: list[Row], now: Millis) -> None:
        """Fill an empty row with such rows, in any order."""


class ValueState:
    """One row for each key."""

    kind = VALUE

    def __init__(self, name: str, row_index: RowIndex, row_type: Rows) -> None:
        self.name = name
        self.fields = prefixed("value", row_type)
        self.column: Chunks[Any] = row_index.column()
        self._cursor = row_index.cursor
        self._freeze = row_type.freeze
        self._thaw = row_type.thaw

    def exists(self) -> bool:
        return self.get() is not None

    def get(self) -> Row | None:
        cursor = self._cursor
        row: Row | None = self.column.chunks[cursor.chunk][cursor.offset]
        return row if self._thaw is None or row is None else self._thaw(row)

    def update(self, newValue: Row) -> None:  # noqa: N803 - users may name it, as in PySpark
        row = self._freeze(newValue)
        cursor = self._cursor
        column = self.column
        number = cursor.chunk
        chunk = column.own(number) if column.shared[number] else column.chunks[number]
        chunk[cursor.offset] = row

    def clear(self) -> None:
        self._cursor.may_be_empty = True
        self.column.put(self._cursor.row_number, None)

    def flat(self, stored: Any, now: Millis) -> Sequence[Row]:  # noqa: ANN401 - a row's content
        del now
        return (stored,)

    def load(self, row_number: int, rows: list[Row], now: Millis) -> None:
        del now
        self.column.put(row_number, self._freeze(rows[-1]))


class ListState:
    """Any number of rows for each key, in the order in which they came."""

    kind = LIST

    def __init__(self, name: str, row_index: RowIndex, row_type: Rows) -> None:
        self.name = name
        self.fields = (ORDINAL, *prefixed("value", row_type))
        self.column: Chunks[Any] = row_index.column()
        self._cursor = row_index.cursor
        self._freeze = row_type.freeze
        self._thaw = row_type.thaw

    def exists(self) -> bool:
        return self._stored() is not None

    def get(self) -> Iterator[Row]:
        """The rows of this moment: what is appended later does not show up."""
        stored = self._stored()
        if stored is None:
            return iter(())
        rows = islice(*stored)
        return rows if self._thaw is None else map(self._thaw, rows)

    def put(self, rows: Sequence[Row]) -> None:
        self.clear()
        self.extend(rows)

    def append(self, row: Row) -> None:
        self._append([self._freeze(row)])

    def extend(self, rows: Sequence[Row]) -> None:
        self._append([self._freeze(row) for row in rows])

    def clear(self) -> None:
        self._cursor.may_be_empty = True
        self.column.put(self._cursor.row_number, None)

    def flat(self, stored: Elements, now: Millis) -> Sequence[Row]:
        del now
        return [(ordinal, *row) for ordinal, row in enumerate(islice(*stored))]

    def load(self, row_number: int, rows: list[Row], now: Millis) -> None:
        del now
        elements = [self._freeze(row[1:]) for row in sorted(rows, key=ordinal_of)]
        self.column.put(row_number, (elements, len(elements)))

    def _stored(self) -> Elements | None:
        stored: Elements | None = self.column.at(self._cursor.row_number)
        return stored

    def _append(self, more: list[Any]) -> None:
        if not more:
            return
        elements, length = self._stored() or ([], 0)
        elements.extend(more)
        self.column.put(self._cursor.row_number, (elements, length + len(more)))


class MapState:
    """Rows by user key, for each key."""

    kind = MAP

    def __init__(self, name: str, row_index: RowIndex, user_keys: Rows, row_type: Rows) -> None:
        self.name = name
        self.fields = (*prefixed("user_key", user_keys), *prefixed("value", row_type))
        self.column: Chunks[Any] = row_index.column()
        self._key_width = len(user_keys.schema)
        self._cursor = row_index.cursor
        self._freeze_key = user_keys.freeze
        self._freeze = row_type.freeze
        self._thaw_key = user_keys.thaw or tuple
        self._thaw = row_type.thaw or tuple

    def exists(self) -> bool:
        return bool(self._entries())

    def value(self, key: Row) -> Row | None:
        row = self._entries().get(self._freeze_key(key))
        return None if row is None else self._thaw(row)

    def contains(self, key: Row) -> bool:
        return self._freeze_key(key) in self._entries()

    def update(self, key: Row, value: Row) -> None:
        frozen = self._freeze_key(key)
        self._own_entries()[frozen] = self._freeze(value)

    def items(self) -> Iterator[tuple[Row, Row]]:
        """The entries of this moment, even if the map changes meanwhile."""
        pairs = list(self._entries().items())
        return ((self._thaw_key(key), self._thaw(row)) for key, row in pairs)

    def remove(self, key: Row) -> None:
        frozen = self._freeze_key(key)
        if frozen not in self._entries():
            return
        entries = self._own_entries()
        del entries[frozen]
        if not entries:
            self.clear()

    def clear(self) -> None:
        self._cursor.may_be_empty = True
        self.column.put(self._cursor.row_number, None)

    def flat(self, stored: Entries, now: Millis) -> Sequence[Row]:
        del now
        return [(*key, *row) for key, row in stored[1].items()]

    def load(self, row_number: int, rows: list[Row], now: Millis) -> None:
        del now
        width = self._key_width
        entries = {self._freeze_key(row[:width]): self._freeze(row[width:]) for row in rows}
        self.column.put(row_number, (self.column.captures, entries))

    def _entries(self) -> dict[Row, Any]:
        stored: Entries | None = self.column.at(self._cursor.row_number)
        return {} if stored is None else stored[1]

    def _own_entries(self) -> dict[Row, Any]:
        captures = self.column.captures
        stored: Entries | None = self.column.at(self._cursor.row_number)
        if stored is None or stored[0] != captures:
            stored = (captures, {} if stored is None else stored[1].copy())
            self.column.put(self._cursor.row_number, stored)
        return stored[1]


def ordinal_of(row: Row) -> int:
    ordinal = row[0]
    assert isinstance(ordinal, int), "a list's rows begin with their ordinal"
    return ordinal
