"""Finds the key groups of the rows of an Arrow batch.

The sender of a hashed edge, a state's snapshot and a bootstrap writer must put a key into one and
the same group, so all of them ask here. The numbers come from ``weir.core.key_groups``; this module
adds what that one refuses to know: which Arrow type hashes as which Java type, and what to do about
nulls. Strings and binaries hash their distinct values only, for keys repeat within a batch. A
struct hashes as the row of its fields does, and a null struct as any null.

Two numbers that SQL calls one key hash alike: -0.0 as 0.0, and every NaN as Java's one NaN.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weir.core import key_groups as kg
from weir.errors import JobRejected
from weir.wire.numpy_columns import validity_of, values_of

_Value = TypeVar("_Value", str, bytes)
_Hasher = Callable[[pa.Array], kg.Hashes]


def key_groups(batch: pa.RecordBatch, columns: Sequence[str], max_parallelism: int) -> kg.Groups:
    """The key group of each row. One column is hashed alone, several as the fields of a row."""
    hashes = [_hashes(batch.column(name), name) for name in columns]
    row_hashes = hashes[0] if len(hashes) == 1 else kg.hashes_of_rows(hashes)
    return kg.groups_of(row_hashes, max_parallelism)


def check_key_type(field: pa.Field) -> None:
    """Refuse a column that cannot be a key, before any row of it is read."""
    _hasher_of(field.type, field.name)


def _hashes(column: pa.Array, name: str) -> kg.Hashes:
    return _null_aware(_hasher_of(column.type, name), column)


def _null_aware(hasher: _Hasher, column: pa.Array) -> kg.Hashes:
    hashes = hasher(column)
    valid = validity_of(column)
    return hashes if valid is None else np.where(valid, hashes, np.uint32(kg.NULL_HASH))


def _hasher_of(kind: pa.DataType, name: str) -> _Hasher:
    if pa.types.is_struct(kind) and kind.num_fields:
        return _struct_hasher([_hasher_of(part.type, f"{name}.{part.name}") for part in kind])
    hasher = _longs if pa.types.is_timestamp(kind) else _HASHERS.get(kind)
    if hasher is None:
        raise JobRejected(
            f"column {name!r} of type {kind} cannot be a key",
            "keys are integers, doubles, booleans, strings, binaries, dates, timestamps or structs"
            " of these",
            "cast the column to one of these first",
        )
    return hasher


def _struct_hasher(hashers: Sequence[_Hasher]) -> _Hasher:
    def hashes_of(column: pa.Array) -> kg.Hashes:
        parts = zip(hashers, column.flatten(), strict=True)
        return kg.hashes_of_rows([_null_aware(hasher, part) for hasher, part in parts])

    return hashes_of


def _ints(column: pa.Array) -> kg.Hashes:
    return kg.hashes_of_ints(values_of(column))


def _longs(column: pa.Array) -> kg.Hashes:
    return kg.hashes_of_longs(values_of(column))


def _bools(column: pa.Array) -> kg.Hashes:
    return kg.hashes_of_bools(values_of(column))


def _doubles(column: pa.Array) -> kg.Hashes:
    return kg.hashes_of_longs(canonical(values_of(column)).view(np.int64))


def canonical(doubles: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """One bit pattern for all doubles that are one key: 0.0 for -0.0, Java's NaN for each NaN."""
    # Adding zero turns -0.0 into 0.0 and leaves every other number alone.
    return np.where(np.isnan(doubles), np.nan, doubles + 0.0)


def _texts(column: pa.Array) -> kg.Hashes:
    return _by_distinct_value(column, kg.hashes_of_texts)


def _binaries(column: pa.Array) -> kg.Hashes:
    return _by_distinct_value(column, kg.hashes_of_bytes)


def _by_distinct_value(
    column: pa.Array, hashes_of: Callable[[Sequence[_Value]], kg.Hashes]
) -> kg.Hashes:
    encoded = column.dictionary_encode()
    if len(encoded.dictionary) == 0:
        return np.full(len(column), kg.NULL_HASH, np.uint32)
    hashes = hashes_of(encoded.dictionary.to_pylist())
    codes: npt.NDArray[np.int32] = values_of(encoded.indices.fill_null(0))
    return hashes[codes]


_HASHERS: dict[pa.DataType, _Hasher] = {
    pa.int8(): _ints,
    pa.int16(): _ints,
    pa.int32(): _ints,
    pa.date32(): _ints,
    pa.int64(): _longs,
    pa.bool_(): _bools,
    pa.float64(): _doubles,
    pa.string(): _texts,
    pa.large_string(): _texts,
    pa.binary(): _binaries,
    pa.large_binary(): _binaries,
}
