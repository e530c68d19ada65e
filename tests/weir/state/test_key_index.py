"""A key keeps its slot, slots are dense, and every key can be read back from its slot."""

import math
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.errors import JobRejected
from weir.state.key_index import KeyIndex, NumberIndex, spread

longs = st.integers(-(2**63), 2**63 - 1)
colliding = st.integers(-3, 3) | longs


def check(slots, keys, known):
    """Known keys have the slots they had, and all have different ones."""
    for slot, key in zip(slots, keys, strict=True):
        assert known.setdefault(key, slot) == slot
    assert sorted(known.values()) == list(range(len(known)))


@given(st.lists(st.lists(colliding, max_size=50), max_size=8))
def test_numbers_keep_their_slots(batches):
    index, known = NumberIndex(), {}

    for batch in batches:
        check(index.slots(np.array(batch, np.int64)).tolist(), batch, known)

    slots = np.array(list(known.values()), np.int64)
    assert index.numbers_of(slots).tolist() == list(known)


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
def test_slots_survive_growth(numbers):
    """Whatever the pattern of the numbers."""
    index = NumberIndex()
    given_out = np.concatenate([index.slots(part) for part in np.array_split(numbers, 13)])

    assert index.size == len(numbers)
    np.testing.assert_array_equal(np.sort(given_out), np.arange(len(numbers)))
    np.testing.assert_array_equal(index.slots(numbers[::-1]), given_out[::-1])
    np.testing.assert_array_equal(index.numbers_of(given_out), numbers)


def test_numbers_whose_home_is_the_last_cell_go_on_at_the_first():
    """Growing lays numbers out anew; those that do not fit behind their home must stay findable."""
    candidates = np.arange(4_000_000)
    at_the_end = candidates[spread(candidates) >> np.uint64(48) == 0xFFFF][:40]
    index = NumberIndex()
    slots = index.slots(at_the_end)

    index.slots(-np.arange(1, 10_000))

    np.testing.assert_array_equal(index.slots(at_the_end), slots)
    assert index.slots(np.array([-20_000])).tolist() == [index.size - 1]


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
def test_rows_of_any_key_columns_keep_their_slots(data):
    """Nulls are keys like others."""
    kinds = data.draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=3))
    row = st.tuples(*(st.none() | COLUMNS[kind] for kind in kinds))
    batches = data.draw(st.lists(st.lists(row, max_size=20), max_size=4))
    index, known = KeyIndex([pa.field(f"k{i}", kind) for i, kind in enumerate(kinds)]), {}

    for batch in batches:
        columns = [pa.array([r[i] for r in batch], kind) for i, kind in enumerate(kinds)]
        check(index.slots(columns).tolist(), batch, known)

    assert index.size == len(known)
    keys = index.keys_of(np.array(list(known.values()), np.int64))
    assert [column.type for column in keys] == kinds
    assert list(zip(*(column.to_pylist() for column in keys), strict=True)) == list(known)


def test_doubles_that_sql_calls_equal_are_one_key():
    index = KeyIndex([pa.field("k", pa.float64())])

    slots = index.slots([pa.array([0.0, -0.0, math.nan, -math.nan])]).tolist()

    assert slots[0] == slots[1]
    assert slots[2] == slots[3] != slots[0]


def test_a_slice_of_a_column_is_looked_up_as_what_it_is():
    index = KeyIndex([pa.field("k", pa.int64())])
    column = pa.array([5, None, 7, 5, None])

    whole = index.slots([column]).tolist()

    assert index.slots([column.slice(1, 3)]).tolist() == whole[1:4]


def test_what_cannot_be_a_key_is_refused():
    """U3: by column and type."""
    with pytest.raises(JobRejected, match="'tags' of type list"):
        KeyIndex([pa.field("tags", pa.list_(pa.string()))])
