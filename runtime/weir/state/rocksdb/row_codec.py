"""Encodes the rows of states as bytes of their declared types, and decodes them. Never by pickle.

Each value is a validity byte and its own bytes: numbers have a fixed width, strings and binaries a
length before them, arrays and maps a count. Rows of numbers alone are one fixed layout. The bytes
mean something only together with the declaration, so they never leave the executor's disk:
snapshots are Arrow files.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
from pyarrow import types as kinds

from weir.ports.keyed_state import Row
from weir.state.columns import NAN

Write: TypeAlias = Callable[[Any], bytes]
Convert: TypeAlias = Callable[[Any], Any]
Read: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
"""Takes the bytes and a position; returns the value and the position behind it."""

_LETTERS = {
    pa.int8(): "b",
    pa.int16(): "h",
    pa.int32(): "i",
    pa.int64(): "q",
    pa.float32(): "f",
    pa.float64(): "d",
    pa.bool_(): "?",
}
_NULL, _VALUE = b"\0", b"\1"
_COUNT = struct.Struct(">I")
_MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RowCodec:
    """The rows of one declaration."""

    encode: Callable[[Row], bytes]
    decode: Callable[[bytes, int], Row]
    """Takes the bytes and where the row begins; the row ends where the bytes do."""


def row_codec(schema: pa.Schema, *, is_key: bool = False) -> RowCodec:
    """For rows of these fields. Keys that are equal in Python are given equal bytes."""
    letters = [_LETTERS.get(field.type) for field in schema]
    has_doubles = any(kinds.is_floating(field.type) for field in schema)
    if all(letters) and not (is_key and has_doubles):
        return _fixed_layout("".join(f"?{letter}" for letter in letters))
    writers, readers = zip(*(_value(field.type, is_key=is_key) for field in schema), strict=True)

    def encode(row: Row) -> bytes:
        return b"".join([write(value) for write, value in zip(writers, row, strict=True)])

    def decode(data: bytes, at: int) -> Row:
        row = []
        for read in readers:
            value, at = read(data, at)
            row.append(value)
        return tuple(row)

    return RowCodec(encode, decode)


def _fixed_layout(letters: str) -> RowCodec:
    layout = struct.Struct(f">{letters}")

    def encode(row: Row) -> bytes:
        cells: list[Any] = []
        for value in row:
            cells += (False, 0) if value is None else (True, value)
        return layout.pack(*cells)

    def decode(data: bytes, at: int) -> Row:
        cells = layout.unpack_from(data, at)
        pairs = zip(cells[::2], cells[1::2], strict=True)
        return tuple([value if is_valid else None for is_valid, value in pairs])

    return RowCodec(encode, decode)


def _value(kind: pa.DataType, *, is_key: bool) -> tuple[Write, Read]:
    """Of any type that a state may have, null included."""
    write_one, read_one = _not_null(kind, is_key=is_key)

    def write(value: Any) -> bytes:  # noqa: ANN401 - a value of the declared type
        return _NULL if value is None else _VALUE + write_one(value)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        return read_one(data, at + 1) if data[at] else (None, at + 1)

    return write, read


def _not_null(kind: pa.DataType, *, is_key: bool) -> tuple[Write, Read]:
    if is_key and kinds.is_floating(kind):
        return _number("d", _one_zero)
    if kinds.is_struct(kind):
        return _sequence_of([_value(field.type, is_key=is_key) for field in kind])
    if kinds.is_map(kind):
        entry = (kind.key_type, kind.item_type)
        return _repeated(_sequence_of([_value(part, is_key=is_key) for part in entry]))
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        return _repeated(_value(kind.value_type, is_key=is_key))
    return _scalar(kind)


def _scalar(kind: pa.DataType) -> tuple[Write, Read]:
    if kind in _LETTERS:
        return _number(_LETTERS[kind])
    if kinds.is_string(kind) or kinds.is_large_string(kind):
        return _sized(str.encode, bytes.decode)
    if kinds.is_binary(kind) or kinds.is_large_binary(kind):
        return _sized(bytes, bytes)
    if kinds.is_date32(kind):
        return _number("i", date.toordinal, date.fromordinal)
    if kinds.is_timestamp(kind) and kind.unit == "us":
        return _instant(_EPOCH if kind.tz else _EPOCH.replace(tzinfo=None))
    if kinds.is_decimal(kind):
        return _sized(lambda value: str(value).encode(), lambda text: Decimal(text.decode()))
    return _left_to_arrow(kind)


def _number(
    letter: str, to: Convert | None = None, back: Convert | None = None
) -> tuple[Write, Read]:
    layout = struct.Struct(f">{letter}")

    def write(value: Any) -> bytes:  # noqa: ANN401 - a value of the declared type
        return layout.pack(value if to is None else to(value))

    def read(data: bytes, at: int) -> tuple[Any, int]:
        (value,) = layout.unpack_from(data, at)
        return value if back is None else back(value), at + layout.size

    return write, read


def _one_zero(value: float) -> Any:  # noqa: ANN401 - a double
    return NAN if value != value else value + 0.0  # noqa: PLR0124 - finds NaN


def _instant(epoch: datetime) -> tuple[Write, Read]:
    def to(value: datetime) -> Any:  # noqa: ANN401 - microseconds
        return (value - epoch) // _MICROSECOND

    return _number("q", to, lambda since: epoch + timedelta(microseconds=since))


def _sized(to: Callable[[Any], bytes], back: Callable[[bytes], object]) -> tuple[Write, Read]:
    def write(value: Any) -> bytes:  # noqa: ANN401 - a value of the declared type
        content = to(value)
        return _COUNT.pack(len(content)) + content

    def read(data: bytes, at: int) -> tuple[Any, int]:
        (size,) = _COUNT.unpack_from(data, at)
        begin = at + _COUNT.size
        return back(data[begin : begin + size]), begin + size

    return write, read


def _sequence_of(parts: Sequence[tuple[Write, Read]]) -> tuple[Write, Read]:
    writers, readers = zip(*parts, strict=True)

    def write(values: Any) -> bytes:  # noqa: ANN401 - a struct's values
        return b"".join([part(value) for part, value in zip(writers, values, strict=True)])

    def read(data: bytes, at: int) -> tuple[Any, int]:
        values = []
        for part in readers:
            value, at = part(data, at)
            values.append(value)
        return tuple(values), at

    return write, read


def _repeated(part: tuple[Write, Read]) -> tuple[Write, Read]:
    write_one, read_one = part

    def write(values: Any) -> bytes:  # noqa: ANN401 - an array's or a map's values
        return _COUNT.pack(len(values)) + b"".join(map(write_one, values))

    def read(data: bytes, at: int) -> tuple[Any, int]:
        (count,) = _COUNT.unpack_from(data, at)
        at += _COUNT.size
        values = []
        for _ in range(count):
            value, at = read_one(data, at)
            values.append(value)
        return tuple(values), at

    return write, read


def _left_to_arrow(kind: pa.DataType) -> tuple[Write, Read]:
    """Rare types of a fixed width, such as durations: Arrow knows their bytes."""
    width = kind.bit_width // 8

    def write(value: Any) -> bytes:  # noqa: ANN401 - a value of the declared type
        content: bytes = pa.array([value], kind).buffers()[1].to_pybytes()
        return content[:width]

    def read(data: bytes, at: int) -> tuple[Any, int]:
        content = pa.py_buffer(data[at : at + width])
        return pa.Array.from_buffers(kind, 1, [None, content])[0].as_py(), at + width

    return write, read
