"""The description of a file of keyed state, for readers that do not restore it."""

import numpy as np
import pyarrow as pa
import pytest

from weir.core.snapshots import KeyGroupRange
from weir.errors import JobRejected
from weir.state.snapshot_files import write_keyed, write_list
from weir.state.state_file_reader import header_of, rows_of

ALL = KeyGroupRange(0, 7)


def a_file(rows):
    """Words and their totals; a word's group is its length."""
    table = pa.table({"word": [word for word, _ in rows], "sum(n)": [n for _, n in rows]})
    groups = np.array([len(word or "") for word, _ in rows], np.int32)
    return write_keyed("aggregates", table, groups, ["word"], 8)


def shown(layers, groups=ALL):
    batches = rows_of(layers, groups)
    return {(r["word"], r["sum(n)"]) for batch in batches for r in batch.to_pylist()}


def test_a_file_says_which_state_it_holds_and_how_many_rows():
    """S9: name, kind, keys, schema and rows, without an operator."""
    header = header_of(a_file([("a", 1), ("b", 2), ("ccc", 3)]), KeyGroupRange(0, 2))

    assert (header.name, header.kind, header.key_columns) == ("aggregates", "aggregates", ("word",))
    assert header.schema.names == ["key_group", "word", "sum(n)"]
    assert header.rows == 2


def test_only_the_rows_of_the_groups_that_are_meant_are_shown():
    """S11: after a rescale a file may hold more than its handle means."""
    assert shown([a_file([("a", 1), ("ccc", 3)])], KeyGroupRange(2, 7)) == {("ccc", 3)}


def test_a_newer_layer_hides_what_older_ones_say_of_its_keys():
    """S4: layers are laid over each other, null keys too."""
    layers = [a_file([("a", 1), ("b", 2), (None, 3)]), a_file([("b", 20)]), a_file([(None, 30)])]

    assert shown(layers) == {("a", 1), ("b", 20), (None, 30)}


@pytest.mark.parametrize("data", [pa.py_buffer(b"no arrow"), write_list([b"x"])])
def test_a_file_that_holds_no_keyed_state_is_refused(data):
    """U3: with a remedy."""
    with pytest.raises(JobRejected, match="Remedy"):
        header_of(data, ALL)
