"""Encodes the key columns of whole batches as the bytes of RocksDB keys, and decodes them.

A fixed-width value is a validity byte and eight bytes; a string or binary is a validity byte, four
bytes of length and its bytes; a struct is the flat columns of its fields. No encoded key is the
beginning of another one, so the entries of a key are a range of their own. Doubles that SQL calls
one key are one key here: -0.0 is 0.0, and every NaN is Java's one NaN.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weir.wire.keys import canonical, check_key_type
from weir.wire.numpy_columns import arrow_of, validity_of, values_of
from weir.wire.struct_keys import columns_of_leaves, leaf_types, leaves_of

Positions = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_FIXED = 9
_LENGTH = 4
_NUMBER = np.dtype(">i8")
_SIZE = np.dtype(">u4")


class KeyCodec:
    """Keys of certain types, which cannot be others later."""

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        """Refuses types that cannot be keys."""
        for field in fields:
            check_key_type(field)
        self._kinds = [field.type for field in fields]
        self._leaves = [leaf for kind in self._kinds for leaf in leaf_types(kind)]
        self._is_fixed = not any(map(_is_varying, self._leaves))

    def encode(self, columns: Sequence[pa.Array]) -> list[bytes]:
        """One key for each row."""
        rows = len(columns[0])
        leaves = [leaf for column in columns for leaf in leaves_of(column)]
        if self._is_fixed:
            cells = np.hstack([_fixed_cells(leaf) for leaf in leaves])
            return bytes_of(cells)
        parts: list[pa.Array] = []
        for leaf in leaves:
            if _is_varying(leaf.type):
                values = leaf.cast(pa.binary()).fill_null(b"")
                parts += (_as_binary(_headers(values, validity_of(leaf)), rows), values)
            else:
                parts.append(_as_binary(_fixed_cells(leaf), rows))
        joined = pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary()))
        keys: list[bytes] = joined.to_pylist()
        return keys

    def decode(self, entries: Sequence[bytes], skipped: int) -> tuple[list[pa.Array], list[int]]:
        """The key columns of entries, and where in each entry its key ends.

        A key begins behind so many bytes.
        """
        data = np.frombuffer(b"".join(entries), np.uint8)
        lengths = np.fromiter(map(len, entries), np.int64, len(entries))
        begins = np.cumsum(lengths) - lengths
        at = begins + skipped
        leaves = []
        for kind in self._leaves:
            valid = data[at] == 1
            if _is_varying(kind):
                sizes = _numbers(data, at + 1, _LENGTH).view(_SIZE).ravel().astype(np.int64)
                at += 1 + _LENGTH
                leaves.append(_varying(kind, data, at, sizes, valid))
                at += sizes
            else:
                numbers = _numbers(data, at + 1, _FIXED - 1).view(_NUMBER).ravel()
                leaves.append(_fixed(kind, numbers.astype(np.int64), valid))
                at += _FIXED
        return columns_of_leaves(self._kinds, leaves), (at - begins).tolist()


def bytes_of(cells: Bytes) -> list[bytes]:
    """The rows of a matrix of bytes, one object for each."""
    width = cells.shape[1]
    rows: list[bytes] = np.ascontiguousarray(cells).view(f"V{width}").ravel().tolist()
    return rows


def group_bytes(groups: npt.NDArray[Any]) -> list[bytes]:
    """Key groups as the first two bytes of RocksDB keys."""
    return bytes_of(groups.astype(">u2").view(np.uint8).reshape(len(groups), 2))


def _is_varying(kind: pa.DataType) -> bool:
    of = pa.types
    return any(
        is_kind(kind) for is_kind in (of.is_string, of.is_large_string, of.is_binary)
    ) or bool(of.is_large_binary(kind))


def _fixed_cells(leaf: pa.Array) -> Bytes:
    values = values_of(leaf)
    if pa.types.is_floating(leaf.type):
        values = canonical(values).view(np.int64)
    valid = validity_of(leaf)
    cells = np.empty((len(leaf), _FIXED), np.uint8)
    cells[:, 0] = 1 if valid is None else valid
    numbers = values.astype(_NUMBER)
    if valid is not None:
        numbers[~valid] = 0
    cells[:, 1:] = numbers.view(np.uint8).reshape(len(leaf), _FIXED - 1)
    return cells


def _headers(values: pa.Array, valid: npt.NDArray[np.bool_] | None) -> Bytes:
    cells = np.empty((len(values), 1 + _LENGTH), np.uint8)
    cells[:, 0] = 1 if valid is None else valid
    lengths = values_of(pc.binary_length(values)).astype(_SIZE)
    cells[:, 1:] = lengths.view(np.uint8).reshape(len(values), _LENGTH)
    return cells


def _as_binary(cells: Bytes, rows: int) -> pa.Array:
    kind = pa.binary(cells.shape[1])
    data = pa.py_buffer(np.ascontiguousarray(cells))
    return pa.Array.from_buffers(kind, rows, [None, data]).cast(pa.binary())


def _numbers(data: Bytes, at: Positions, width: int) -> Bytes:
    return np.ascontiguousarray(data[at[:, np.newaxis] + np.arange(width)])


def _fixed(
    kind: pa.DataType, numbers: npt.NDArray[np.int64], valid: npt.NDArray[np.bool_]
) -> pa.Array:
    values = numbers.view(np.float64) if pa.types.is_floating(kind) else numbers
    return arrow_of(values, valid, kind)


def _varying(
    kind: pa.DataType,
    data: Bytes,
    begins: Positions,
    sizes: Positions,
    valid: npt.NDArray[np.bool_],
) -> pa.Array:
    ends = np.cumsum(sizes)
    picked = np.repeat(begins - (ends - sizes), sizes) + np.arange(int(sizes.sum()))
    offsets = np.zeros(len(sizes) + 1, np.int64)
    offsets[1:] = ends
    nulls = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    wide = pa.large_binary() if _is_binary(kind) else pa.large_string()
    buffers = [nulls, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data[picked]))]
    return pa.Array.from_buffers(wide, len(sizes), buffers).cast(kind)


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
