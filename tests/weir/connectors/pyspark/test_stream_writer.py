"""PySpark's stream writers as sinks: sealed at barriers, committed by number, aborted if left."""

from threading import Event, Thread

import pyarrow as pa
import pytest
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage

from recorded_sources import SCHEMA, Ledger, Written, ledger_rows
from split_reads import patiently
from weir.connectors.pyspark import write_call
from weir.connectors.pyspark.pickle_signatures import InvalidSignature, JobKey
from weir.connectors.pyspark.stream_writer import StreamSink
from weir.core.ids import Millis, OperatorId, SubtaskId
from weir.dataflow.types import schema_of
from weir.errors import JobRejected
from weir.ports.operators import TaskInfo
from weir.ports.user_code_errors import UserCodeFailed
from weir.storage.stores import store_for

KEY = JobKey(b"k" * 32)
SUBTASK = SubtaskId(OperatorId("out"), 0)
OTHER = SubtaskId(OperatorId("out"), 1)


def place(subtask=SUBTASK, epoch=1, attempt=1):
    return TaskInfo(subtask, 2, 16, epoch, attempt, lambda: Millis(0))


def numbers(*values):
    return pa.record_batch({"number": values, "part": [0] * len(values)}, schema_of(SCHEMA))


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def make(tmp_path, ledger):
    """A sink of the ledger, or of another data source."""

    def made(data=None, key=KEY, **options):
        chosen = data or Ledger({"path": str(ledger), **options})
        return StreamSink("ledger", chosen, schema_of(SCHEMA), key, f"file://{tmp_path}/job")

    return made


def sealed(writer, *values):
    """Write these, seal, and make durable: the transaction's name."""
    writer.write(numbers(*values))
    done = writer.seal()
    done.make_durable()
    return done.name


def staged(tmp_path):
    return store_for("file://").list(f"file://{tmp_path}/job/_staging")


class Scripted(DataSource):
    """Its writers do what the test says."""

    def streamWriter(self, schema, overwrite):  # noqa: N802
        del schema
        assert overwrite is False
        return ToldWriter(self.options)


class ToldWriter(DataSourceStreamWriter):
    def __init__(self, methods):
        self._methods = methods

    def write(self, iterator):
        return self._methods["write"](iterator)

    def commit(self, messages, batchId):  # noqa: N803
        self._methods["commit"](messages, batchId)

    def abort(self, messages, batchId):  # noqa: N803
        self._methods["abort"](messages, batchId)


# -- writing


def test_rows_between_two_barriers_go_to_one_call_whose_message_is_committed(make, ledger):
    """D1, R5, C19: the first batch has the number zero, as in PySpark."""
    sink = make()
    writer, committer = sink.open(place()), sink.committer()
    writer.write(numbers(1, 2))
    names = (sealed(writer, 3), sealed(writer, 4))
    committer.commit(1, names[:1])
    assert ledger_rows(ledger, "numbers") == [(0, 1), (0, 2), (0, 3)]
    committer.commit(2, names[1:])
    assert ledger_rows(ledger, "commits") == [(0,), (1,)]


def test_a_barrier_without_rows_makes_no_commit_message(make):
    """R5: a subtask without rows has no message."""
    writer = make().open(place())
    writer.write(numbers())
    assert writer.seal() is None


def test_messages_of_all_subtasks_are_committed_together(make, ledger):
    """R5."""
    sink = make()
    names = tuple(sealed(sink.open(place(s)), s.index) for s in (SUBTASK, OTHER))
    sink.committer().commit(1, names)
    assert ledger_rows(ledger, "numbers") == [(0, 0), (0, 1)]


def test_an_arrow_writer_gets_batches(make):
    """D1."""
    sink = make(arrow="true")
    name = sealed(sink.open(place()), 1, 2, 3)
    assert sink.messages().get(name) == Written([(3,)])


def test_a_writer_may_return_no_message(make):
    """D1: None is passed on as it is."""
    committed = []
    methods = {"write": lambda rows: list(rows) and None, "commit": lambda *c: committed.append(c)}
    sink = make(Scripted(methods))
    sink.committer().commit(1, (sealed(sink.open(place()), 1),))
    assert committed == [([None], 0)]


def test_a_writer_may_leave_rows_unread(make, monkeypatch):
    """D1: and the writer need not take them."""
    monkeypatch.setattr(write_call, "ROOM_ROWS", 2)
    sink = make(Scripted({"write": lambda rows: Written([tuple(next(rows))])}))
    writer = sink.open(place())
    for number in range(100):
        writer.write(numbers(number))
    done = writer.seal()
    done.make_durable()
    assert sink.messages().get(done.name) == Written([(0, 0)])


def test_sealing_does_not_wait_for_the_writer(make):
    """A11: the message is awaited beside the mailbox."""
    gate = Event()

    def slow(rows):
        taken = [tuple(row) for row in rows]
        gate.wait()
        return Written(taken)

    sink = make(Scripted({"write": slow}))
    writer = sink.open(place())
    writer.write(numbers(1))
    done = writer.seal()
    upload = Thread(target=done.make_durable)
    upload.start()
    writer.write(numbers(2))
    gate.set()
    upload.join(20)
    assert sink.messages().get(done.name) == Written([(1, 0)])


def test_a_slow_writer_holds_the_mailbox_back(make, monkeypatch):
    """A11: what waits between the threads is bounded."""
    monkeypatch.setattr(write_call, "ROOM_ROWS", 2)
    gate, passed = Event(), []

    def slow(rows):
        gate.wait()
        return Written([tuple(row) for row in rows])

    sink = make(Scripted({"write": slow}))
    writer = sink.open(place())

    def mailbox():
        for number in range(4):
            writer.write(numbers(number))
            passed.append(number)

    thread = Thread(target=mailbox)
    thread.start()
    patiently(lambda: len(passed) == 2)
    gate.set()
    thread.join(20)
    assert passed == [0, 1, 2, 3]


def test_a_closed_writer_sees_its_rows_fail(make):
    """R5: as when PySpark kills its task; nothing is staged."""
    ended = []

    def until_the_end(rows):
        try:
            return Written([tuple(row) for row in rows])
        except BaseException as problem:
            ended.append(type(problem).__name__)
            raise

    writer = make(Scripted({"write": until_the_end})).open(place())
    writer.write(numbers(1))
    writer.close()
    patiently(lambda: ended == ["Abandoned"])


# -- failures


def test_a_writer_that_raises_names_the_sink_and_shows_the_first_row(make):
    """U3."""
    writer = make(poison="3").open(place())
    writer.write(numbers(1, 2, 3))
    done = writer.seal()
    shown = r"data source ledger: write\(\) failed at rows that begin with .*'number': 1"
    with pytest.raises(UserCodeFailed, match=shown):
        done.make_durable()
    with pytest.raises(UserCodeFailed, match="this row is poisoned"):
        writer.write(numbers(4))


def test_a_writer_that_raises_early_fails_the_rows_that_follow(make):
    """U3: the subtask fails, and does not wait for a writer that is gone."""
    writer = make(poison="1").open(place())

    def fails():
        try:
            writer.write(numbers(1))
        except UserCodeFailed:
            return True
        return False

    patiently(fails)


def test_what_write_returns_must_be_a_message(make):
    """D1, U3: as in PySpark."""
    writer = make(Scripted({"write": lambda rows: len(list(rows))})).open(place())
    writer.write(numbers(1))
    with pytest.raises(UserCodeFailed, match="returned a int, no WriterCommitMessage"):
        writer.seal().make_durable()


def test_a_data_source_without_a_stream_writer_is_refused(make):
    """D1, U3."""
    with pytest.raises(JobRejected, match="cannot be written to as a stream"):
        make(DataSource({})).writer()


# -- committing


def test_a_commit_that_is_known_is_not_repeated(make, ledger, tmp_path):
    """R5: the same number again is a no-op, for the next driver too."""
    sink = make(idempotent="false")
    name = sealed(sink.open(place()), 1)
    sink.committer().commit(1, (name,))
    sink.committer().commit(1, (name,))
    assert ledger_rows(ledger, "commits") == [(0,)]
    assert staged(tmp_path) == ()


def test_a_commit_in_doubt_is_repeated_under_its_number(make, ledger):
    """R5: a driver that died before it could write the commit down."""
    sink = make()
    name = sealed(sink.open(place()), 1)
    sink.writer().commit([sink.messages().get(name)], 0)
    sink.committer().commit(1, (name,))
    assert ledger_rows(ledger, "commits") == [(0,), (0,)]
    assert ledger_rows(ledger, "numbers") == [(0, 1)]


def test_a_commit_that_failed_can_be_tried_again(make):
    """R5: its messages are still there."""
    tries = []

    def commit(messages, batch):
        tries.append((len(messages), batch))
        if len(tries) == 1:
            raise OSError("the line is dead")

    sink = make(Scripted({"write": lambda rows: Written([*map(tuple, rows)]), "commit": commit}))
    name, committer = sealed(sink.open(place()), 1), sink.committer()
    with pytest.raises(UserCodeFailed, match=r"commit\(\) failed at batch 0: .*the line is dead"):
        committer.commit(1, (name,))
    committer.commit(1, (name,))
    assert tries == [(1, 0), (1, 0)]


def test_a_gap_in_the_numbers_is_closed_with_an_empty_commit(make, ledger):
    """C19: a writer sees every number."""
    make().committer().commit(1, ())
    assert ledger_rows(ledger, "commits") == [(0,)]
    assert ledger_rows(ledger, "numbers") == []


def test_a_savepoint_may_hold_a_transaction_that_was_committed_since(make, ledger):
    """R5: it counts once, whatever number it comes with."""
    sink = make()
    writer, committer = sink.open(place()), sink.committer()
    name = sealed(writer, 1)
    committer.commit(1, (name,))
    committer.commit(2, (name, sealed(writer, 2)))
    assert ledger_rows(ledger, "numbers") == [(0, 1), (1, 2)]


def test_a_message_that_is_gone_is_named(make):
    """R5, U3: nothing is committed without it."""
    sink = make()
    name = sealed(sink.open(place()), 1)
    sink.messages().discard((name,))
    with pytest.raises(JobRejected, match=f"{name} is not there"):
        sink.committer().commit(1, (name,))


def test_a_message_that_another_key_has_signed_is_not_unpickled(make):
    """X2."""
    name = sealed(make(key=JobKey(b"o" * 32)).open(place()), 1)
    with pytest.raises(InvalidSignature, match="commit message"):
        make().committer().commit(1, (name,))


def test_a_message_counts_for_its_own_transaction_only(make, tmp_path):
    """X2: one message cannot replace another."""
    sink = make()
    writer = sink.open(place())
    first, second = sealed(writer, 1), sealed(writer, 2)
    directory = tmp_path / "job" / "_staging"
    (directory / second).write_bytes((directory / first).read_bytes())
    with pytest.raises(InvalidSignature):
        sink.committer().commit(1, (second,))


# -- what dead attempts left


def test_what_dead_attempts_left_is_aborted_with_its_messages(make, ledger, tmp_path):
    """R5: committed or aborted, never left dangling."""
    sink = make()
    sink.committer().commit(1, (sealed(sink.open(place()), 1),))
    kept = sealed(sink.open(place()), 2)
    sealed(sink.open(place(attempt=2)), 3)
    mine = sealed(sink.open(place(attempt=3)), 4)
    others = sealed(sink.open(place(OTHER, attempt=2)), 5)
    sink.committer().resolve((SUBTASK,), (1, 3), frozenset([kept]))
    assert ledger_rows(ledger, "aborts") == [(1, 1)]
    assert {url.rpartition("/")[2] for url in staged(tmp_path)} == {kept, mine, others}


def test_everything_of_an_older_epoch_is_aborted(make, ledger):
    """R5: some may be beyond the width that the job has now."""
    sink = make()
    sealed(sink.open(place(OTHER)), 1)
    sink.committer().resolve((SUBTASK,), (2, 1), frozenset())
    assert ledger_rows(ledger, "aborts") == [(0, 1)]


def test_resolving_without_open_transactions_aborts_nothing(make, ledger):
    """R5."""
    make().committer().resolve((SUBTASK,), (1, 2), frozenset())
    assert ledger_rows(ledger, "aborts") == []


def test_a_message_is_any_object_that_can_be_pickled(make):
    """D1."""

    class Local(WriterCommitMessage):
        def __init__(self, rows):
            self.rows = rows

    sink = make(Scripted({"write": lambda rows: Local(sum(row.number for row in rows))}))
    assert sink.messages().get(sealed(sink.open(place()), 1, 2)).rows == 3


def failing(rows):
    for row in rows:
        if row.number == 9:
            raise ValueError("no nines")
    return Written([])


def test_a_write_that_fails_is_aborted(make, tmp_path):
    """R5, D1: as in PySpark with None for its message, and the number of the next commit."""
    aborts = []
    methods = {"write": failing, "commit": lambda *_: None, "abort": lambda *a: aborts.append(a)}
    sink = make(Scripted(methods))
    writer = sink.open(place())
    sink.committer().commit(1, (sealed(writer, 1),))
    with pytest.raises(UserCodeFailed, match="write"):
        sealed(writer, 9)
    sink.committer().resolve((SUBTASK,), (1, 2), frozenset())
    assert aborts == [([None], 1)]
    assert not staged(tmp_path)
