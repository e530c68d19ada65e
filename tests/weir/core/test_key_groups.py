"""A key's group is the one that Flink gives it, alone or in a batch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.core import key_groups as kg
from weir.core.snapshots import KeyGroupRange

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1

ints = st.integers(INT_MIN, INT_MAX)
longs = st.integers(LONG_MIN, LONG_MAX)
any_text = st.text(st.characters())  # lone surrogates and characters beyond the basic plane too


@st.composite
def widths(draw):
    max_parallelism = draw(st.integers(1, kg.MAX_PARALLELISM_LIMIT))
    return draw(st.integers(1, min(max_parallelism, 300))), max_parallelism


def test_known_keys_have_the_group_and_owner_that_flink_gives_them():
    """S11: key -> key group -> subtask is a file format."""
    a, b = (kg.group_of(kg.hash_of_text(key), 128) for key in "AB")

    assert (a, b) == (104, 17)
    assert [kg.owner_of(a, width, 128) for width in (2, 8)] == [1, 6]
    assert [kg.owner_of(b, width, 128) for width in (2, 8)] == [0, 1]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("Aa", 2112),
        ("BB", 2112),
        ("polygenelubricants", INT_MIN),
        ("\U0001f600", 0xD83D * 31 + 0xDE00),
    ],
)
def test_a_text_hashes_as_a_java_string(text, code):
    """S11: over UTF-16 code units, wrapping at 32 bits."""
    assert kg.hash_of_text(text) == code


def test_a_number_hashes_by_its_declared_width():
    """S11: -1 is another key as an int than as a long."""
    assert kg.hash_of_int(-1) == -1
    assert kg.hash_of_long(-1) == 0
    assert kg.hash_of_long(2**32) == 1
    assert kg.hash_of_long(LONG_MIN) == INT_MIN
    assert kg.hash_of_int(7) == kg.hash_of_long(7) == 7


def test_bools_bytes_and_rows_hash_as_in_java():
    """S11: Boolean.hashCode, Arrays.hashCode over signed bytes, Arrays.hashCode over fields."""
    assert [kg.hash_of_bool(value) for value in (True, False)] == [1231, 1237]
    assert kg.hash_of_bytes(b"") == 1
    assert kg.hash_of_bytes(b"\x01\xff") == (31 + 1) * 31 - 1
    assert kg.hash_of_row([]) == 1
    assert kg.hash_of_row([kg.hash_of_text("a"), kg.NULL_HASH]) == (31 + 97) * 31


def test_the_one_number_without_an_absolute_value_goes_to_group_zero():
    """S11: Murmur's -2**31 becomes 0 and not a negative group."""
    assert java_mix(MIXES_TO_INT_MIN) == INT_MIN
    assert kg.murmur(MIXES_TO_INT_MIN) == 0
    assert kg.murmurs(np.array([MIXES_TO_INT_MIN], np.uint32)).tolist() == [0]


@given(ints)
def test_murmur_is_the_java_code_step_by_step(code):
    """S11: against a second, literal transcription."""
    assert kg.murmur(code) == java_murmur(code)


@pytest.mark.parametrize(
    ("parallelism", "max_parallelism"),
    [(1, 128), (85, 128), (86, 256), (171, 256), (172, 512), (21845, 32768), (32768, 32768)],
)
def test_the_default_max_parallelism_leaves_room_to_grow(parallelism, max_parallelism):
    """S11: the power of two at or above 1.5 times the width, between 128 and 32768."""
    assert kg.default_max_parallelism(parallelism) == max_parallelism


def test_three_subtasks_divide_128_groups_as_flink_does():
    """S11."""
    assert [kg.range_of(index, 3, 128) for index in range(3)] == [
        KeyGroupRange(0, 42),
        KeyGroupRange(43, 85),
        KeyGroupRange(86, 127),
    ]


def test_the_manifest_can_name_the_algorithm():
    """S11: a change of a number in this module must change these."""
    assert (kg.HASH, kg.HASH_VERSION) == ("java-hashcode/murmur3-32", 1)


@given(widths())
def test_ranges_tile_the_key_groups_and_each_owner_is_where_its_group_is(width):
    """S11: every key group has exactly one owner at every parallelism."""
    parallelism, max_parallelism = width
    ranges = [kg.range_of(index, parallelism, max_parallelism) for index in range(parallelism)]

    tiles = [group for first, last in ranges for group in range(first, last + 1)]
    owners = [index for index, (first, last) in enumerate(ranges) for _ in range(first, last + 1)]
    assert all(first <= last for first, last in ranges)
    assert tiles == list(range(max_parallelism))
    assert [kg.owner_of(group, *width) for group in tiles] == owners
    assert kg.owners_of(np.array(tiles, np.int32), *width).tolist() == owners


@given(st.lists(ints), st.integers(1, kg.MAX_PARALLELISM_LIMIT))
def test_a_batch_of_hashes_has_the_groups_of_its_rows(codes, max_parallelism):
    """S11: vectorised equals scalar."""
    groups = kg.groups_of(unsigned(codes), max_parallelism)

    assert groups.tolist() == [kg.group_of(code, max_parallelism) for code in codes]
    assert all(group in KeyGroupRange(0, max_parallelism - 1) for group in groups.tolist())


@given(st.lists(ints), st.lists(longs), st.lists(st.booleans()))
def test_a_batch_of_numbers_hashes_as_its_rows_do(some_ints, some_longs, bools):
    """S11: vectorised equals scalar."""
    assert signed(kg.hashes_of_ints(np.array(some_ints, np.int32))) == [
        kg.hash_of_int(value) for value in some_ints
    ]
    assert signed(kg.hashes_of_longs(np.array(some_longs, np.int64))) == [
        kg.hash_of_long(value) for value in some_longs
    ]
    assert signed(kg.hashes_of_bools(np.array(bools, np.bool_))) == [
        kg.hash_of_bool(value) for value in bools
    ]


@given(st.lists(any_text), st.lists(st.binary()))
def test_a_batch_of_texts_hashes_as_its_rows_do(texts, blobs):
    """S11: vectorised equals scalar equals Java, empty ones and lone surrogates included."""
    assert signed(kg.hashes_of_texts(texts)) == [kg.hash_of_text(text) for text in texts]
    assert signed(kg.hashes_of_bytes(blobs)) == [kg.hash_of_bytes(blob) for blob in blobs]
    assert [kg.hash_of_text(text) for text in texts] == [java_string_hash(text) for text in texts]


@given(st.lists(st.tuples(ints, ints, ints)))
def test_a_batch_of_composite_keys_hashes_as_its_rows_do(rows):
    """S11: vectorised equals scalar."""
    columns = [unsigned([row[field] for row in rows]) for field in range(3)]

    assert signed(kg.hashes_of_rows(columns)) == [kg.hash_of_row(row) for row in rows]


@given(st.integers(INT_MIN, INT_MAX), st.integers(1, kg.MAX_PARALLELISM_LIMIT))
def test_both_forms_of_one_hash_have_one_group(code, max_parallelism):
    """S11: signed or unsigned, a hash is 32 bits."""
    assert kg.group_of(code, max_parallelism) == kg.group_of(code % 2**32, max_parallelism)


def test_hashing_a_batch_leaves_the_batch_alone():
    """S1: keys go on into state after they were hashed."""
    keys = np.array([5, -5, LONG_MIN], np.int64)
    narrow = np.array([5, -5], np.int32)
    hashes = kg.hashes_of_longs(keys)
    before = hashes.copy()

    kg.groups_of(hashes, 128)
    kg.hashes_of_rows([hashes, hashes])
    kg.hashes_of_ints(narrow)[:] = 0

    assert keys.tolist() == [5, -5, LONG_MIN]
    assert narrow.tolist() == [5, -5]
    assert hashes.tolist() == before.tolist()


# --- The Java code once more, as plainly as possible ---------------------------------------------

MIXES_TO_INT_MIN = 2205091669


def int32(value):
    value %= 2**32
    return value - 2**32 if value >= 2**31 else value


def rotate_left(value, distance):
    bits = format(value % 2**32, "032b")
    return int32(int(bits[distance:] + bits[:distance], 2))


def shift_right_unsigned(value, distance):
    return int32((value % 2**32) // 2**distance)


def java_mix(code):
    code = int32(code * int32(0xCC9E2D51))
    code = rotate_left(code, 15)
    code = int32(code * 0x1B873593)
    code = rotate_left(code, 13)
    code = int32(int32(code * 5) + int32(0xE6546B64))
    code = int32(code ^ 4)
    code = int32(code ^ shift_right_unsigned(code, 16))
    code = int32(code * int32(0x85EBCA6B))
    code = int32(code ^ shift_right_unsigned(code, 13))
    code = int32(code * int32(0xC2B2AE35))
    return int32(code ^ shift_right_unsigned(code, 16))


def java_murmur(code):
    mixed = java_mix(code)
    if mixed >= 0:
        return mixed
    if mixed != INT_MIN:
        return -mixed
    return 0


def java_string_hash(text):
    code = 0
    for character in text:
        point = ord(character)
        if point < 0x10000:
            code = int32(31 * code + point)
        else:
            code = int32(31 * code + 0xD800 + (point - 0x10000) // 0x400)
            code = int32(31 * code + 0xDC00 + (point - 0x10000) % 0x400)
    return code


def unsigned(codes):
    return np.array([code % 2**32 for code in codes], np.uint32)


def signed(hashes):
    assert hashes.dtype == np.uint32
    return hashes.view(np.int32).tolist()
