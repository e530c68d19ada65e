"""A directory shows every committed row exactly once, whatever crashes in between."""

import gc
import pickle
from contextlib import suppress
from dataclasses import replace
from threading import Barrier, Lock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weir.connectors import file_sink
from weir.connectors import staging as stagings
from weir.connectors.commit_records import CommitRecords
from weir.connectors.encodings import Encoding
from weir.connectors.file_sink import (
    FileCommitter,
    FileSink,
    committed_files,
    publish,
    read_committed,
)
from weir.connectors.staging import Staging, StagingWriter
from weir.core.ids import Millis, OperatorId, SubtaskId
from weir.errors import Fenced, JobRejected
from weir.ports.operators import TaskInfo
from weir.storage.memory_store import MemoryStore

SINK = OperatorId("my sink/äö-1")
MUTATIONS = ("write", "copy", "create_exclusive", "delete")


class Crash(Exception):
    """The process ends here."""


class CrashingStore:
    """A store whose process dies before its n-th change, or right after it."""

    def __init__(self, store, changes, *, after):
        self._store = store
        self._left = changes
        self._after = after
        self._lock = Lock()

    def __getattr__(self, name):
        operation = getattr(self._store, name)
        return self._counted(operation) if name in MUTATIONS else operation

    def _counted(self, operation):
        def change(*arguments):
            with self._lock:
                self._left -= 1
                if self._left < 0 or (self._left == 0 and not self._after):
                    raise Crash
                result = operation(*arguments)
                if self._left == 0:
                    raise Crash
                return result

        return change


class FlakyStore:
    """A store whose first write fails."""

    def __init__(self, store):
        self._store = store
        self._fails = True

    def __getattr__(self, name):
        return getattr(self._store, name)

    def write(self, *arguments):
        fails, self._fails = self._fails, False
        if fails:
            raise Crash
        self._store.write(*arguments)


class MeetingStore:
    """A store that copies no staged file before so many copies have been asked for."""

    def __init__(self, store, readers):
        self._store = store
        self._meeting = Barrier(readers, timeout=30)

    def __getattr__(self, name):
        return getattr(self._store, name)

    def copy(self, source, target):
        self._meeting.wait()
        self._store.copy(source, target)


class WatchedStore:
    """A store that counts what it is asked."""

    def __init__(self, store):
        self._store = store
        self.asked = []

    def __getattr__(self, name):
        operation = getattr(self._store, name)

        def ask(*arguments):
            self.asked.append(name)
            return operation(*arguments)

        return ask


def a_place(index=0, epoch=1, attempt=1):
    return TaskInfo(SubtaskId(SINK, index), 2, 128, epoch, attempt, lambda: Millis(0))


def rows(first, stop):
    return pa.record_batch({"id": pa.array(range(first, stop), pa.int64())})


def staged(sink, batch, place=None):
    """One transaction that is durable and waits for its commit."""
    return durable(sink.open(place or a_place()), batch)


def staged_in(staging, index):
    batch = rows(10 * index, 10 * index + 10)
    return durable(StagingWriter(staging, a_place(index=index), "token"), batch)


def in_memory(sink, count):
    """Files that wait for their commit where nothing can be renamed."""
    staging = Staging(MemoryStore(), "memory://out", sink.encoding)
    return staging, tuple(staged_in(staging, index) for index in range(count))


def durable(writer, batch):
    writer.write(batch)
    sealed = writer.seal()
    sealed.make_durable()
    return sealed.name


def visible(directory):
    """What Spark would take for the table's files."""
    return sorted(path.name for path in directory.iterdir() if path.name[0] not in "_.")


def ids(url):
    table = read_committed(url)
    return sorted(table.column("id").to_pylist()) if table.num_columns else []


@pytest.fixture(params=[Encoding.PARQUET, Encoding.JSON])
def sink(request, tmp_path):
    return FileSink(f"file://{tmp_path}", request.param)


def test_rows_are_invisible_before_their_commit(sink, tmp_path):
    """R5."""
    name = staged(sink, rows(0, 10))
    assert visible(tmp_path) == []
    assert committed_files(sink.url) == []

    sink.committer().commit(1, (name,))

    assert ids(sink.url) == list(range(10))
    assert committed_files(sink.url) == [f"file://{tmp_path}/{file}" for file in visible(tmp_path)]


def test_a_transaction_holds_the_rows_between_two_seals(sink):
    writer = sink.open(a_place())
    writer.write(rows(0, 3))
    writer.write(rows(3, 5))
    first = writer.seal()
    writer.write(rows(5, 9))
    second = writer.seal()
    for sealed in (second, first):
        sealed.make_durable()

    sink.committer().commit(1, (first.name,))
    assert ids(sink.url) == [0, 1, 2, 3, 4]

    sink.committer().commit(2, (second.name,))
    assert ids(sink.url) == list(range(9))


def test_without_rows_there_is_no_transaction(sink):
    writer = sink.open(a_place())
    writer.write(rows(0, 0))

    assert writer.seal() is None


def test_a_commit_that_comes_twice_is_one(sink, tmp_path):
    """R5, C19."""
    name = staged(sink, rows(0, 10))
    sink.committer().commit(1, (name,))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}

    sink.committer().commit(1, (name,))

    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def two_staged(sink):
    return (staged(sink, rows(0, 10)), staged(sink, rows(10, 20), a_place(index=1)))


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_a_commit_that_died_on_the_way_is_finished_by_the_next(sink, tmp_path, moved):
    """R1, R5: the driver may die behind any file that it moved."""
    names = two_staged(sink)
    for name in names[:moved]:
        publish(sink.staging(), name)
    assert ids(sink.url) == []

    sink.committer().commit(1, names)

    assert ids(sink.url) == list(range(20))
    assert visible(tmp_path) == sorted(f"part-{name}.{sink.encoding}" for name in names)
    assert sink.staging().names() == []


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("changes", range(1, 7))
def test_where_nothing_can_be_renamed_the_copies_end_in_the_same_objects(sink, changes, after):
    """R1, R5: the driver may die before or behind any change that it makes."""
    staging, names = in_memory(sink, 2)
    store = CrashingStore(staging.store, changes, after=after)
    with suppress(Crash):
        FileCommitter(replace(staging, store=store), CommitRecords(store, "memory://out")).commit(
            1, names
        )

    records = CommitRecords(staging.store, "memory://out")
    FileCommitter(staging, records).commit(1, names)

    assert staging.store.list("memory://out") == (
        "memory://out/_commits/00000001",
        *sorted(f"memory://out/part-{name}.{sink.encoding}" for name in names),
    )
    assert [record.names for record in records.all()] == [names]


def commit_through(staging, store, names):
    committer = FileCommitter(replace(staging, store=store), CommitRecords(store, "memory://out"))
    committer.commit(1, names)
    (record,) = CommitRecords(staging.store, "memory://out").all()
    return record


def test_the_files_of_a_commit_are_moved_side_by_side(sink):
    """R5: a commit of many files takes no longer than one of few, and keeps their order."""
    staging, names = in_memory(sink, file_sink.SIDE_BY_SIDE)

    record = commit_through(staging, MeetingStore(staging.store, len(names)), names)

    assert record.names == names
    assert record.files == tuple(f"part-{name}.{sink.encoding}" for name in names)


def test_a_commit_asks_for_no_more_than_it_needs(sink):
    """R5, R7: the store copies each file itself, so none passes through the driver's memory."""
    staging, names = in_memory(sink, 3)
    store = WatchedStore(staging.store)

    commit_through(staging, store, names)

    assert sorted(store.asked[1:-1]) == sorted(["copy", "delete"] * 3)
    assert (store.asked[0], store.asked[-1]) == ("exists", "create_exclusive")


def test_a_commit_of_which_one_file_is_missing_is_no_commit(sink):
    """C18 R5: the others may be moved, but nothing says that they count."""
    staging, names = in_memory(sink, 3)
    staging.discard(names[1:2])
    records = CommitRecords(staging.store, "memory://out")

    with pytest.raises(JobRejected, match="is to be committed and is not there"):
        FileCommitter(staging, records).commit(1, names)

    assert records.all() == []


def test_a_savepoint_may_commit_under_another_number_what_is_committed_already(sink):
    """C15: the job went on after the savepoint, then the user went back to it."""
    name = staged(sink, rows(0, 10))
    sink.committer().commit(1, (name,))

    sink.committer().commit(5, (name,))

    assert ids(sink.url) == list(range(10))


def test_an_empty_commit_closes_a_gap_and_replaces_nothing(sink):
    """C19."""
    name = staged(sink, rows(0, 10))
    sink.committer().commit(1, (name,))

    sink.committer().commit(1, ())
    sink.committer().commit(2, ())

    assert ids(sink.url) == list(range(10))


def test_a_zombie_that_commits_a_number_of_a_newer_driver_is_fenced(sink):
    """C17."""
    old = staged(sink, rows(0, 10), a_place(epoch=1))
    new = staged(sink, rows(10, 20), a_place(epoch=2))
    sink.committer().commit(1, (new,))
    sink.committer().commit(2, ())

    for number in (1, 2):
        with pytest.raises(Fenced):
            sink.committer().commit(number, (old,))

    assert ids(sink.url) == list(range(10, 20))


def test_a_directory_of_another_job_is_refused(sink):
    """U3."""
    sink.committer().commit(1, (staged(sink, rows(0, 10)),))
    other = FileSink(sink.url, sink.encoding)

    with pytest.raises(JobRejected, match="holds commit 1 of another job"):
        other.committer().commit(1, (staged(other, rows(0, 10)),))


def test_rows_that_somebody_deleted_before_the_commit_are_missed(sink):
    """C18: never assumed."""
    name = staged(sink, rows(0, 10))
    sink.staging().discard([name])

    with pytest.raises(JobRejected, match="is to be committed and is not there"):
        sink.committer().commit(1, (name,))


def test_what_a_dead_attempt_left_is_deleted_except_what_will_be_committed(sink):
    """R5: committed or aborted, never left dangling."""
    keep = staged(sink, rows(0, 1), a_place(attempt=1))
    staged(sink, rows(1, 2), a_place(attempt=2))
    running = staged(sink, rows(2, 3), a_place(index=1, attempt=2))
    own = staged(sink, rows(3, 4), a_place(attempt=3))

    sink.committer().resolve((SubtaskId(SINK, 0),), (1, 3), frozenset([keep]))

    assert [str(name) for name in sink.staging().names()] == sorted([keep, own, running])


def test_a_new_epoch_deletes_what_a_wider_job_left(sink):
    """R5."""
    staged(sink, rows(0, 1), a_place(index=7, epoch=1, attempt=9))

    sink.committer().resolve((SubtaskId(SINK, 0),), (2, 1), frozenset())

    assert sink.staging().names() == []


def test_the_leftovers_of_another_sink_stay(sink):
    name = staged(sink, rows(0, 1))

    sink.committer().resolve((SubtaskId(OperatorId("other"), 0),), (2, 1), frozenset())

    assert [str(left) for left in sink.staging().names()] == [name]


def test_an_upload_that_failed_can_be_tried_again(sink):
    """C9, C18: a declined checkpoint does not abort the transaction; the next one takes it."""
    staging = sink.staging()
    flaky = replace(staging, store=FlakyStore(staging.store))
    writer = StagingWriter(flaky, a_place(), sink.token)
    writer.write(rows(0, 10))
    sealed = writer.seal()
    with pytest.raises(Crash):
        sealed.make_durable()

    for _ in range(2):
        sealed.make_durable()

    sink.committer().commit(1, (sealed.name,))
    assert ids(sink.url) == list(range(10))


def test_a_closed_writer_leaves_what_is_sealed(sink):
    writer = sink.open(a_place())
    writer.write(rows(0, 10))
    sealed = writer.seal()
    writer.write(rows(10, 20))

    writer.close()
    sealed.make_durable()

    assert [str(name) for name in sink.staging().names()] == [sealed.name]


def test_many_rows_become_row_groups_not_memory(tmp_path, monkeypatch):
    """R7."""
    monkeypatch.setattr(stagings, "PIECE_BYTES", 8_000)
    sink = FileSink(f"file://{tmp_path}", Encoding.PARQUET)
    writer = sink.open(a_place())
    for first in range(0, 5_000, 100):
        writer.write(rows(first, first + 100))
    sealed = writer.seal()
    sealed.make_durable()
    sink.committer().commit(1, (sealed.name,))

    (file,) = committed_files(sink.url)

    assert pq.ParquetFile(file.removeprefix("file://")).num_row_groups == 5
    assert ids(sink.url) == list(range(5_000))


def test_what_never_became_durable_ends_quietly(sink, monkeypatch):
    """R1: the subtask is gone in the middle of a file."""
    monkeypatch.setattr(stagings, "PIECE_BYTES", 8)
    writer = sink.open(a_place())
    writer.write(rows(0, 10))
    writer.seal()
    writer.write(rows(10, 20))

    writer.close()
    del writer
    gc.collect()

    assert sink.staging().names() == []


def test_a_sink_travels_by_pickle(sink):
    assert pickle.loads(pickle.dumps(sink)) == sink  # noqa: S301
