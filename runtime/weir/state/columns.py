"""Turns rows of Python values into Arrow columns, and key columns into keys.

Both ways go through every value of a batch or of a state, so neither has a loop over rows in it:
rows are strung together and each column is picked out by its stride.
"""

from collections.abc import Sequence
from itertools import chain

import pyarrow as pa

from weir.ports.keyed_state import Key
from weir.state.row_types import Row

NAN = float("nan")
"""The one NaN in keys: a dictionary finds a NaN only by identity."""


def columns_of(rows: Sequence[Row], fields: Sequence[pa.Field]) -> list[pa.Array]:
    """One column for each field; raises ValueError where a row has more or fewer values."""
    width = len(fields)
    if other := set(map(len, rows)) - {width}:
        raise ValueError(f"expected {width} values, not {min(other)}")
    values = list(chain.from_iterable(rows))
    return [pa.array(values[at::width], field.type) for at, field in enumerate(fields)]


def keys_of(columns: Sequence[pa.Array | pa.ChunkedArray]) -> list[Key]:
    """The keys of rows as tuples, equal in Python wherever they are one key in SQL.

    A struct is a tuple in the key.
    """
    return list(zip(*map(_key_values, columns), strict=True))


def _key_values(column: pa.Array | pa.ChunkedArray) -> list[object]:
    if pa.types.is_struct(column.type):
        structs = zip(*map(_key_values, column.flatten()), strict=True)
        pairs = zip(structs, column.is_valid().to_pylist(), strict=True)
        return [struct if is_valid else None for struct, is_valid in pairs]
    values: list[object] = column.to_pylist()
    if not pa.types.is_floating(column.type):
        return values
    return [NAN if value != value else value for value in values]  # noqa: PLR0124 - finds NaN
