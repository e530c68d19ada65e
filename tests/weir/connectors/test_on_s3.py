"""Files on a real S3 are written exactly once, and read again from any position."""

import pyarrow as pa
import pytest

from seaweed import seaweed
from weir.connectors.encodings import Encoding
from weir.connectors.file_sink import FileSink, committed_files, read_committed
from weir.connectors.file_source import FileSource
from weir.core.ids import Millis, OperatorId, SubtaskId
from weir.errors import JobRejected
from weir.ports.operators import TaskInfo

PLACE = TaskInfo(SubtaskId(OperatorId("out"), 0), 1, 128, 1, 1, lambda: Millis(0))
ROWS = pa.table({"id": range(5_000), "word": [f"word {n}" for n in range(5_000)]})


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    with seaweed(tmp_path_factory.mktemp("seaweed")) as server:
        yield server


@pytest.fixture(params=[Encoding.PARQUET, Encoding.JSON])
def sink(request, s3):
    return FileSink(f"s3://{s3.bucket}/{request.param}", request.param, s3.options())


def staged(sink, table):
    writer = sink.open(PLACE)
    for batch in table.to_batches(max_chunksize=1_000):
        writer.write(batch)
    sealed = writer.seal()
    sealed.make_durable()
    return sealed.name


def arrived(reader, rows):
    """The next rows, once the file is there."""
    while (batch := reader.read(rows)) is None:
        assert not reader.is_exhausted
    return batch


def drained(source, split, position):
    reader = source.open(split, position)
    batches = [arrived(reader, 700)]
    while not reader.is_exhausted:
        batches.append(arrived(reader, 700))
    return pa.Table.from_batches(batches).combine_chunks()


def test_files_on_s3_are_committed_once_and_read_from_any_position(sink):
    """R5, S7."""
    committer = sink.committer()
    name = staged(sink, ROWS)
    assert committed_files(sink.url, sink.storage) == []
    for _ in range(2):
        committer.commit(1, (name,))
    assert read_committed(sink.url, sink.storage).combine_chunks() == ROWS.combine_chunks()

    source = FileSource(sink.url, sink.encoding, ROWS.schema, storage=sink.storage)
    (split,) = source.discover("").splits
    reader = source.open(split, "")
    read = arrived(reader, 1_234).num_rows

    assert drained(source, split, reader.position) == ROWS.slice(read).combine_chunks()


def test_leftovers_on_s3_are_deleted(sink):
    """R5."""
    keep = staged(sink, ROWS)
    other = FileSink(sink.url, sink.encoding, sink.storage)
    staged(other, ROWS)

    other.committer().resolve((PLACE.subtask,), (1, 2), frozenset([keep]))

    assert [str(name) for name in sink.staging().names()] == [keep]


def test_a_file_that_is_gone_from_s3_is_named(s3):
    """U3."""
    url = f"s3://{s3.bucket}/gone.parquet"
    source = FileSource(url, Encoding.PARQUET, ROWS.schema, storage=s3.options())
    reader = source.open(url, "")

    with pytest.raises(JobRejected, match=r"gone\.parquet was found by the source and is gone"):
        arrived(reader, 1)
