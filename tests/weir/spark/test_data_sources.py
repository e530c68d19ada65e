"""Registered data sources are found by name beside the built-in formats."""

import pytest

from recorded_sources import Counter, Ledger
from weir.connectors.pyspark.pickle_signatures import JobKey
from weir.dataflow.formats import Formats
from weir.dataflow.options import Options
from weir.dataflow.types import schema_of
from weir.errors import JobRejected
from weir.spark.data_sources import with_data_sources

REGISTERED = {"counter": Counter, "ledger": Ledger, "rate": Counter}
ROWS = schema_of("number long")


@pytest.fixture
def formats():
    built_in = Formats(sources={"rate": lambda _: "built in"}, sinks={"noop": lambda *_: "nowhere"})
    return with_data_sources(built_in, REGISTERED.get, lambda: JobKey(b"k" * 32))


def test_a_registered_class_is_a_source_or_a_sink_by_its_name(formats):
    """D1: names count without their case, as in Spark."""
    assert formats.source(Options("Counter", {})).name == "counter"
    assert formats.sink(Options("ledger", {"path": "x"}), ROWS).name == "ledger"


def test_built_in_formats_keep_their_names(formats):
    """D1."""
    assert formats.source(Options("rate", {})) == "built in"
    assert formats.sink(Options("noop", {}), ROWS) == "nowhere"


@pytest.mark.parametrize("name", ["missing", ""])
def test_an_unknown_name_is_refused_with_those_that_are_built_in(formats, name):
    """U3."""
    with pytest.raises(JobRejected, match="known are rate"):
        formats.source(Options(name, {}))
