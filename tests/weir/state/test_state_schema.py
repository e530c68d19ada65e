"""A state's shape is read from the first bytes of its file."""

import numpy as np
import pyarrow as pa
import pytest

from weir.dataflow.types import schema_of
from weir.errors import JobRejected
from weir.state.snapshot_files import write_keyed
from weir.state.state_schema import BEGINNING, KIND, distinct_schemas, state_schema_of_file


def a_file(rows, groups=128):
    schema = pa.schema(
        [*schema_of("word string"), pa.field("value.n", pa.int64())], metadata={KIND: b"value"}
    )
    words = [str(row) for row in range(rows)]
    table = pa.Table.from_arrays([pa.array(words), pa.array(range(rows))], schema=schema)
    places = np.arange(rows, dtype=np.int32) % groups
    return write_keyed("total", table, places, ["word"], groups).to_pybytes()


def asked(data):
    sizes = []

    def read_start(size):
        sizes.append(size)
        return data[:size]

    return state_schema_of_file(read_start), sizes


def test_a_file_says_what_it_holds():
    """S12, S9."""
    shape, _ = asked(a_file(3))
    assert (shape.name, shape.kind, shape.is_layer) == ("total", "value", False)
    assert [field.name for field in shape.keys] == ["word"]
    assert [field.name for field in shape.fields] == ["value.n"]


def test_its_beginning_is_enough_however_long_the_file_is():
    """S12: a driver looks at state that would not fit into it."""
    data = a_file(50_000)
    assert len(data) > 5 * BEGINNING
    assert asked(data)[1] == [BEGINNING]


def test_a_long_index_is_read_to_its_end():
    """S11: 32,768 key groups have an index of hundreds of kilobytes."""
    shape, sizes = asked(a_file(32_768, 32_768))
    assert shape.name == "total"
    assert len(sizes) == 2
    assert sizes[1] > BEGINNING


@pytest.mark.parametrize("data", [b"", b"ARROW1", b"x" * 100, a_file(3)[:40]])
def test_what_is_no_state_file_is_refused(data):
    """C18, U3."""
    with pytest.raises(JobRejected):
        asked(data)


def test_files_of_one_shape_count_once():
    """S12: a thousand subtasks with one mistake have one mistake."""
    shapes = [asked(a_file(rows))[0] for rows in (1, 2, 3)]
    assert len(distinct_schemas(shapes)) == 1
