"""Views fixed-width Arrow columns as NumPy arrays, without copying where the layout allows it.

Arrow keeps a column's values and its nulls apart, and so does this module: where a value is null
its number is arbitrary, and the caller must check the nulls too. Only booleans are
copied, for Arrow packs eight of them into a byte. Nothing here knows what a column is for.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Validity = npt.NDArray[np.bool_]


def values_of(column: pa.Array) -> npt.NDArray[Any]:
    """Integers and floats as they are; dates, timestamps and durations as signed integers."""
    if pa.types.is_boolean(column.type):
        booleans: npt.NDArray[np.bool_] = column.fill_null(False).to_numpy(zero_copy_only=False)  # noqa: FBT003 - a value
        return booleans
    if len(column) == 0:
        return np.empty(0, dtype_of(column.type))
    _, data = column.buffers()
    values = np.frombuffer(data, dtype_of(column.type))
    return values[column.offset : column.offset + len(column)]


def validity_of(column: pa.Array) -> Validity | None:
    """Which values are not null; None when all of them are."""
    if column.null_count == 0:
        return None
    valid: Validity = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def dtype_of(kind: pa.DataType) -> np.dtype[Any]:
    """What NumPy calls the numbers of an Arrow type of fixed width."""
    if pa.types.is_boolean(kind):
        return np.dtype(np.bool_)
    letter = "i"
    if pa.types.is_floating(kind):
        letter = "f"
    elif pa.types.is_unsigned_integer(kind):
        letter = "u"
    return np.dtype(f"{letter}{kind.bit_width // 8}")


def arrow_of(values: npt.NDArray[Any], valid: Validity | None, kind: pa.DataType) -> pa.Array:
    """The reverse: an Arrow column over these numbers, which must not change afterwards."""
    numbers = np.ascontiguousarray(values, dtype_of(kind))
    data = pa.py_buffer(_packed(numbers) if numbers.dtype == np.bool_ else numbers)
    nulls = None if valid is None or valid.all() else pa.py_buffer(_packed(valid))
    return pa.Array.from_buffers(kind, len(numbers), [nulls, data])


def _packed(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    return np.packbits(flags, bitorder="little")
