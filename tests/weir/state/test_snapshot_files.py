"""Snapshot files give back the rows of any key groups, and any Arrow tool reads them."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.core.key_groups import range_of
from weir.core.snapshots import KeyGroupRange
from weir.errors import JobRejected
from weir.state import snapshot_files
from weir.state.snapshot_files import (
    FileHeader,
    read_keyed,
    read_list,
    write_keyed,
    write_list,
    write_sorted,
)

MAX_PARALLELISM = 8
EVERY_GROUP = KeyGroupRange(0, MAX_PARALLELISM - 1)


def a_table(rows):
    return pa.table({"user": [f"u{i}" for i in range(rows)], "total": pa.array(range(rows))})


def written(groups, table=None):
    table = a_table(len(groups)) if table is None else table
    return write_keyed("totals", table, np.array(groups, np.int32), ["user"], MAX_PARALLELISM)


some_groups = st.lists(st.integers(0, MAX_PARALLELISM - 1), max_size=40)


def test_the_name_and_the_key_columns_come_back():
    state = read_keyed(written([0, 1]), EVERY_GROUP)

    assert (state.name, state.key_columns) == ("totals", ("user",))
    assert state.table.schema == a_table(2).schema


@given(some_groups, st.integers(0, 7), st.integers(0, 7))
def test_a_range_of_key_groups_gives_exactly_its_rows(groups, one, other):
    """S11: in the order of groups, and within a group in the order of the table."""
    wanted = KeyGroupRange(min(one, other), max(one, other))

    state = read_keyed(written(groups), wanted)

    rows = sorted((g, row) for row, g in enumerate(groups) if g in wanted)
    assert state.table.column("total").to_pylist() == [row for _, row in rows]
    assert state.table.column("user").to_pylist() == [f"u{row}" for _, row in rows]


@given(some_groups, st.integers(1, MAX_PARALLELISM))
def test_the_ranges_of_all_subtasks_share_a_file_out(groups, parallelism):
    """S11: nothing is lost, nothing is doubled."""
    data = written(groups)

    found = [
        row
        for index in range(parallelism)
        for row in read_keyed(data, range_of(index, parallelism, MAX_PARALLELISM))
        .table.column("total")
        .to_pylist()
    ]

    assert sorted(found) == list(range(len(groups)))


def test_a_file_of_several_batches_is_read_through_its_index(monkeypatch):
    """S11: every batch but the last is full, so a row's number determines its batch."""
    monkeypatch.setattr(snapshot_files, "ROWS_PER_BATCH", 4)
    data = written([row % 3 for row in range(31)])
    monkeypatch.undo()

    for group in range(3):
        found = read_keyed(data, KeyGroupRange(group, group)).table.column("total").to_pylist()
        assert found == list(range(group, 31, 3))


@pytest.mark.parametrize("slack", [512, -3_000])
def test_a_file_is_the_same_whether_its_memory_was_reserved_or_grew(monkeypatch, slack):
    """S9: also where too little was reserved."""
    groups = [row % 7 for row in range(3_000)]
    grown = written(groups)
    monkeypatch.setattr(snapshot_files, "RESERVED_FROM_BYTES", 0)
    monkeypatch.setattr(snapshot_files, "_DESCRIPTION_BYTES", slack)

    assert written(groups).equals(grown)


def test_plain_pyarrow_reads_a_file():
    """S9: open columnar files."""
    table = pa.ipc.open_file(written([5, 2, 5])).read_all()

    assert table.to_pydict() == {
        "key_group": [2, 5, 5],
        "user": ["u1", "u0", "u2"],
        "total": [1, 0, 2],
    }
    metadata = table.schema.metadata
    assert metadata[b"weir.state"] == b"totals"
    assert json.loads(metadata[b"weir.key_columns"]) == ["user"]
    assert metadata[b"weir.max_parallelism"] == b"8"
    assert json.loads(metadata[b"weir.index"])["groups"] == [2, 5]


def test_reading_copies_no_values():
    """S11: the state assigned to a subtask is a view of the buffer that was read."""
    data = written([0] * 100)

    column = read_keyed(data, EVERY_GROUP).table.column("total").chunk(0)

    assert data.address <= column.buffers()[1].address < data.address + data.size


def test_the_tables_own_metadata_survives():
    """S12: a schema's history may be written there."""
    table = a_table(1).replace_schema_metadata({b"mine": b"kept"})

    assert read_keyed(written([3], table), EVERY_GROUP).table.schema.metadata == {b"mine": b"kept"}


def test_a_key_column_may_be_called_key_group():
    table = pa.table({"key_group": ["a", "b"]})
    data = write_keyed("s", table, np.array([1, 0], np.int32), ["key_group"], MAX_PARALLELISM)

    assert read_keyed(data, EVERY_GROUP).table.to_pydict() == {"key_group": ["b", "a"]}


def test_the_highest_possible_key_group_is_sorted_last():
    data = write_keyed("s", a_table(2), np.array([32767, 0], np.int32), ["user"], 1 << 15)

    assert read_keyed(data, KeyGroupRange(32767, 32767)).table.column("user").to_pylist() == ["u0"]


def test_what_is_not_an_arrow_file_is_refused():
    """C18: reported, never assumed."""
    with pytest.raises(JobRejected, match="not an Arrow file"):
        read_keyed(pa.py_buffer(b"garbage that is long enough to be looked at"), EVERY_GROUP)


def test_an_arrow_file_of_somebody_else_is_refused():
    with pytest.raises(JobRejected, match=r"weir\.index"):
        read_keyed(write_list([b"a"]), EVERY_GROUP)


@given(st.lists(st.binary()), st.data())
def test_list_state_gives_back_any_range_of_its_items(items, data):
    """S11: operator list state is redistributed item by item."""
    first = data.draw(st.integers(0, len(items)))
    stop = data.draw(st.integers(first, len(items)))

    assert read_list(write_list(items), first, stop) == items[first:stop]


def sorted_batches(rows):
    table = a_table(rows)
    groups = pa.array(np.arange(rows) * MAX_PARALLELISM // rows, pa.int32())
    return table.add_column(0, "group", groups).to_batches()


def write_to_disk(path, batches):
    header = FileHeader("totals", ["user"], MAX_PARALLELISM)
    return write_sorted(path, header, sorted_batches(1)[0].schema, batches)


def test_a_state_that_was_laid_down_on_disk_is_read_and_leaves_no_file(tmp_path):
    """R7, S11: the file goes with the last who reads it."""
    state = read_keyed(write_to_disk(tmp_path / "totals.arrow", sorted_batches(100)), EVERY_GROUP)

    assert state.table.equals(a_table(100))
    assert list(tmp_path.iterdir()) == []


def test_a_state_that_could_not_be_laid_down_leaves_no_file(tmp_path):
    """R7: each attempt on a full disk would make it fuller."""

    def a_full_disk():
        yield from sorted_batches(100)
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_to_disk(tmp_path / "totals.arrow", a_full_disk())

    assert list(tmp_path.iterdir()) == []


def test_a_state_that_is_laid_down_twice_on_a_full_disk_leaves_no_file(tmp_path, monkeypatch):
    """R7: the disk may be full only when the batches go to their last place."""

    def a_full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pa.ipc, "new_file", a_full_disk)

    with pytest.raises(OSError, match="No space left"):
        write_to_disk(tmp_path / "totals.arrow", sorted_batches(100))

    assert list(tmp_path.iterdir()) == []
