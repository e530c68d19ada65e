"""Spark's rate source: its columns, its options, and the same rows after any failure."""

import datetime as dt

import pytest

from weir.connectors.built_in_formats import built_in
from weir.connectors.rate_source import RateSource
from weir.dataflow.options import Options
from weir.dataflow.types import schema_of
from weir.errors import JobRejected

START_MS = 1_700_000_000_123


class Clock:
    """Goes on when the test says so."""

    def __init__(self):
        self.now = START_MS

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def opened(source, position=""):
    """A reader for each split of a new job."""
    return [source.open(split, position) for split in source.discover("").splits]


def rows_of(*batches):
    rows = [row for batch in batches if batch is not None for row in batch.to_pylist()]
    return sorted((row["value"], row["timestamp"]) for row in rows)


def at(milliseconds):
    return dt.datetime.fromtimestamp((START_MS + milliseconds) / 1_000, dt.UTC)


def test_the_columns_are_sparks():
    """D2."""
    source = built_in().source(Options("rate", {"rowsPerSecond": "7", "numPartitions": "3"}))
    assert source.schema.equals(schema_of("timestamp timestamp, value long"))
    assert (source.rows_per_second, source.partitions) == (7, 3)
    assert source.is_endless


@pytest.mark.parametrize(
    ("option", "value"), [("rowsPerSecond", "0"), ("numPartitions", "-1"), ("rampUpTime", "5s")]
)
def test_options_that_mean_nothing_are_refused_by_name(option, value):
    """U3."""
    with pytest.raises(JobRejected, match=option):
        built_in().source(Options("rate", {option: value}))


def test_rows_come_by_the_clock_and_bear_their_time(clock):
    """D2: value v at start + v / rowsPerSecond, over all splits without a gap."""
    readers = opened(RateSource(rows_per_second=4, partitions=3, clock=clock))
    clock.now += 1_000
    found = rows_of(*(reader.read(100) for reader in readers))
    assert found == [(value, at(250 * value)) for value in range(5)]
    assert [reader.read(100) for reader in readers] == [None, None, None]


def test_a_reader_rests_until_its_next_row_is_due(clock):
    """D2: rowsPerSecond is kept without a loop that asks for rows."""
    (reader,) = opened(RateSource(rows_per_second=3, partitions=1, clock=clock))
    assert len(reader.read(9)) == 1
    assert reader.rest_ms == 334
    clock.now += reader.rest_ms
    assert len(reader.read(9)) == 1


def test_reading_again_from_a_position_gives_the_same_rows(clock):
    """R5: also for a driver that starts later, and with other options for the partitions."""
    source = RateSource(rows_per_second=10, partitions=2, clock=clock)
    found = source.discover("")
    (first, _) = [source.open(split, "") for split in found.splits]
    clock.now += 2_000
    first.read(4)
    position, expected = first.position, first.read(100)

    clock.now += 60_000
    later = RateSource(rows_per_second=10, partitions=5, clock=clock)
    again = later.open(found.splits[0], position).read(expected.num_rows)

    assert again.equals(expected)
    assert later.discover(found.seen).splits == ()


def test_splits_that_an_older_release_saved_are_refused_with_the_remedy(clock):
    """C15, U3."""
    with pytest.raises(JobRejected, match="generator"):
        RateSource(clock=clock).open("0001", "500")


def test_a_job_that_was_down_makes_up_for_it(clock):
    """R5: as in Spark, no value is left out."""
    source = RateSource(rows_per_second=1, partitions=1, clock=clock)
    (split,) = source.discover("").splits
    clock.now += 3_600_000
    values = [value for value, _ in rows_of(source.open(split, "10").read(10_000))]
    assert values == list(range(10, 3_601))


def test_a_clock_that_was_set_back_gives_nothing_twice(clock):
    """R5."""
    (reader,) = opened(RateSource(rows_per_second=1, partitions=1, clock=clock))
    clock.now += 5_000
    assert len(reader.read(100)) == 6
    clock.now -= 4_000
    assert reader.read(100) is None
    clock.now += 5_000
    assert [value for value, _ in rows_of(reader.read(100))] == [6]
