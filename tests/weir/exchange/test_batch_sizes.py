"""A batch is cut until every piece is short enough for a channel, or is one row."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.exchange.batch_sizes import BATCH_BYTES, cut, size_of


def texts(*lengths):
    """Rows of these lengths, in bytes, each with its number."""
    numbers = pa.array(range(len(lengths)), pa.int32())
    return pa.record_batch({"n": numbers, "text": pa.array(["x" * length for length in lengths])})


def numbers_of(pieces):
    return [n for piece in pieces for n in piece.column("n").to_pylist()]


@settings(max_examples=30)
@given(st.lists(st.sampled_from([0, 10, BATCH_BYTES // 3, 2 * BATCH_BYTES]), max_size=12))
def test_pieces_have_every_row_in_order_and_are_too_long_only_where_a_row_is(lengths):
    """R7: whatever the rows are like."""
    pieces = list(cut(texts(*lengths)))

    assert numbers_of(pieces) == list(range(len(lengths)))
    assert all(size_of(piece) <= BATCH_BYTES or piece.num_rows == 1 for piece in pieces)


def test_a_batch_that_is_short_enough_is_left_as_it_is():
    """D3: cutting costs nothing where nothing is cut."""
    batch = texts(1, 2, 3)
    (only,) = cut(batch)

    assert only is batch


def test_a_dictionary_that_is_long_by_itself_does_not_tear_its_batch_into_single_rows():
    """R7: all pieces share it."""
    words = pa.array([f"{number:0200}" for number in range(BATCH_BYTES // 100)])
    batch = pa.record_batch({"word": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), words)})

    assert len(list(cut(batch))) == 1
