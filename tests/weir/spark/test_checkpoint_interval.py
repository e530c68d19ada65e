"""A stream without end commits results while it runs, whether or not its user chose how often."""

import pytest

from described_streams import EVENTS, Described, Nowhere
from weir.api.config import load_config
from weir.connectors.noop_sink import NoopSink
from weir.dataflow.logical import Read, Union, WrittenStream
from weir.dataflow.types import schema_of
from weir.spark.checkpoint_interval import DEFAULT_INTERVAL, with_interval

ROWS = schema_of(EVENTS)
ENDLESS, BOUNDED = (Read(Described(ROWS, is_bounded=ends), ROWS) for ends in (False, True))


def chosen(node, checkpointing=None, sink=None):
    written = WrittenStream(node, sink or Nowhere(), "append")
    return with_interval(load_config({"checkpointing": checkpointing or {}}), written).checkpointing


@pytest.mark.parametrize("node", [ENDLESS, Union((BOUNDED, ENDLESS))], ids=["one", "one of two"])
def test_a_stream_without_end_gets_an_interval_and_says_so(node, caplog):
    """C2, U3: its sink would commit nothing, ever."""
    assert chosen(node).interval == DEFAULT_INTERVAL
    assert "weir.checkpointing.interval is not set" in caplog.text
    assert "every 10 s" in caplog.text


def test_a_stream_that_ends_needs_no_interval(caplog):
    """C2, C14: its last checkpoint commits everything."""
    assert not chosen(BOUNDED).is_periodic
    assert not caplog.text


def test_a_sink_that_commits_nothing_needs_no_interval(caplog):
    """C2."""
    assert not chosen(ENDLESS, sink=NoopSink()).is_periodic
    assert not caplog.text


def test_an_interval_that_the_user_chose_is_kept(caplog):
    """C2."""
    storage = {"interval": "3 s", "storage": "file:///data"}
    assert chosen(ENDLESS, storage).interval == 3_000
    assert not caplog.text


def test_checkpoints_that_the_user_disabled_stay_disabled_with_a_warning(caplog):
    """C2: results appear when a savepoint is asked for, and who waits for them is warned."""
    assert not chosen(ENDLESS, {"interval": 0}).is_periodic
    assert "takes no checkpoints" in caplog.text
