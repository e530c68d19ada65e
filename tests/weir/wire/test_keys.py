"""A row's key group is the same however its key is laid out in Arrow."""

import math
import struct
from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.core import key_groups as kg
from weir.errors import JobRejected
from weir.wire.keys import check_key_type, key_groups

MAX_PARALLELISM = 128
EPOCH = date(1970, 1, 1)


def groups(values, kind, max_parallelism=MAX_PARALLELISM):
    batch = pa.record_batch([pa.array(values, kind)], names=["k"])
    return key_groups(batch, ["k"], max_parallelism).tolist()


def group(code, max_parallelism=MAX_PARALLELISM):
    return kg.group_of(code, max_parallelism)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32()])
@given(data=st.data())
def test_narrow_integers_hash_as_java_ints(kind, data):
    """S11: widths matter."""
    bound = 1 << kind.bit_width - 1
    values = data.draw(st.lists(st.none() | st.integers(-bound, bound - 1)))

    expected = [group(kg.NULL_HASH if v is None else kg.hash_of_int(v)) for v in values]

    assert groups(values, kind) == expected


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_wide_integers_and_timestamps_hash_as_java_longs(values):
    """S11: -1 is another key as an int than as a long."""
    expected = [group(kg.NULL_HASH if v is None else kg.hash_of_long(v)) for v in values]

    assert groups(values, pa.int64()) == expected
    stamps = pa.array(values, pa.int64()).view(pa.timestamp("us"))
    assert groups(stamps, stamps.type) == expected


@given(st.lists(st.none() | st.text()))
def test_texts_hash_as_java_strings(values):
    expected = [group(kg.NULL_HASH if v is None else kg.hash_of_text(v)) for v in values]

    assert groups(values, pa.string()) == expected
    assert groups(values, pa.large_string()) == expected


@given(st.lists(st.none() | st.binary()))
def test_binaries_hash_as_java_byte_arrays(values):
    expected = [group(kg.NULL_HASH if v is None else kg.hash_of_bytes(v)) for v in values]

    assert groups(values, pa.binary()) == expected


@given(st.lists(st.floats(allow_nan=False)))
def test_doubles_hash_by_their_bits(values):
    def bits(value):
        return struct.unpack("<q", struct.pack("<d", value or 0.0))[0]

    assert groups(values, pa.float64()) == [group(kg.hash_of_long(bits(v))) for v in values]


def test_doubles_that_are_one_key_have_one_group():
    """S11: SQL treats -0.0 as 0.0, and every NaN as one."""
    odd_nan = struct.unpack("<d", struct.pack("<q", 0x7FF8_0000_0000_0001))[0]

    wide = groups([0.0, -0.0, math.nan, odd_nan, -math.nan], pa.float64(), 1 << 15)

    assert len(set(wide[:2])) == len(set(wide[2:])) == 1
    java_nan = kg.hash_of_long(0x7FF8_0000_0000_0000)
    assert wide[2] == group(java_nan, 1 << 15)


def test_bools_and_dates_hash_as_in_java():
    day, null = date(2026, 1, 5), group(kg.NULL_HASH)

    assert groups([True, False, None], pa.bool_()) == [
        group(kg.hash_of_bool(True)),  # noqa: FBT003 - the key
        group(kg.hash_of_bool(False)),  # noqa: FBT003 - the key
        null,
    ]
    assert groups([day, None], pa.date32()) == [group(kg.hash_of_int((day - EPOCH).days)), null]


@given(st.lists(st.tuples(st.none() | st.text(), st.none() | st.integers(-9, 9)), min_size=1))
def test_several_columns_hash_as_a_row(rows):
    texts, numbers = zip(*rows, strict=True)
    batch = pa.record_batch(
        [pa.array(texts, pa.string()), pa.array(numbers, pa.int64())], ["a", "b"]
    )

    expected = [
        group(
            kg.hash_of_row(
                [
                    kg.NULL_HASH if text is None else kg.hash_of_text(text),
                    kg.NULL_HASH if number is None else kg.hash_of_long(number),
                ]
            )
        )
        for text, number in rows
    ]

    assert key_groups(batch, ["a", "b"], MAX_PARALLELISM).tolist() == expected


@pytest.mark.parametrize(
    "values",
    [
        pa.array(range(100), pa.int64()),
        pa.array([i % 3 == 0 for i in range(100)]),
        pa.array([None if i % 5 == 0 else i for i in range(100)], pa.int32()),
        pa.array([f"key-{i % 7}" for i in range(100)]),
        pa.array([datetime.fromtimestamp(i, UTC) for i in range(100)]),
    ],
)
def test_a_slice_of_a_batch_has_the_groups_of_its_rows(values):
    """The slot cuts batches anywhere, inside a byte of packed bits too."""
    batch = pa.record_batch([values], names=["k"])
    whole = key_groups(batch, ["k"], MAX_PARALLELISM)

    part = key_groups(batch.slice(13, 50), ["k"], MAX_PARALLELISM)

    np.testing.assert_array_equal(part, whole[13:63])
    assert part.dtype == np.int32


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.int64()), pa.struct([]), pa.decimal128(10, 2), pa.uint64()],
)
def test_a_type_that_cannot_be_a_key_is_refused_by_column_and_type(kind):
    """U3: before the job starts."""
    with pytest.raises(JobRejected, match="'price'") as refusal:
        check_key_type(pa.field("price", kind))

    assert str(kind) in str(refusal.value)


def test_types_that_can_be_keys_pass():
    for kind in (pa.int64(), pa.string(), pa.timestamp("us", "UTC"), pa.date32(), pa.float64()):
        check_key_type(pa.field("k", kind))
