"""Splits the structs among key columns into flat columns, and builds the structs again from these.

Hash tables and group-bys know flat columns only. A struct becomes a boolean column, true where the
struct is not null, followed by the columns of its fields, which are null where the struct is. So a
null struct and a struct whose fields are all null stay two keys, as in Spark. A column of any other
type stays as it is.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

VALIDITY = pa.bool_()
"""The type of the column that says where a struct is not null."""


def leaf_types(kind: pa.DataType) -> list[pa.DataType]:
    """The types of the flat columns of a column of this type."""
    if not pa.types.is_struct(kind):
        return [kind]
    return [VALIDITY, *(leaf for field in kind for leaf in leaf_types(field.type))]


def leaves_of(column: pa.Array) -> list[pa.Array]:
    """The flat columns of a column."""
    if not pa.types.is_struct(column.type):
        return [column]
    return [column.is_valid(), *(leaf for part in column.flatten() for leaf in leaves_of(part))]


def columns_of_leaves(kinds: Sequence[pa.DataType], leaves: Sequence[pa.Array]) -> list[pa.Array]:
    """The columns of these types, from the flat columns of all of them."""
    remaining = iter(leaves)
    return [_column(kind, remaining) for kind in kinds]


def nullable_inside(kind: pa.DataType) -> pa.DataType:
    """The type without NOT NULL in its structs, which makes no other key of a value."""
    if not pa.types.is_struct(kind):
        return kind
    return pa.struct([pa.field(field.name, nullable_inside(field.type)) for field in kind])


def _column(kind: pa.DataType, leaves: Iterator[pa.Array]) -> pa.Array:
    if not pa.types.is_struct(kind):
        return next(leaves)
    is_null = pc.invert(next(leaves))
    parts = [_column(field.type, leaves) for field in kind]
    return pa.StructArray.from_arrays(parts, fields=list(kind), mask=is_null)
