"""Encodes the value columns of whole batches as bytes, and decodes them.

Values of fixed width are their bits and strings their bytes, a column at a time, as the columns of
a key are; of other types, such as lists, each value is encoded for itself. The bytes never leave
the executor's disk.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from weir.state.columns import columns_of
from weir.state.rocksdb.key_codec import KeyCodec
from weir.state.rocksdb.row_codec import row_codec
from weir.wire.numpy_columns import arrow_of, dtype_of, validity_of, values_of


class _Bits:
    """Values of fixed width."""

    stored = pa.int64()

    def __init__(self, field: pa.Field) -> None:
        self._kind = field.type
        self._dtype = dtype_of(field.type)
        self._bits = np.dtype(f"i{self._dtype.itemsize}")

    def encode(self, column: pa.Array) -> pa.Array:
        numbers = np.ascontiguousarray(values_of(column)).view(self._bits).astype(np.int64)
        return arrow_of(numbers, validity_of(column), self.stored)

    def decode(self, column: pa.Array) -> pa.Array:
        numbers = values_of(column).astype(self._bits).view(self._dtype)
        return arrow_of(numbers, validity_of(column), self._kind)


class _Bytes:
    """Strings and binaries."""

    def __init__(self, field: pa.Field) -> None:
        self.stored = field.type

    def encode(self, column: pa.Array) -> pa.Array:
        return column

    def decode(self, column: pa.Array) -> pa.Array:
        return column


class _OneByOne:
    """Values of any other type."""

    stored = pa.binary()

    def __init__(self, field: pa.Field) -> None:
        self._field = field
        self._codec = row_codec(pa.schema([field]))

    def encode(self, column: pa.Array) -> pa.Array:
        encode = self._codec.encode
        return pa.array([encode((_plain(value),)) for value in column.to_pylist()], self.stored)

    def decode(self, column: pa.Array) -> pa.Array:
        decode = self._codec.decode
        (decoded,) = columns_of([decode(row, 0) for row in column.to_pylist()], [self._field])
        return decoded


class ColumnCodec:
    """Columns of certain types."""

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        self._columns = [_codec_of(field) for field in fields]
        stored = [pa.field(str(at), one.stored) for at, one in enumerate(self._columns)]
        self._codec = KeyCodec(stored)

    def encode(self, columns: Sequence[pa.Array], rows: int) -> list[bytes]:
        """The values of each row, of which there are so many."""
        if not self._columns:
            return [b""] * rows
        pairs = zip(self._columns, columns, strict=True)
        return self._codec.encode([one.encode(column) for one, column in pairs])

    def decode(self, values: Sequence[bytes]) -> list[pa.Array]:
        stored, _ = self._codec.decode(values, 0)
        return [one.decode(column) for one, column in zip(self._columns, stored, strict=True)]


def _codec_of(field: pa.Field) -> _Bits | _Bytes | _OneByOne:
    kind, of = field.type, pa.types
    if of.is_primitive(kind) and not of.is_decimal(kind):
        return _Bits(field)
    texts = (of.is_string, of.is_large_string, of.is_binary, of.is_large_binary)
    return _Bytes(field) if any(is_kind(kind) for is_kind in texts) else _OneByOne(field)


def _plain(value: object) -> object:
    """A struct as the values of its fields, wherever it is."""
    if isinstance(value, dict):
        return tuple(map(_plain, value.values()))
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    return value
