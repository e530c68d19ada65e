"""Registered classes become sources and sinks under their names, with the user's options."""

import pyarrow as pa
import pytest
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import LongType, StructType

from recorded_sources import SCHEMA, Counter, Ledger
from weir.connectors.pyspark.data_source import DataSourceFormat
from weir.connectors.pyspark.pickle_signatures import JobKey
from weir.dataflow.options import Options
from weir.dataflow.types import schema_of
from weir.errors import JobRejected

KEY = JobKey(b"k" * 32)


def of(made_by):
    return DataSourceFormat(made_by, lambda: KEY)


class Shy(DataSource):
    """Tells nothing about itself."""

    def streamReader(self, schema):  # noqa: N802
        raise AssertionError(schema)


class Structured(Shy):
    """Declares its schema as PySpark's type."""

    def schema(self):
        return StructType().add("n", LongType())


def test_the_data_source_gets_all_options_whatever_their_case():
    """D1."""
    options = Options("counter", {"Step": "7", "path": "here"})
    source = of(Counter).source(options)
    options.refuse_unread()
    assert (source.name, source.data.options["STEP"]) == ("counter", "7")
    assert source.data.options["path"] == "here"


def test_a_schema_is_taken_from_the_data_source_or_from_the_user():
    """D1: DDL text, a StructType, or what .schema(…) declares."""
    assert of(Counter).source(Options("counter", {})).schema == schema_of(SCHEMA)
    assert of(Structured).source(Options("s", {})).schema == pa.schema({"n": pa.int64()})
    declared = schema_of("a string")
    assert of(Shy).source(Options("shy", {}, declared)).schema == declared


def test_a_source_without_a_schema_is_refused_with_the_remedy():
    """U3."""
    with pytest.raises(
        JobRejected, match=r"Shy has no schema: .* Remedy: implement it, or declare"
    ):
        of(Shy).source(Options("shy", {}))


def test_split_atomic_is_ours_and_the_data_source_does_not_see_it():
    """R5."""
    source = of(Counter).source(Options("counter", {"splitatomic": "true"}))
    assert source.split_atomic
    assert dict(source.data.options) == {}


def test_a_class_that_cannot_stream_is_refused_before_anything_runs():
    """D1, U3."""
    with pytest.raises(JobRejected, match="ledger cannot be read as a stream"):
        of(Ledger).source(Options("ledger", {}, schema_of(SCHEMA)))
    with pytest.raises(JobRejected, match="counter cannot be written to as a stream"):
        of(Counter).sink(Options("counter", {}), schema_of(SCHEMA))


def test_a_sink_keeps_its_messages_where_the_job_says():
    """R5."""
    sink = of(Ledger).sink(Options("ledger", {"path": "x"}), schema_of(SCHEMA))
    assert sink.directory.startswith("file://")
    assert sink.kept_in("s3://bucket/job").directory == "s3://bucket/job"
