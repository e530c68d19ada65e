"""A directory belongs to one sink of one job, whatever else is pointed at it."""

import pyarrow as pa
import pytest

from weir.connectors.directory_owner import OWNER_FILE
from weir.connectors.encodings import Encoding
from weir.connectors.file_sink import FileSink, read_committed
from weir.core.ids import Millis, OperatorId, SubtaskId
from weir.errors import JobRejected
from weir.ports.operators import TaskInfo
from weir.ports.sinks import SinkOwner

SINK = OperatorId("my sink/äö-1")


def a_place(epoch=1):
    return TaskInfo(SubtaskId(SINK, 0), 2, 128, epoch, 1, lambda: Millis(0))


def rows(first, stop):
    return pa.record_batch({"id": pa.array(range(first, stop), pa.int64())})


def staged(sink, batch, place=None):
    """One transaction that is durable and waits for its commit."""
    writer = sink.open(place or a_place())
    writer.write(batch)
    sealed = writer.seal()
    sealed.make_durable()
    return sealed.name


def ids(url):
    return sorted(read_committed(url).column("id").to_pylist())


@pytest.fixture
def sink(tmp_path):
    return FileSink(f"file://{tmp_path}", Encoding.PARQUET)


def an_owner(job="file:///checkpoints/a", sink=SINK, commits=0, *, may_take_over=False):
    return SinkOwner(job, sink, commits, may_take_over)


def committing(sink, owner):
    committer = sink.committer()
    committer.claim(owner)
    return committer


def test_a_job_is_refused_where_another_one_writes_and_deletes_nothing_there(sink):
    """R5: two jobs may have an operator and an epoch in common."""
    name = staged(sink, rows(0, 10))
    first = committing(sink, an_owner())

    with pytest.raises(JobRejected, match=r"belongs to sink .* of job file:///checkpoints/a"):
        committing(sink, an_owner("file:///checkpoints/b"))

    first.commit(1, (name,))
    assert ids(sink.url) == list(range(10))


def test_two_sinks_of_one_job_are_kept_apart_too(sink):
    """R5, U3."""
    committing(sink, an_owner())
    with pytest.raises(JobRejected, match="belongs to sink"):
        committing(sink, an_owner(sink=OperatorId("other")))


def test_a_job_that_starts_without_commits_is_refused_where_commits_are(sink):
    """R5, U3: also where they were made before directories had owners."""
    sink.committer().commit(1, (staged(sink, rows(0, 10)),))
    with pytest.raises(JobRejected, match="holds 1 commits of another job"):
        committing(sink, an_owner())


def test_a_job_that_is_started_again_goes_on_in_its_directory(sink):
    """R1: after a restart, an upgrade or a takeover, with another driver's token."""
    committing(sink, an_owner()).commit(1, (staged(sink, rows(0, 10)),))
    again = FileSink(sink.url, sink.encoding)
    left = staged(sink, rows(20, 30))

    committer = committing(again, an_owner(commits=1))
    committer.resolve((SubtaskId(SINK, 0),), (2, 1), frozenset())
    committer.commit(2, (staged(again, rows(10, 20), a_place(epoch=2)),))

    assert left not in [str(name) for name in again.staging().names()]
    assert ids(sink.url) == list(range(20))


def test_a_job_goes_on_where_commits_were_made_before_directories_had_owners(sink):
    """C15: a directory that an older release wrote."""
    sink.committer().commit(1, (staged(sink, rows(0, 10)),))
    committer = committing(sink, an_owner(commits=1))
    committer.commit(2, (staged(sink, rows(10, 20), a_place(epoch=2)),))
    assert ids(sink.url) == list(range(20))


def test_a_job_that_restores_a_savepoint_of_another_takes_its_directory_over(sink, caplog):
    """C15, C17, R5: the one before is refused from then on, and deletes nothing."""
    before = committing(sink, an_owner())
    before.commit(1, (staged(sink, rows(0, 10)),))

    again = FileSink(sink.url, sink.encoding)
    after = committing(again, an_owner("file:///checkpoints/b", commits=1, may_take_over=True))
    name = staged(again, rows(10, 20))

    assert "belonged to sink my sink/äö-1 of job file:///checkpoints/a" in caplog.text
    with pytest.raises(JobRejected, match=r"belongs to sink .* of job file:///checkpoints/b"):
        before.commit(2, ())
    with pytest.raises(JobRejected, match=r"belongs to sink .* of job file:///checkpoints/b"):
        before.resolve((SubtaskId(SINK, 0),), (9, 1), frozenset())
    with pytest.raises(JobRejected, match=r"belongs to sink .* of job file:///checkpoints/b"):
        committing(sink, an_owner(commits=1))
    after.commit(2, (name,))
    assert ids(sink.url) == list(range(20))


def test_a_directory_that_was_emptied_is_taken_again(sink, tmp_path):
    """R5."""
    committer = committing(sink, an_owner())
    (tmp_path / OWNER_FILE).unlink()
    committer.commit(1, (staged(sink, rows(0, 10)),))
    assert (tmp_path / OWNER_FILE).exists()
