"""What a barrier overtook comes back as it was, or as much of it as a rescaled heir is meant."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_connectors import numbers_of, rows
from weir.core.key_groups import range_of
from weir.slot.in_flight import read_in_flight, write_in_flight

GROUPS = 16
BATCHES = st.lists(st.lists(st.integers(0, 999), min_size=1, max_size=8), min_size=1, max_size=6)


@given(BATCHES)
def test_batches_come_back_whole_and_in_order(lists):
    """A4, A10."""
    batches = [rows(*numbers) for numbers in lists]
    read = read_in_flight(write_in_flight(batches), None, (), GROUPS)
    assert all(one.equals(other) for one, other in zip(read, batches, strict=True))


@given(BATCHES, st.integers(1, 5))
def test_every_row_has_exactly_one_heir_at_any_parallelism(lists, width):
    """A10: hashed rows go by key group, and keep their order."""
    file = write_in_flight([rows(*numbers) for numbers in lists])
    shares = [
        numbers_of(read_in_flight(file, range_of(index, width, GROUPS), ("n",), GROUPS))
        for index in range(width)
    ]
    everything = [number for numbers in lists for number in numbers]
    assert sorted(n for share in shares for n in share) == sorted(everything)
    for share in shares:
        assert share == [number for number in everything if number in set(share)]


def test_a_batch_of_which_nothing_is_meant_does_not_come_back():
    """No batch is ever empty."""
    file = write_in_flight([rows(1), rows(1)])
    shares = [read_in_flight(file, range_of(i, 2, GROUPS), ("n",), GROUPS) for i in range(2)]
    assert sorted(len(share) for share in shares) == [0, 2]


def test_a_piece_of_a_batch_is_written_as_the_piece_it_is():
    """A11: what is left of a cut batch is in-flight state, and not what was processed of it."""
    whole = rows(*range(10_000))
    file = write_in_flight([whole.slice(9_990)])
    assert file.size < 2_000
    (read,) = read_in_flight(file, None, (), GROUPS)
    assert numbers_of([read]) == list(range(9_990, 10_000))


def test_only_batches_are_in_flight():
    """A4: markers are not part of the data."""
    with pytest.raises(AssertionError, match="only batches"):
        write_in_flight([rows(1), "a marker"])


def test_the_file_is_an_arrow_stream_that_any_tool_reads():
    """S9."""
    with pa.ipc.open_stream(write_in_flight([rows(1, 2)])) as reader:
        assert reader.read_all().to_pydict() == {"n": [1, 2]}
