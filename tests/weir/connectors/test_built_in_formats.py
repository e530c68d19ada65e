"""What users write in options becomes the connector that they mean, or a refusal that names it."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weir.connectors.built_in_formats import built_in
from weir.connectors.encodings import Encoding
from weir.connectors.generator_options import expected_rows
from weir.core.ids import SplitId
from weir.dataflow.options import Options
from weir.errors import JobRejected

SCHEMA = pa.schema([("id", pa.int64())])


def a_source(name, declared=None, **given):
    return built_in().source(Options(name, given, declared))


def a_sink(name, rows=SCHEMA, **given):
    return built_in().sink(Options(name, given), rows)


def test_a_generator_is_what_its_options_say():
    """D2."""
    source = a_source(
        "generator",
        splits="3",
        rowsPerSecond="900",
        rows="10",
        keys="5",
        sparseKeys="true",
        eventTimeStart="1000",
        eventTimeStep="2 ms",
        outOfOrderness="1 s",
        seed="7",
        columns="key, value",
    )

    recipe = source.recipe
    assert (source.splits, source.rows_per_second, source.total) == (3, 900, 10)
    assert (recipe.keys, recipe.sparse_keys, recipe.seed) == (5, True, 7)
    assert (recipe.start_ms, recipe.step_ms, recipe.out_of_orderness_ms) == (1_000, 2, 1_000)
    assert source.schema.names == ["key", "value"]


def test_a_generator_without_a_total_is_endless():
    """R6."""
    assert a_source("generator").is_endless
    assert not a_source("generator", rows="1").is_endless


def test_expected_rows_are_what_a_reader_gives():
    """R5."""
    options = {"rows": "100", "splits": "1", "seed": "3", "outOfOrderness": "1 s"}

    given = a_source("generator", **options).open(SplitId("0000"), "20").read(30)

    assert expected_rows(Options("generator", options), 0, 20, 50) == given


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("keys", "0"),
        ("splits", "0"),
        ("rows", "-1"),
        ("rowsPerSecond", "-5"),
        ("columns", "key,nothing"),
        ("columns", "key,key"),
        ("outOfOrderness", "60 d"),
        ("sparse", "true"),
    ],
)
def test_a_generator_refuses_what_it_cannot_do(option, value):
    """U3."""
    with pytest.raises(JobRejected, match=option):
        a_source("generator", **{option: value})


@pytest.mark.parametrize("encoding", [Encoding.PARQUET, Encoding.JSON])
def test_a_declared_schema_needs_no_file(encoding, tmp_path):
    source = a_source(encoding.value, SCHEMA, path=f"file://{tmp_path}", bounded="true")

    assert (source.url, source.encoding) == (f"file://{tmp_path}", encoding)
    assert (source.schema, source.bounded) == (SCHEMA, True)


def test_a_schema_that_is_not_declared_is_read(tmp_path):
    pq.write_table(SCHEMA.empty_table(), tmp_path / "a")

    assert a_source("parquet", path=str(tmp_path)).schema == SCHEMA


@pytest.mark.parametrize("encoding", [Encoding.PARQUET, Encoding.JSON])
def test_a_path_without_a_scheme_is_local(encoding, tmp_path):
    """D2."""
    sink = a_sink(encoding.value, path=str(tmp_path))

    assert (sink.url, sink.encoding) == (f"file://{tmp_path}", encoding)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("json", pa.duration("us")), ("parquet", pa.month_day_nano_interval())],
    ids=str,
)
def test_rows_that_a_file_cannot_hold_are_refused_when_the_job_is_built(name, kind):
    """U3: and not at the first checkpoint, for ever."""
    rows = pa.schema([("id", pa.int64()), ("wait", kind)])
    with pytest.raises(JobRejected, match=f"the {name} sink cannot write these rows"):
        a_sink(name, rows, path="/tmp/weir-out")  # noqa: S108


@pytest.mark.parametrize(
    "kind",
    [pa.binary(), pa.map_(pa.string(), pa.int64()), pa.list_(pa.struct([("b", pa.binary())]))],
    ids=str,
)
def test_columns_that_json_would_give_wrong_are_refused_when_the_job_is_built(kind, tmp_path):
    """U3: Spark decodes base64 and objects there; the parser here does not."""
    with pytest.raises(JobRejected, match="cannot read column bad"):
        a_source("json", pa.schema([("bad", kind)]), path=str(tmp_path))
    assert a_source("parquet", pa.schema([("bad", kind)]), path=str(tmp_path))


@pytest.mark.parametrize("name", ["json", "parquet"])
def test_binary_maps_and_nested_rows_are_accepted(name):
    """R10."""
    rows = pa.schema([("b", pa.binary()), ("m", pa.map_(pa.string(), pa.list_(pa.float64())))])
    assert a_sink(name, rows, path="/tmp/weir-out")  # noqa: S108


def test_files_need_a_path():
    """U3."""
    with pytest.raises(JobRejected, match="needs the option 'path'"):
        a_sink("parquet")


@pytest.mark.parametrize(
    ("truncate", "width"), [("true", 20), ("false", 0), ("7", 7), ("0", 0), ("1", 1)]
)
def test_the_console_takes_pysparks_options(truncate, width):
    """D2."""
    sink = a_sink("console", numRows="5", truncate=truncate)

    assert (sink.rows, sink.width) == (5, width)


def test_a_sink_in_the_driver_takes_a_path_that_slots_reach(tmp_path):
    sink = a_sink("memory", path=str(tmp_path), limitBytes="99")

    assert (sink.staging.url, sink.limit_bytes) == (f"file://{tmp_path}", 99)
