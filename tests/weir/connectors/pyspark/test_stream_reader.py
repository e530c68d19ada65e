"""PySpark's stream readers as sources: looked at in the driver, read in slots, from any row."""

import pickle
from threading import Event

import pyarrow as pa
import pytest
from pyspark.sql import Row
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from recorded_sources import SCHEMA, Counter, notes
from split_reads import next_batch, patiently, rest_of
from weir.connectors.pyspark import fetch
from weir.connectors.pyspark.partitions import round_of
from weir.connectors.pyspark.pickle_signatures import InvalidSignature, JobKey
from weir.connectors.pyspark.row_digest import CHUNK_ROWS
from weir.connectors.pyspark.split_reader import ReplayDiffers, WholeReader
from weir.connectors.pyspark.stream_reader import StreamSource
from weir.core.ids import SplitId
from weir.dataflow.types import schema_of
from weir.errors import JobRejected
from weir.ports.sources import CheckpointListener
from weir.ports.user_code_errors import UserCodeFailed

KEY = JobKey(b"k" * 32)
ONE = InputPartition(1)


def counter(**options):
    return StreamSource("counter", Counter(options), schema_of(SCHEMA), KEY)


class Yielding(DataSource):
    """One partition, in which ``items()`` is yielded."""

    def streamReader(self, schema):  # noqa: N802
        del schema
        return YieldingReader(self.options["items"])


class YieldingReader(DataSourceStreamReader):
    def __init__(self, items):
        self._items = items

    def initialOffset(self):  # noqa: N802
        return {"at": 0}

    def latestOffset(self):  # noqa: N802
        return {"at": 1}

    def partitions(self, start, end):
        del start, end
        return [ONE]

    def read(self, partition):
        assert partition.value == ONE.value
        return iter(self._items())


def yielding(items, schema="n long", **more):
    return StreamSource("yielding", Yielding({"items": items}), schema_of(schema), KEY, **more)


def only_split(source):
    return source.discover("").splits[0]


# -- looking around


def test_each_look_goes_on_at_the_offset_that_the_last_one_reached():
    """D1, C4: each partition is a split, named once."""
    source = counter(step="10")
    first = source.discover("")
    second = source.discover(first.seen)
    rows = [rest_of(source.open(split, "")) for split in (*first.splits, *second.splits)]
    assert [row[0] for part in rows for row in part] == list(range(20))
    assert not second.is_final


def test_a_look_without_new_data_finds_nothing_and_remembers_the_offset():
    """C4: the initial offset is asked for once in the life of a job."""
    source = counter(limit="0")
    found = source.discover("")
    assert found.splits == ()
    assert counter(limit="0").discover(found.seen) == found


def test_a_look_in_the_older_form_needs_no_parameters():
    """D1: latestOffset() of Spark 4.0."""
    source = yielding(lambda: [(1,)])
    found = source.discover("")
    assert len(found.splits) == 1
    assert source.discover(found.seen).splits == ()


def test_splits_sort_in_the_order_of_the_stream():
    """C4: what returns to the pool is handed out again in order."""
    source = counter(step="4")
    found, splits = source.discover(""), []
    for _ in range(12):
        splits += found.splits
        found = source.discover(found.seen)
    assert splits == sorted(splits)
    assert len(set(splits)) == len(splits)


def test_a_reader_that_fails_to_look_is_named():
    """U3."""

    class Broken(Counter):
        def streamReader(self, schema):  # noqa: N802
            reader = super().streamReader(schema)
            reader.partitions = lambda start, end: [][end["next"] - start["next"]]
            return reader

    source = StreamSource("broken", Broken({}), schema_of(SCHEMA), KEY)
    with pytest.raises(UserCodeFailed, match=r"data source broken: partitions\(\) .* IndexError"):
        source.discover("")


def test_a_data_source_without_a_stream_reader_is_refused():
    """D1, U3."""
    source = StreamSource("plain", DataSource({}), schema_of(SCHEMA), KEY)
    with pytest.raises(JobRejected, match="plain cannot be read as a stream"):
        source.discover("")


def test_a_source_that_has_looked_travels_to_the_slots():
    """D1: the enumerator stays in the driver."""
    source = counter(step="4")
    split = only_split(source)
    assert rest_of(pickle.loads(pickle.dumps(source)).open(split, "")) == [(0, 0), (1, 0)]  # noqa: S301


# -- signatures


def test_a_split_that_another_key_has_signed_is_not_unpickled():
    """X2."""
    split = only_split(counter())
    other = StreamSource("counter", Counter({}), schema_of(SCHEMA), JobKey(b"o" * 32))
    with pytest.raises(InvalidSignature, match=r"partition of data source counter.*WEIR_SECRET"):
        other.open(split, "")


def test_a_signed_partition_counts_only_where_it_was_found():
    """X2: an old partition cannot replace another."""
    first, second = counter().discover("").splits
    forged = SplitId(".".join([*second.split(".")[:2], first.split(".")[2]]))
    with pytest.raises(InvalidSignature):
        counter().open(forged, "")


def test_the_splits_of_another_source_are_refused_by_name():
    """R6, U3."""
    with pytest.raises(JobRejected, match="no split of a PySpark data source"):
        counter().open(SplitId("file:///data/a.json"), "")


# -- reading


def test_rows_count_by_name_and_tuples_and_lists_by_position():
    """D1: as PySpark has it."""
    items = [Row(b="x", a=1), (2, "y"), [3, "z"]]
    source = yielding(lambda: items, "a long, b string")
    assert rest_of(source.open(only_split(source), "")) == [(1, "x"), (2, "y"), (3, "z")]


def test_nested_values_come_as_pyspark_has_them():
    """D1."""
    items = [(Row(x=1, y="a"), [1, 2], {"k": 1.5})]
    schema = "s struct<x:bigint,y:string>, l array<int>, m map<string,double>"
    source = yielding(lambda: items, schema)
    assert rest_of(source.open(only_split(source), "")) == [
        ({"x": 1, "y": "a"}, [1, 2], [("k", 1.5)])
    ]


def test_a_reader_may_yield_whole_batches():
    """D1: RecordBatches, with the columns in any order."""
    batches = [
        pa.record_batch({"b": [1.0, 2.0], "a": [1, 2]}),
        pa.record_batch({"b": [3.0], "a": [3]}),
    ]
    source = yielding(lambda: batches, "a long, b double")
    reader = source.open(only_split(source), "")
    assert rest_of(reader, rows=2) == [(1, 1.0), (2, 2.0), (3, 3.0)]


@pytest.mark.parametrize(
    ("items", "named"),
    [
        ([(1,), ("one",)], r"row \('one',\)"),
        ([(1, 2)], r"row \(1, 2\)"),
        ([7], "row 7"),
        ([Row(m=1)], r"row Row\(m=1\)"),
        ([pa.record_batch({"m": [1]})], "a batch of"),
        ([pa.record_batch({"n": [1]}), (1,)], r"\(1,\), which is no RecordBatch"),
    ],
)
def test_what_does_not_fit_the_schema_is_shown(items, named):
    """U3: the source and the row are named."""
    source = yielding(lambda: items)
    with pytest.raises(UserCodeFailed, match=f"data source yielding: .* failed at {named}"):
        rest_of(source.open(only_split(source), ""))


def test_a_reader_that_raises_fails_behind_the_rows_that_it_yielded():
    """U3."""

    def items():
        yield (1,)
        raise OSError("the line is dead")

    reader = (source := yielding(items)).open(only_split(source), "")
    assert next_batch(reader).num_rows == 1
    with pytest.raises(UserCodeFailed, match="item 1: OSError: the line is dead"):
        rest_of(reader)


def test_a_reader_that_waits_does_not_make_the_mailbox_wait():
    """A11: blocking readers run on a thread of their own."""
    gate = Event()

    def items():
        yield (1,)
        gate.wait()
        yield (2,)

    reader = (source := yielding(items)).open(only_split(source), "")
    assert next_batch(reader).num_rows == 1
    assert (reader.read(10), reader.is_exhausted) == (None, False)
    assert reader.rest_ms > 0
    gate.set()
    assert rest_of(reader) == [(2,)]


def test_a_reader_is_not_read_far_ahead_and_ends_when_it_is_closed(monkeypatch):
    """A11: what waits between the threads is bounded."""
    monkeypatch.setattr(fetch, "ROOM_ROWS", 5)
    reached, ended = [], Event()

    def items():
        try:
            for number in range(1_000_000):
                reached.append(number)
                yield (number,)
        finally:
            ended.set()

    reader = (source := yielding(items)).open(only_split(source), "")
    patiently(lambda: len(reached) == 6)
    reader.close()
    assert ended.wait(20)
    assert len(reached) == 6


# -- positions


@pytest.mark.parametrize("at", [0, 1, 7, CHUNK_ROWS - 1, CHUNK_ROWS, CHUNK_ROWS + 1, 9000])
def test_a_split_is_read_on_from_any_row(at):
    """R5."""
    source = yielding(lambda: [(number,) for number in range(9000)])
    split = only_split(source)
    reader, taken = source.open(split, ""), 0
    while taken < at:
        taken += next_batch(reader, min(1000, at - taken)).num_rows
    heir = source.open(split, reader.position)
    assert rest_of(heir) == [(number,) for number in range(at, 9000)]
    assert heir.position == "9000:" + heir.position.partition(":")[2]


def test_a_digest_is_of_the_rows_and_not_of_how_they_came():
    """R5: a replay may bring other batches."""
    whole = pa.record_batch({"n": pa.array([1, None, 3, 4]), "s": ["a", "b", None, "dd"]})
    pieces = [whole.slice(0, 1), whole.slice(1, 0), whole.slice(1, 3)]
    positions = set()
    for items in ([whole], pieces, [(1, "a"), (None, "b"), (3, None), (4, "dd")]):
        source = yielding(lambda items=items: items, "n long, s string")
        reader = source.open(only_split(source), "")
        rest_of(reader)
        positions.add(reader.position)
    assert len(positions) == 1


def test_a_position_is_kept_until_the_rows_before_it_have_come_again():
    """R5: a checkpoint in between loses nothing."""
    source = yielding(lambda: [(number,) for number in range(10)])
    split = only_split(source)
    reader = source.open(split, "")
    next_batch(reader, 6)
    heir = source.open(split, reader.position)
    patiently(lambda: heir.rest_ms == 0)
    assert heir.read(2) is None
    assert heir.position == reader.position
    assert rest_of(heir) == [(6,), (7,), (8,), (9,)]


@pytest.mark.parametrize("again", [[0, 1, 5, 3, 4], [0, 1]])
def test_a_replay_with_other_rows_fails_loudly(again):
    """R5: the source is named, and what its author has to do."""
    given = [[0, 1, 2, 3, 4], again]
    source = yielding(lambda: [(number,) for number in given.pop(0)])
    split = only_split(source)
    reader = source.open(split, "")
    next_batch(reader, 3)
    with pytest.raises(ReplayDiffers, match=r"data source yielding: .*splitAtomic"):
        rest_of(source.open(split, reader.position))


def test_an_atomic_split_leaves_in_one_batch_or_not_at_all():
    """R5: it has no position in the middle."""
    gate = Event()

    def items():
        yield from ((number,) for number in range(5000))
        gate.wait()
        yield (5000,)

    source = yielding(items, split_atomic=True)
    reader = source.open(only_split(source), "")
    patiently(lambda: reader.read(10) is None and reader.rest_ms > 0)
    assert (reader.position, reader.is_exhausted) == ("", False)
    gate.set()
    assert next_batch(reader, 10).num_rows == 5001
    assert reader.is_exhausted


def test_an_atomic_split_may_bring_its_rows_in_another_order():
    """R5."""
    given = [[1, 2, 3], [3, 1, 2]]
    source = yielding(lambda: [(number,) for number in given.pop(0)], split_atomic=True)
    split = only_split(source)
    reader = source.open(split, "")
    patiently(lambda: reader.rest_ms == 0)
    heir = source.open(split, reader.position)
    assert rest_of(heir) == [(3,), (1,), (2,)]


def test_a_split_that_was_begun_row_by_row_is_ended_so():
    """R5: the option may be set between two runs of a job."""
    items = [(number,) for number in range(5)]
    source = yielding(lambda: items)
    split = only_split(source)
    reader = source.open(split, "")
    next_batch(reader, 2)
    heir = yielding(lambda: items, split_atomic=True).open(split, reader.position)
    assert rest_of(heir) == [(2,), (3,), (4,)]


def test_an_atomic_split_has_a_bounded_size():
    """R5, U3."""
    rows = fetch.Fetch("big", schema_of("n long"), lambda: ((n,) for n in range(100_000)))
    with pytest.raises(
        JobRejected,
        match=r"big: a partition has more than .*: with splitAtomic a whole partition is held",
    ):
        rest_of(WholeReader("big", rows, limit=100_000))


# -- commits


def test_the_source_hears_up_to_where_every_split_has_been_read(tmp_path):
    """R5: commit follows completion, and never runs ahead of an unread split."""
    log = tmp_path / "log"
    source = counter(step="10", log=str(log))
    first = source.discover("")
    second = source.discover(first.seen)
    assert isinstance(source, CheckpointListener)
    source.completed(first.seen, first.splits)
    assert notes(log) == []
    source.completed(second.seen, (first.splits[1], *second.splits))
    assert notes(log) == []
    source.completed(second.seen, second.splits[1:])
    source.completed(second.seen, second.splits[1:])
    assert notes(log) == [["commit", {"next": 10}]]
    source.completed(second.seen, ())
    assert notes(log)[1:] == [["commit", {"next": 20}]]
    source.stop()
    assert notes(log)[2:] == [["stop"]]


def test_a_checkpoint_before_the_first_look_commits_nothing(tmp_path):
    """R5."""
    source = counter(log=str(tmp_path / "log"))
    source.completed("", ())
    source.completed(counter(limit="0").discover("").seen, ())
    assert notes(tmp_path / "log") == []


def test_the_name_of_a_split_shows_the_discovery_that_found_it():
    """R5."""
    source = counter(step="10")
    second = source.discover(source.discover("").seen)
    assert [round_of(split) for split in second.splits] == [(1, {"next": 10})] * 2
