"""What was frozen stays as it was while the arrays go on changing."""

from concurrent.futures import CancelledError
from threading import Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.state.memory.copy_on_write import CHUNK, CopyOnWrite

ROWS = 5 * CHUNK


def arrays_of(size):
    columns = CopyOnWrite([np.int64(0), np.float64(1.5)])
    columns.reserve(size)
    return columns


def write(columns, row_numbers, value):
    row_numbers = np.asarray(row_numbers, np.int64)
    columns.before_write(row_numbers)
    for array in columns.arrays:
        array[row_numbers] = value


def test_fresh_rows_begin_with_their_columns_value():
    whole, real = arrays_of(10_000).arrays

    assert (whole == 0).all()
    assert (real == 1.5).all()
    assert len(whole) == len(real) >= 10_000


def test_a_frozen_version_does_not_see_later_writes():
    """S3: copy-on-write."""
    columns = arrays_of(ROWS)
    write(columns, range(ROWS), 1)
    frozen = columns.freeze(ROWS)

    write(columns, [3, ROWS - 1], 2)

    assert [array.tolist() for array in frozen.read()] == [[1] * ROWS, [1.0] * ROWS]
    assert columns.arrays[0][3] == 2


steps = st.lists(
    st.tuples(
        st.sampled_from(["write", "freeze", "read", "read some", "release", "grow"]),
        st.integers(0, 99),
    ),
    max_size=40,
)


@given(steps)
def test_every_frozen_version_is_the_moment_it_was_taken(history):
    """S3: whatever is written, grown, read or released in between, with any number alive."""
    columns, alive, size = arrays_of(ROWS), [], ROWS
    for count, (step, number) in enumerate(history):
        if step == "write":
            write(columns, [number % size, number * 7 % size], count)
        elif step == "freeze":
            alive.append((columns.freeze(size), columns.arrays[0][:size].copy()))
        elif step == "grow":
            size += 1000
            columns.reserve(size)
        elif alive:
            check_version(*alive.pop(number % len(alive)), step, number)
    for frozen, expected in alive:
        np.testing.assert_array_equal(frozen.read()[0], expected)


def check_version(frozen, expected, step, number):
    if step == "read":
        np.testing.assert_array_equal(frozen.read()[0], expected)
    elif step == "read some":
        wanted = np.arange(number % 3, len(expected), 1 + number % 20)
        np.testing.assert_array_equal(frozen.read_rows(wanted)[0], expected[wanted])
    frozen.release()


def test_a_reader_beside_the_writer_sees_one_moment():
    """S3: processing goes on while the old version is written."""
    row_numbers = np.arange(400_000)
    columns = arrays_of(len(row_numbers))
    rng = np.random.default_rng(3)
    for number in range(1, 6):
        write(columns, row_numbers, number)
        frozen, found = columns.freeze(len(row_numbers)), []
        reader = Thread(target=lambda f=frozen, into=found: into.extend(f.read()))
        reader.start()
        while reader.is_alive():
            write(columns, rng.integers(0, len(row_numbers), 5_000), -1)
        reader.join()

        assert all((array == number).all() for array in found)
        assert len(found) == 2


def test_a_reader_of_some_rows_beside_the_writer_sees_one_moment():
    """S3 S4: what changed is read while it changes again."""
    row_numbers = np.arange(400_000)
    columns = arrays_of(len(row_numbers))
    rng = np.random.default_rng(4)
    for number in range(1, 6):
        write(columns, row_numbers, number)
        frozen, found = columns.freeze(len(row_numbers)), []
        wanted = row_numbers[rng.random(len(row_numbers)) < number / 6]
        write(columns, rng.integers(0, len(row_numbers), 5_000), -1)
        reader = Thread(target=lambda f=frozen, w=wanted, into=found: into.extend(f.read_rows(w)))
        reader.start()
        while reader.is_alive():
            write(columns, rng.integers(0, len(row_numbers), 5_000), -1)
        reader.join()

        assert [len(array) for array in found] == [len(wanted)] * 2
        assert all((array == number).all() for array in found)


def test_no_rows_can_be_asked_for():
    """S4: nothing has changed."""
    columns = arrays_of(ROWS)
    frozen = columns.freeze(ROWS)
    write(columns, range(ROWS), 1)

    assert [len(array) for array in frozen.read_rows(np.empty(0, np.int64))] == [0, 0]


def test_a_version_that_was_read_or_released_is_kept_for_no_longer():
    """S3: old versions are freed."""
    columns = arrays_of(ROWS)
    read, released = columns.freeze(ROWS), columns.freeze(ROWS)
    read.read()
    released.release()

    write(columns, range(ROWS), 9)

    with pytest.raises(CancelledError):
        released.read()
    with pytest.raises(AssertionError, match="once"):
        read.read()
