"""Value, list and map states in RocksDB: an entry for each value, element and entry of a map.

The bytes of an entry's key are those of the key group, of the state's number and of the key; then
an element of a list has its ordinal and an entry of a map its user key. Ordinals only grow, so an
append reads nothing. A value with a time to live has the time at which it expires before its row;
it is invisible from that millisecond, and the sweep of the backend deletes it some time later.

Each state also defines how its entries become the flat rows of a snapshot's file and back.
"""

import struct
from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa

from weir.core.ids import Millis
from weir.ports.keyed_state import Row, Rows
from weir.state.rocksdb.key_cursor import KeyCursor
from weir.state.rocksdb.row_codec import row_codec
from weir.state.rocksdb.write_buffer import WriteBuffer
from weir.state.state_columns import EXPIRES_AT, LIST, MAP, ORDINAL, VALUE, prefixed

_TIME = struct.Struct(">q")
_NUMBER = struct.Struct(">Q")


class StoredState(Protocol):
    """A state, as far as writing it to files and reading it back needs it."""

    name: str
    kind: str
    fields: tuple[pa.Field, ...]
    number: bytes
    """Stands for the state in the keys of its entries."""

    @property
    def expires(self) -> bool:
        """Whether values have a time to live."""

    def flat(self, suffix: bytes, value: bytes, ordinal: int) -> Row:
        """The row of an entry, which is the so-manieth of its key."""

    def entry(self, row: Row, now: Millis) -> tuple[bytes, bytes]:
        """What is behind the key of such a row, and the value."""


class _StateOfRows:
    """What the three kinds of state share: rows, and how long they live."""

    def __init__(
        self, name: str, number: bytes, buffer: WriteBuffer, cursor: KeyCursor, rows: Rows
    ) -> None:
        self.name = name
        self.number = number
        self._buffer = buffer
        self._cursor = cursor
        self._freeze = rows.freeze
        self._thaw: Any = rows.thaw or tuple
        self._codec = row_codec(rows.schema)
        self._ttl_ms: int | None = None
        self._row_at = 0

    @property
    def expires(self) -> bool:
        return self._ttl_ms is not None

    def _expire_after(self, ttl_ms: int | None) -> tuple[pa.Field, ...]:
        """The columns that a time to live adds."""
        self._ttl_ms = ttl_ms
        self._row_at = 0 if ttl_ms is None else _TIME.size
        return () if ttl_ms is None else (EXPIRES_AT,)

    def _prefix(self) -> bytes:
        cursor = self._cursor
        return cursor.group + self.number + cursor.encoded

    def _encoded(self, row: Row, expires_at: object = None) -> bytes:
        if self._ttl_ms is None:
            return self._codec.encode(row)
        fresh = self._cursor.now + self._ttl_ms
        return _TIME.pack(
            expires_at if isinstance(expires_at, int) else fresh
        ) + self._codec.encode(row)

    def _decoded(self, value: bytes) -> Row:
        return self._codec.decode(value, self._row_at)

    def _is_alive(self, value: bytes) -> bool:
        return self._ttl_ms is None or expiry_of(value) > self._cursor.now

    def _with_expiry(self, value: bytes) -> Row:
        """The row of a file: the time at which it expires, if it does, and its fields."""
        row = self._decoded(value)
        return row if self._ttl_ms is None else (expiry_of(value), *row)

    def _split(self, row: Row) -> tuple[object, Row]:
        return (None, row) if self._ttl_ms is None else (row[0], row[1:])


class RocksDBValueState(_StateOfRows):
    """One row for each key."""

    kind = VALUE

    def __init__(
        self,
        at: tuple[str, bytes],
        buffer: WriteBuffer,
        cursor: KeyCursor,
        rows: Rows,
        ttl_ms: int | None,
    ) -> None:
        super().__init__(*at, buffer, cursor, rows)
        self.fields = (*self._expire_after(ttl_ms), *prefixed("value", rows))

    def exists(self) -> bool:
        return self._stored() is not None

    def get(self) -> Row | None:
        value = self._stored()
        if value is None:
            return None
        row: Row = self._thaw(self._decoded(value))
        return row

    def update(self, newValue: Row) -> None:  # noqa: N803 - users may name it, as in PySpark
        self._buffer.put(self._prefix(), b"", self._encoded(self._freeze(newValue)))

    def clear(self) -> None:
        self._buffer.put(self._prefix(), b"", None)

    def flat(self, suffix: bytes, value: bytes, ordinal: int) -> Row:
        del suffix, ordinal
        return self._with_expiry(value)

    def entry(self, row: Row, now: Millis) -> tuple[bytes, bytes]:
        del now
        expires_at, fields = self._split(row)
        return b"", self._encoded(self._freeze(fields), expires_at)

    def _stored(self) -> bytes | None:
        value = self._buffer.get(self._prefix())
        return value if value is not None and self._is_alive(value) else None


class RocksDBListState(_StateOfRows):
    """Any number of rows for each key, in the order in which they came."""

    kind = LIST

    def __init__(
        self,
        at: tuple[str, bytes],
        buffer: WriteBuffer,
        cursor: KeyCursor,
        rows: Rows,
        ttl_ms: int | None,
    ) -> None:
        super().__init__(*at, buffer, cursor, rows)
        self.fields = (ORDINAL, *self._expire_after(ttl_ms), *prefixed("value", rows))
        self.next_ordinal = 0
        """All ordinals in use are below."""

    def exists(self) -> bool:
        return next(self._alive(), None) is not None

    def get(self) -> Iterator[Row]:
        values = list(self._alive())
        return (self._thaw(self._decoded(value)) for value in values)

    def put(self, rows: Any) -> None:  # noqa: ANN401 - the user's rows
        self.clear()
        self.extend(rows)

    def append(self, row: Row) -> None:
        value = self._encoded(self._freeze(row))
        self._buffer.put(self._prefix(), _NUMBER.pack(self.next_ordinal), value)
        self.next_ordinal += 1

    def extend(self, rows: Any) -> None:  # noqa: ANN401 - the user's rows
        frozen = [self._freeze(row) for row in rows]
        for row in frozen:
            self._buffer.put(self._prefix(), _NUMBER.pack(self.next_ordinal), self._encoded(row))
            self.next_ordinal += 1

    def clear(self) -> None:
        self._buffer.clear(self._prefix())

    def flat(self, suffix: bytes, value: bytes, ordinal: int) -> Row:
        del suffix
        return (ordinal, *self._with_expiry(value))

    def entry(self, row: Row, now: Millis) -> tuple[bytes, bytes]:
        del now
        ordinal, *others = row
        assert isinstance(ordinal, int), "an ordinal is never null"
        self.next_ordinal = max(self.next_ordinal, ordinal + 1)
        expires_at, fields = self._split(tuple(others))
        return _NUMBER.pack(ordinal), self._encoded(self._freeze(fields), expires_at)

    def _alive(self) -> Iterator[bytes]:
        entries = self._buffer.scan(self._prefix())
        return (value for _, value in entries if self._is_alive(value))


class RocksDBMapState(_StateOfRows):
    """Rows by user key, for each key; in the order of the user keys' bytes."""

    kind = MAP

    def __init__(
        self,
        at: tuple[str, bytes],
        buffer: WriteBuffer,
        cursor: KeyCursor,
        rows: tuple[Rows, Rows],
        ttl_ms: int | None,
    ) -> None:
        user_keys, values = rows
        super().__init__(*at, buffer, cursor, values)
        self._freeze_key = user_keys.freeze
        self._thaw_key: Any = user_keys.thaw or tuple
        self._user_keys = row_codec(user_keys.schema, is_key=True)
        self._key_width = len(user_keys.schema)
        self.fields = (
            *self._expire_after(ttl_ms),
            *prefixed("user_key", user_keys),
            *prefixed("value", values),
        )

    def exists(self) -> bool:
        return any(self._is_alive(value) for _, value in self._buffer.scan(self._prefix()))

    def value(self, key: Row) -> Row | None:
        value = self._stored(key)
        if value is None:
            return None
        row: Row = self._thaw(self._decoded(value))
        return row

    def contains(self, key: Row) -> bool:
        return self._stored(key) is not None

    def update(self, key: Row, value: Row) -> None:
        suffix = self._user_keys.encode(self._freeze_key(key))
        self._buffer.put(self._prefix(), suffix, self._encoded(self._freeze(value)))

    def items(self) -> Iterator[tuple[Row, Row]]:
        entries = self._buffer.scan(self._prefix())
        alive = [(suffix, value) for suffix, value in entries if self._is_alive(value)]
        return (
            (self._thaw_key(self._user_keys.decode(suffix, 0)), self._thaw(self._decoded(value)))
            for suffix, value in alive
        )

    def remove(self, key: Row) -> None:
        self._buffer.put(self._prefix(), self._user_keys.encode(self._freeze_key(key)), None)

    def clear(self) -> None:
        self._buffer.clear(self._prefix())

    def flat(self, suffix: bytes, value: bytes, ordinal: int) -> Row:
        del ordinal
        row = (*self._user_keys.decode(suffix, 0), *self._decoded(value))
        return row if self._ttl_ms is None else (expiry_of(value), *row)

    def entry(self, row: Row, now: Millis) -> tuple[bytes, bytes]:
        del now
        expires_at, fields = self._split(row)
        key, value = fields[: self._key_width], fields[self._key_width :]
        suffix = self._user_keys.encode(self._freeze_key(key))
        return suffix, self._encoded(self._freeze(value), expires_at)

    def _stored(self, key: Row) -> bytes | None:
        value = self._buffer.get(self._prefix(), self._user_keys.encode(self._freeze_key(key)))
        return value if value is not None and self._is_alive(value) else None


def expiry_of(value: bytes) -> int:
    """When a value of a state with a time to live expires."""
    (expires_at,) = _TIME.unpack_from(value)
    return int(expires_at)
