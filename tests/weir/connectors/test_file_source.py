"""Files are found once, read from any position to the same rows, and refused if they changed."""

import json
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weir.connectors import file_blocks, file_source
from weir.connectors.encodings import Encoding
from weir.connectors.file_cursor import SplitChanged
from weir.connectors.file_source import FileSource, first_schema
from weir.errors import JobRejected
from weir.ports.sources import Discovery

SCHEMA = pa.schema([("id", pa.int64()), ("word", pa.string())])
ROWS = pa.table({"id": range(1_000), "word": [f"word {n}" for n in range(1_000)]}, schema=SCHEMA)


def write_parquet(path, table=ROWS):
    pq.write_table(table, path, row_group_size=300)


def write_json(path, table=ROWS):
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


WRITERS = {Encoding.PARQUET: write_parquet, Encoding.JSON: write_json}


@pytest.fixture(params=list(WRITERS))
def encoding(request, monkeypatch):
    monkeypatch.setattr(file_blocks, "JSON_BLOCK_BYTES", 10_000)
    monkeypatch.setattr(file_blocks, "DECODED_ROWS", 128)
    return request.param


def a_source(directory, encoding, **settings):
    return FileSource(f"file://{directory}", encoding, SCHEMA, **settings)


def only_split(source):
    (split,) = source.discover("").splits
    return split


def drained(source, split, position="", rows=90):
    reader = source.open(split, position)
    batches = []
    while not reader.is_exhausted:
        batches.append(reader.read(rows))
    return pa.Table.from_batches(batches, source.schema).combine_chunks()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(1, 400), max_size=6))
def test_rows_are_the_same_from_any_position(tmp_path, encoding, cuts):
    """R5: reading again from a position gives the rows behind it."""
    WRITERS[encoding](tmp_path / "a")
    source = a_source(tmp_path, encoding)
    split = only_split(source)
    reader = source.open(split, "")

    read = sum(batch.num_rows for rows in cuts if (batch := reader.read(rows)) is not None)

    assert drained(source, split, reader.position) == ROWS.slice(read).combine_chunks()


def test_the_position_behind_the_last_row_is_the_end(tmp_path, encoding):
    WRITERS[encoding](tmp_path / "a")
    source = a_source(tmp_path, encoding)
    split = only_split(source)
    reader = source.open(split, "")
    while not reader.is_exhausted:
        reader.read(1_000)

    again = source.open(split, reader.position)

    assert again.is_exhausted
    assert again.read(10) is None


def test_each_file_is_found_once_in_the_order_of_names(tmp_path, encoding):
    source = a_source(tmp_path, encoding)
    for name in ("b", "a", "_staged", ".hidden"):
        WRITERS[encoding](tmp_path / name)
    first = source.discover("")
    WRITERS[encoding](tmp_path / "0")

    second = source.discover(first.seen)

    assert first.splits == (f"file://{tmp_path}/a", f"file://{tmp_path}/b")
    assert second.splits == (f"file://{tmp_path}/0",)
    assert source.discover(second.seen).splits == ()


def test_a_file_that_was_deleted_and_put_back_is_not_found_again(tmp_path, encoding):
    source = a_source(tmp_path, encoding)
    WRITERS[encoding](tmp_path / "a")
    seen = source.discover("").seen
    (tmp_path / "a").unlink()
    seen = source.discover(seen).seen

    WRITERS[encoding](tmp_path / "a")

    assert source.discover(seen).splits == ()


def test_a_file_is_its_whole_path(tmp_path, encoding):
    """R5: a job that is given another directory reads files of names that it has seen before."""
    for directory in ("old", "new"):
        (tmp_path / directory).mkdir()
        WRITERS[encoding](tmp_path / directory / "a")
    seen = a_source(tmp_path / "old", encoding).discover("").seen
    moved = a_source(tmp_path / "new", encoding).discover(seen)
    assert moved.splits == (f"file://{tmp_path}/new/a",)
    assert a_source(tmp_path / "new", encoding).discover(moved.seen).splits == ()
    assert a_source(tmp_path / "old", encoding).discover(moved.seen).splits == ()


def test_what_an_older_checkpoint_has_seen_by_name_is_not_found_again(tmp_path, encoding):
    """C15, R5: such checkpoints do not say of which directory the names are."""
    for name in "ab":
        WRITERS[encoding](tmp_path / name)
    found = a_source(tmp_path, encoding).discover('["a"]')
    assert found.splits == (f"file://{tmp_path}/b",)
    assert a_source(tmp_path, encoding).discover(found.seen).splits == ()


def test_subdirectories_are_read_where_that_is_asked_for(tmp_path, encoding):
    """R10: as with Spark's recursiveFileLookup; hidden directories stay hidden."""
    for name in ("b", "a/x/c", "_staging/d", "a/.e/f"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        WRITERS[encoding](tmp_path / name)
    found = a_source(tmp_path, encoding, is_recursive=True).discover("")
    assert found.splits == (f"file://{tmp_path}/a/x/c", f"file://{tmp_path}/b")


def test_subdirectories_are_never_passed_over_in_silence(tmp_path, encoding, caplog):
    """U3: once, with an example and the option."""
    (tmp_path / "a").mkdir()
    WRITERS[encoding](tmp_path / "a" / "c")
    source = a_source(tmp_path, encoding)
    assert source.discover("").splits == ()
    source.discover("")
    (record,) = caplog.records
    assert "1 files in subdirectories, such as a/c" in record.getMessage()
    assert "recursiveFileLookup" in record.getMessage()


def test_a_look_names_a_bounded_number_of_files(tmp_path, encoding, monkeypatch):
    """R10, R7: the next look goes on behind them, and none is lost."""
    monkeypatch.setattr(file_source, "MOST_AT_ONCE", 2)
    for name in "abc":
        WRITERS[encoding](tmp_path / name)
    source = a_source(tmp_path, encoding)
    first = source.discover("")
    second = source.discover(first.seen)
    assert [len(first.splits), len(second.splits)] == [2, 1]
    assert source.discover(second.seen) == Discovery((), second.seen, is_final=False)


def test_a_bounded_source_looks_once(tmp_path, encoding):
    """R6."""
    assert a_source(tmp_path, encoding, bounded=True).discover("").is_final
    assert not a_source(tmp_path, encoding).discover("").is_final


def test_a_directory_without_files_has_no_splits(tmp_path, encoding):
    assert a_source(tmp_path, encoding).discover("").splits == ()
    assert a_source(tmp_path / "later", encoding).discover("").splits == ()


def test_a_single_file_is_a_split(tmp_path, encoding):
    WRITERS[encoding](tmp_path / "a")
    source = a_source(tmp_path / "a", encoding)

    assert drained(source, only_split(source)) == ROWS.combine_chunks()


def test_a_changed_file_is_refused_by_name(tmp_path, encoding):
    """R5: a replay that differs fails loudly."""
    WRITERS[encoding](tmp_path / "a")
    source = a_source(tmp_path, encoding)
    split = only_split(source)
    reader = source.open(split, "")
    reader.read(64)

    changed = ROWS.set_column(1, "word", pa.array([f"WORD {n}" for n in range(1_000)]))
    WRITERS[encoding](tmp_path / "a", changed)

    with pytest.raises(SplitChanged, match=f"{tmp_path}/a has changed"):
        source.open(split, reader.position)


def test_a_file_that_grew_is_refused(tmp_path, encoding):
    """R5."""
    WRITERS[encoding](tmp_path / "a", ROWS.slice(0, 900))
    source = a_source(tmp_path, encoding)
    split = only_split(source)
    reader = source.open(split, "")
    reader.read(64)

    WRITERS[encoding](tmp_path / "a")

    with pytest.raises(SplitChanged):
        source.open(split, reader.position)


def test_a_file_that_is_gone_is_named(tmp_path, encoding):
    """U3."""
    WRITERS[encoding](tmp_path / "a")
    source = a_source(tmp_path, encoding)
    split = only_split(source)
    (tmp_path / "a").unlink()

    with pytest.raises(JobRejected, match=f"{tmp_path}/a was found by the source and is gone"):
        source.open(split, "")


def test_a_damaged_file_is_named(tmp_path, encoding):
    """U3."""
    (tmp_path / "a").write_bytes(b"neither the one\nnor the other\n")
    source = a_source(tmp_path, encoding)

    with pytest.raises(JobRejected, match=f"{tmp_path}/a cannot be read"):
        source.open(only_split(source), "")


def test_a_column_that_a_file_lacks_is_null(tmp_path, encoding):
    WRITERS[encoding](tmp_path / "a", ROWS.select(["id"]))
    source = a_source(tmp_path, encoding)

    assert drained(source, only_split(source)).column("word").null_count == 1_000


def test_a_column_of_another_type_is_refused_by_name(tmp_path):
    """U3."""
    write_parquet(tmp_path / "a", pa.table({"id": ["one"], "word": ["x"]}))
    source = a_source(tmp_path, Encoding.PARQUET)

    with pytest.raises(JobRejected, match="column id is string and cannot be read as int64"):
        source.open(only_split(source), "")


def test_the_schema_is_taken_from_the_first_file(tmp_path, encoding):
    WRITERS[encoding](tmp_path / "a")

    assert first_schema(f"file://{tmp_path}", encoding, {}) == SCHEMA


def test_times_in_json_stay_text_unless_declared(tmp_path):
    (tmp_path / "a").write_text('{"at": "2024-01-01T00:00:00", "in": {"at": ["2024-01-01"]}}\n')

    schema = first_schema(f"file://{tmp_path}", Encoding.JSON, {})

    assert schema == pa.schema(
        [("at", pa.string()), ("in", pa.struct([("at", pa.list_(pa.string()))]))]
    )


def test_blank_lines_are_no_rows(tmp_path):
    (tmp_path / "a").write_text('\n\n{"id": 1}\n\n{"id": 2}')
    (tmp_path / "b").write_text("\n \n")
    source = a_source(tmp_path, Encoding.JSON)
    first, second = source.discover("").splits

    assert drained(source, first).column("id").to_pylist() == [1, 2]
    assert source.open(second, "").is_exhausted


def test_without_a_file_the_schema_must_be_declared(tmp_path, encoding):
    with pytest.raises(JobRejected, match=r"declare it with \.schema"):
        first_schema(f"file://{tmp_path}", encoding, {})


def test_a_remote_file_is_fetched_in_pieces(tmp_path, encoding, monkeypatch):
    """R10: no whole file is held in memory."""
    monkeypatch.setattr(file_source, "FETCH_BYTES", 1_000)
    WRITERS[encoding](tmp_path / "a")
    content, asked = (tmp_path / "a").read_bytes(), []

    class Remote:
        def size(self, _url):
            return len(content)

        def read_range(self, _url, start, stop):
            asked.append(stop - start)
            return content[start:stop]

    source = FileSource("s3://bucket/in", encoding, SCHEMA)
    monkeypatch.setattr(file_source, "store_for", lambda *_: Remote())
    reader = source.open("s3://bucket/in/a", "")
    batches = []
    while not reader.is_exhausted:
        batch = reader.read(90)
        batches += [batch] if batch is not None else []
    assert pa.Table.from_batches(batches).combine_chunks() == ROWS.combine_chunks()
    assert (max(asked), sum(asked)) == (1_000, len(content))


def test_a_source_travels_by_pickle(tmp_path, encoding):
    source = a_source(tmp_path, encoding, bounded=True)

    assert pickle.loads(pickle.dumps(source)) == source  # noqa: S301
