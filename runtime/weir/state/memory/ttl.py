"""Keeps states with a time to live: each value expires a while after it was last written.

A value is invisible from the millisecond at which it expires, and no later snapshot contains it.
Its memory is freed when its key is written again, or by the cleanup, which visits one chunk of rows
at each call, never the whole state at once. As in PySpark, each element of a list and each entry of
a map expires separately.

The cursor provides the time. Values that were stored before a state had a time to live start to age
when they are restored.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol, TypeAlias

from weir.core.ids import Millis
from weir.ports.keyed_state import Row, Rows
from weir.state.memory.chunks import CHUNK_BITS, Chunks
from weir.state.memory.keyed_states import (
    Elements,
    Entries,
    ListState,
    MapState,
    ValueState,
    ordinal_of,
)
from weir.state.memory.row_index import RowIndex
from weir.state.state_columns import EXPIRES_AT

Aged: TypeAlias = tuple[int, Row]
"""When a row expires, and the row."""


class Expiring(Protocol):
    """A state from which the cleanup can remove expired values."""

    column: Chunks[Any]

    def pruned(self, stored: Any, now: Millis) -> object:  # noqa: ANN401 - a row's content
        """The same object if nothing in it has expired; None if everything has."""


class ExpiringValueState(ValueState):
    """One row for each key, for a while."""

    def __init__(self, name: str, row_index: RowIndex, row_type: Rows, ttl_ms: int) -> None:
        super().__init__(name, row_index, row_type)
        self.fields = (EXPIRES_AT, *self.fields)
        self._ttl_ms = ttl_ms

    def get(self) -> Row | None:
        aged: Aged | None = self.column.at(self._cursor.row_number)
        if aged is None or aged[0] <= self._cursor.now:
            return None
        return aged[1] if self._thaw is None else self._thaw(aged[1])

    def update(self, newValue: Row) -> None:  # noqa: N803 - users may name it, as in PySpark
        aged = (self._cursor.now + self._ttl_ms, self._freeze(newValue))
        self.column.put(self._cursor.row_number, aged)

    def flat(self, stored: Aged, now: Millis) -> Sequence[Row]:
        return [(stored[0], *stored[1])] if stored[0] > now else ()

    def load(self, row_number: int, rows: list[Row], now: Millis) -> None:
        row = rows[-1]
        self.column.put(row_number, (_expiry(row[0], now + self._ttl_ms), self._freeze(row[1:])))

    def pruned(self, stored: Aged, now: Millis) -> object:
        return stored if stored[0] > now else None


class ExpiringListState(ListState):
    """Rows for each key, each for a while."""

    def __init__(self, name: str, row_index: RowIndex, row_type: Rows, ttl_ms: int) -> None:
        super().__init__(name, row_index, row_type)
        self.fields = (self.fields[0], EXPIRES_AT, *self.fields[1:])
        self._ttl_ms = ttl_ms

    def exists(self) -> bool:
        return next(self._alive(), None) is not None

    def get(self) -> Iterator[Row]:
        rows = self._alive()
        return rows if self._thaw is None else map(self._thaw, rows)

    def append(self, row: Row) -> None:
        self.extend((row,))

    def extend(self, rows: Sequence[Row]) -> None:
        expires_at = self._cursor.now + self._ttl_ms
        self._append([(expires_at, self._freeze(row)) for row in rows])

    def flat(self, stored: Elements, now: Millis) -> Sequence[Row]:
        alive = (aged for aged in islice(*stored) if aged[0] > now)
        return [(ordinal, at, *row) for ordinal, (at, row) in enumerate(alive)]

    def load(self, row_number: int, rows: list[Row], now: Millis) -> None:
        fresh = now + self._ttl_ms
        in_order = sorted(rows, key=ordinal_of)
        elements = [(_expiry(row[1], fresh), self._freeze(row[2:])) for row in in_order]
        self.column.put(row_number, (elements, len(elements)))

    def pruned(self, stored: Elements, now: Millis) -> object:
        alive = [aged for aged in islice(*stored) if aged[0] > now]
        if len(alive) == stored[1]:
            return stored
        return (alive, len(alive)) if alive else None

    def _alive(self) -> Iterator[Row]:
        now = self._cursor.now
        elements = islice(*(self._stored() or ([], 0)))
        return (row for expires_at, row in elements if expires_at > now)


class ExpiringMapState(MapState):
    """Rows by user key, each for a while."""

    def __init__(
        self, name: str, row_index: RowIndex, rows: tuple[Rows, Rows], ttl_ms: int
    ) -> None:
        super().__init__(name, row_index, *rows)
        self.fields = (EXPIRES_AT, *self.fields)
        self._ttl_ms = ttl_ms

    def exists(self) -> bool:
        now = self._cursor.now
        return any(expires_at > now for expires_at, _ in self._entries().values())

    def value(self, key: Row) -> Row | None:
        aged: Aged | None = self._entries().get(self._freeze_key(key))
        if aged is None or aged[0] <= self._cursor.now:
            return None
        return self._thaw(aged[1])

    def contains(self, key: Row) -> bool:
        return self.value(key) is not None

    def update(self, key: Row, value: Row) -> None:
        frozen = self._freeze_key(key)
        aged = (self._cursor.now + self._ttl_ms, self._freeze(value))
        self._own_entries()[frozen] = aged

    def items(self) -> Iterator[tuple[Row, Row]]:
        now = self._cursor.now
        pairs = list(self._entries().items())
        return (
            (self._thaw_key(key), self._thaw(row))
            for key, (expires_at, row) in pairs
            if expires_at > now
        )

    def flat(self, stored: Entries, now: Millis) -> Sequence[Row]:
        return [(at, *key, *row) for key, (at, row) in stored[1].items() if at > now]

    def load(self, row_number: int, rows: list[Row], now: Millis) -> None:
        fresh, stop = now + self._ttl_ms, self._key_width + 1
        entries = {
            self._freeze_key(row[1:stop]): (_expiry(row[0], fresh), self._freeze(row[stop:]))
            for row in rows
        }
        self.column.put(row_number, (self.column.captures, entries))

    def pruned(self, stored: Entries, now: Millis) -> object:
        alive = {key: aged for key, aged in stored[1].items() if aged[0] > now}
        if len(alive) == len(stored[1]):
            return stored
        return (self.column.captures, alive) if alive else None


class ExpiredStateCleanup:
    """Frees expired values and the keys without other values, one chunk of rows after another."""

    def __init__(self, row_index: RowIndex) -> None:
        self._row_index = row_index
        self._next = 0

    def step(self, states: Iterable[Expiring], now: Millis) -> None:
        if not self._row_index.chunks:
            return
        number = self._next = (self._next + 1) % self._row_index.chunks
        emptied: dict[int, None] = {}
        for state in states:
            for offset, stored in enumerate(state.column.chunks[number]):
                if stored is None:
                    continue
                alive = state.pruned(stored, now)
                if alive is not stored:
                    state.column.own(number)[offset] = alive
                    emptied[offset] = None
        for offset in emptied:
            self._row_index.free_if_empty(number << CHUNK_BITS | offset)


def _expiry(stored: object, fresh: int) -> int:
    return stored if isinstance(stored, int) else fresh
