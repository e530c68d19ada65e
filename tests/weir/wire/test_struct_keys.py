"""A struct is a key like any other: it has one group, and its flat columns say which one it is."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.core import key_groups as kg
from weir.errors import JobRejected
from weir.wire.keys import check_key_type, key_groups
from weir.wire.struct_keys import columns_of_leaves, leaf_types, leaves_of, nullable_inside

MAX_PARALLELISM = 128
INNER = pa.struct([("s", pa.string()), ("d", pa.float64())])
KIND = pa.struct([("i", pa.int32()), ("in", INNER), ("l", pa.int64())])

inner = st.none() | st.tuples(
    st.none() | st.text(max_size=3), st.none() | st.floats(allow_nan=False)
)
structs = st.none() | st.tuples(
    st.none() | st.integers(-(2**31), 2**31 - 1), inner, st.none() | st.integers(-9, 9)
)


def groups(*columns):
    names = [f"k{at}" for at in range(len(columns))]
    batch = pa.record_batch(list(columns), names=names)
    return key_groups(batch, names, MAX_PARALLELISM).tolist()


def hash_of(hash_of_value, value):
    return kg.NULL_HASH if value is None else hash_of_value(value)


def hash_of_struct(struct):
    number, part, wide = struct
    return kg.hash_of_row(
        [
            hash_of(kg.hash_of_int, number),
            hash_of(hash_of_inner, part),
            hash_of(kg.hash_of_long, wide),
        ]
    )


def hash_of_inner(part):
    text, double = part
    # Doubles hash by their bits, which test_keys covers.
    bits = None if double is None else pa.array([double + 0.0]).view(pa.int64())[0].as_py()
    return kg.hash_of_row([hash_of(kg.hash_of_text, text), hash_of(kg.hash_of_long, bits)])


@given(st.lists(structs))
def test_a_struct_hashes_as_the_row_of_its_fields(values):
    """S11: as Flink hashes a row in a row; a null struct hashes as any null."""
    expected = [kg.group_of(hash_of(hash_of_struct, v), MAX_PARALLELISM) for v in values]

    assert groups(pa.array(values, KIND)) == expected


def test_the_group_of_a_struct_never_changes():
    """S11: these numbers are part of the format of snapshots."""
    column = pa.array([None, (None, None, None), (1, ("a", 0.5), 2), (1, None, 2)], KIND)

    assert groups(column) == [94, 55, 61, 44]
    assert groups(column, pa.array([1, 2, 3, 4], pa.int64())) == [10, 72, 24, 23]


def test_zeros_and_nans_in_a_struct_are_one_key_each():
    """S11: as outside of a struct."""
    kind = pa.struct([("d", pa.float64())])
    found = groups(pa.array([(0.0,), (-0.0,), (float("nan"),), (-float("nan"),)], kind))

    assert found[0] == found[1]
    assert found[2] == found[3]


def test_a_slice_has_the_groups_of_its_rows():
    values = [None if n % 7 == 3 else (n, (f"{n}", None), None) for n in range(50)]
    column = pa.array(values, KIND)

    assert groups(column.slice(13, 20)) == groups(column)[13:33]


@given(st.lists(structs), st.integers(0, 5))
def test_flat_columns_are_the_struct_in_other_words(values, start):
    """S11: nothing is lost between the two, nulls of every depth included."""
    column = pa.array(values, KIND).slice(min(start, len(values)))

    leaves = leaves_of(column)

    assert [leaf.type for leaf in leaves] == leaf_types(KIND)
    (again,) = columns_of_leaves([KIND], leaves)
    again.validate(full=True)
    assert again.equals(column)


def test_a_column_without_structs_is_its_own_flat_column():
    column = pa.array([1, None, 3])

    assert leaves_of(column) == [column]
    assert columns_of_leaves([column.type], [column]) == [column]


def test_a_field_that_may_not_be_null_is_null_where_its_struct_is():
    kind = pa.struct([pa.field("n", pa.int64(), nullable=False)])
    column = pa.array([(1,), None], kind)

    (again,) = columns_of_leaves([kind], leaves_of(column))

    assert again.type == kind
    assert again.to_pylist() == [{"n": 1}, None]
    assert nullable_inside(kind) == pa.struct([("n", pa.int64())])


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        (pa.struct([("l", pa.list_(pa.int64()))]), "'k.l' of type list"),
        (pa.struct([("m", pa.map_(pa.int64(), pa.int64()))]), "'k.m' of type map"),
        (pa.struct([("f", pa.float32())]), "'k.f' of type float"),
        (pa.struct([("in", pa.struct([("p", pa.decimal128(9, 2))]))]), "'k.in.p' of type decimal"),
        (pa.struct([("in", pa.struct([]))]), "'k.in' of type struct<>"),
    ],
)
def test_a_field_that_cannot_be_a_key_is_refused_by_its_path(kind, named):
    """U3: before the job starts."""
    with pytest.raises(JobRejected, match=named):
        check_key_type(pa.field("k", kind))
