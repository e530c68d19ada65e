"""A key keeps its row, rows are dense, and every key can be read back from its row."""

import math
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.errors import JobRejected
from weir.state.memory.key_index import KeyIndex
from weir.state.memory.number_index import NumberIndex, spread

longs = st.integers(-(2**63), 2**63 - 1)
colliding = st.integers(-3, 3) | longs


def check(row_numbers, keys, known):
    """Known keys have the rows they had, and all have different ones."""
    for row_number, key in zip(row_numbers, keys, strict=True):
        assert known.setdefault(key, row_number) == row_number
    assert sorted(known.values()) == list(range(len(known)))


@given(st.lists(st.lists(colliding, max_size=50), max_size=8))
def test_numbers_keep_their_rows(batches):
    index, known = NumberIndex(), {}

    for batch in batches:
        check(index.row_numbers(np.array(batch, np.int64)).tolist(), batch, known)

    row_numbers = np.array(list(known.values()), np.int64)
    assert index.numbers_of(row_numbers).tolist() == list(known)


@pytest.mark.parametrize(
    "numbers",
    [
        np.arange(50_000),
        np.arange(50_000) << 40,
        np.arange(50_000) << 32 | np.arange(50_000),
        np.arange(50_000) * -(2**33) + 7,
        np.random.default_rng(7).integers(-(2**63), 2**63 - 1, 50_000),
    ],
)
def test_rows_survive_growth(numbers):
    """Whatever the pattern of the numbers."""
    index = NumberIndex()
    given_out = np.concatenate([index.row_numbers(part) for part in np.array_split(numbers, 13)])

    assert index.size == len(numbers)
    np.testing.assert_array_equal(np.sort(given_out), np.arange(len(numbers)))
    np.testing.assert_array_equal(index.row_numbers(numbers[::-1]), given_out[::-1])
    np.testing.assert_array_equal(index.numbers_of(given_out), numbers)


def test_numbers_whose_home_is_the_last_cell_go_on_at_the_first():
    """Growing lays numbers out anew; those that do not fit behind their home must stay findable."""
    candidates = np.arange(4_000_000)
    at_the_end = candidates[spread(candidates) >> np.uint64(48) == 0xFFFF][:40]
    index = NumberIndex()
    row_numbers = index.row_numbers(at_the_end)

    index.row_numbers(-np.arange(1, 10_000))

    np.testing.assert_array_equal(index.row_numbers(at_the_end), row_numbers)
    assert index.row_numbers(np.array([-20_000])).tolist() == [index.size - 1]


COLUMNS = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): longs,
    pa.bool_(): st.booleans(),
    pa.float64(): st.floats(allow_nan=False).map(lambda number: number or 0.0),
    pa.date32(): st.dates(date(1900, 1, 1), date(2100, 1, 1)),
    pa.string(): st.text(max_size=3),
    pa.large_string(): st.text(max_size=3),
    pa.binary(): st.binary(max_size=3),
}


@given(st.data())
def test_rows_of_any_key_columns_keep_their_rows(data):
    """Nulls are keys like others."""
    kinds = data.draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=3))
    row = st.tuples(*(st.none() | COLUMNS[kind] for kind in kinds))
    batches = data.draw(st.lists(st.lists(row, max_size=20), max_size=4))
    index, known = KeyIndex([pa.field(f"k{i}", kind) for i, kind in enumerate(kinds)]), {}

    for batch in batches:
        columns = [pa.array([r[i] for r in batch], kind) for i, kind in enumerate(kinds)]
        check(index.row_numbers(columns).tolist(), batch, known)

    assert index.size == len(known)
    keys = index.keys_of(np.array(list(known.values()), np.int64))
    assert [column.type for column in keys] == kinds
    assert list(zip(*(column.to_pylist() for column in keys), strict=True)) == list(known)


PLACE = pa.struct([("x", pa.int32()), ("at", pa.struct([("s", pa.string()), ("b", pa.bool_())]))])
places = st.none() | st.tuples(
    st.none() | st.integers(-2, 2),
    st.none() | st.tuples(st.none() | st.text(max_size=2), st.none() | st.booleans()),
)


@given(st.lists(st.lists(st.tuples(places, st.integers(0, 2)), max_size=20), max_size=4))
def test_structs_keep_their_slots(batches):
    """S11: a null struct is one key, and a struct of nulls another."""
    index, known = KeyIndex([pa.field("k", PLACE), pa.field("n", pa.int64())]), {}

    for batch in batches:
        columns = [pa.array([row[0] for row in batch], PLACE), pa.array([row[1] for row in batch])]
        check(index.row_numbers([columns[0], columns[1].cast(pa.int64())]).tolist(), batch, known)

    structs, numbers = index.keys_of(np.array(list(known.values()), np.int64))
    assert index.size == len(known)
    assert structs.equals(pa.array([key[0] for key in known], PLACE))
    assert numbers.to_pylist() == [key[1] for key in known]


def test_doubles_that_sql_calls_equal_are_one_key():
    index = KeyIndex([pa.field("k", pa.float64())])

    row_numbers = index.row_numbers([pa.array([0.0, -0.0, math.nan, -math.nan])]).tolist()

    assert row_numbers[0] == row_numbers[1]
    assert row_numbers[2] == row_numbers[3] != row_numbers[0]


def test_a_slice_of_a_column_is_looked_up_as_what_it_is():
    index = KeyIndex([pa.field("k", pa.int64())])
    column = pa.array([5, None, 7, 5, None])

    whole = index.row_numbers([column]).tolist()

    assert index.row_numbers([column.slice(1, 3)]).tolist() == whole[1:4]


def test_what_cannot_be_a_key_is_refused():
    """U3: by column and type."""
    tags = pa.field("tags", pa.list_(pa.string()))
    with pytest.raises(JobRejected, match="'tags' of type list"):
        KeyIndex([tags])
    with pytest.raises(JobRejected, match=r"'page\.tags' of type list"):
        KeyIndex([pa.field("page", pa.struct([tags]))])
