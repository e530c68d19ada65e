"""PySpark's simple stream readers as sources: what lies between two offsets is one split."""

import pytest
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

from recorded_sources import SCHEMA, SimpleCounter
from split_reads import rest_of
from weir.connectors.pyspark.pickle_signatures import JobKey
from weir.connectors.pyspark.stream_reader import StreamSource
from weir.dataflow.types import schema_of
from weir.errors import JobRejected

KEY = JobKey(b"k" * 32)


def simple(data):
    return StreamSource("simple", data, schema_of(SCHEMA), KEY)


class Stuck(DataSource):
    """Its reader's offset never moves."""

    def simpleStreamReader(self, schema):  # noqa: N802
        del schema
        return StuckReader(self.options["rows"], self.options["committed"])


class StuckReader(SimpleDataSourceStreamReader):
    def __init__(self, rows, committed):
        self._rows = rows
        self._committed = committed

    def initialOffset(self):  # noqa: N802
        return {"next": 0}

    def read(self, start):
        return iter(self._rows), start

    def commit(self, end):
        self._committed.append(end)


def test_each_look_is_one_split_that_a_slot_reads_by_its_offsets():
    """D1, R5: read in the driver, readBetweenOffsets in the slot."""
    source = simple(SimpleCounter({}))
    first = source.discover("")
    second = source.discover(first.seen)
    splits = (*first.splits, *second.splits)
    assert [rest_of(source.open(split, "")) for split in splits] == [
        [(0, 0), (1, 0), (2, 0)],
        [(3, 0), (4, 0), (5, 0)],
    ]


def test_a_look_that_finds_no_rows_finds_no_split():
    """D1."""
    assert simple(Stuck({"rows": [], "committed": []})).discover("").splits == ()


def test_rows_without_a_new_offset_would_come_for_ever_and_are_refused():
    """D1, U3: as in PySpark."""
    with pytest.raises(JobRejected, match=r"StuckReader\.read brought rows and left the offset"):
        simple(Stuck({"rows": [(1, 1)], "committed": []})).discover("")


def test_commit_reaches_the_simple_reader():
    """R5."""
    committed = []
    source = simple(Stuck({"rows": [], "committed": committed}))
    source.completed('[2, {"next": 6}]', ())
    assert committed == [{"next": 6}]
