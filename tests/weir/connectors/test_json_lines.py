"""Lines of JSON: every value has a form that a reader understands, or the type is refused."""

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from weir.connectors.json_lines import json_lines, unwritable

POINT = pa.struct([("x", pa.float64()), ("y", pa.string())])


def written(kind, *values):
    """What each value became; a null leaves its field out."""
    table = pa.table({"v": pa.array(values, kind)})
    lines = json_lines(table).split("\n")[:-1]
    assert len(lines) == len(values)
    return [json.loads(line, parse_float=Decimal).get("v") for line in lines]


def test_doubles_that_json_has_no_number_for_are_strings():
    """R10: nothing turns into null on its way out."""
    values = (1.5, float("nan"), float("inf"), float("-inf"), -0.0, 100.0)
    assert written(pa.float64(), *values) == [
        *(Decimal("1.5"), "NaN", "Infinity", "-Infinity", Decimal("-0.0"), Decimal("100.0"))
    ]


def test_a_map_is_an_object_whose_values_may_be_null():
    """R10."""
    kind = pa.map_(pa.string(), pa.int64())
    assert written(kind, [('a"b', 1), ("c", None)], [], None) == [{'a"b': 1, "c": None}, {}, None]


def test_the_keys_of_a_map_may_be_numbers():
    """R10."""
    assert written(pa.map_(pa.int32(), POINT), [(-1, {"x": 0.5, "y": None})]) == [
        {"-1": {"x": 0.5}}
    ]


def test_binary_is_base64():
    """R10."""
    assert written(pa.binary(), b"\x00\xff", b"", None) == ["AP8=", "", None]


def test_fields_that_are_null_are_left_out_and_elements_are_not():
    """R10: as in Spark, whose readers take a missing field for null."""
    assert json_lines(pa.table({"a": pa.array([None], pa.int64()), "b": [[None, 1]]})) == (
        '{"b":[null,1]}\n'
    )
    assert written(POINT, {"x": None, "y": "z"}, {"x": None, "y": None}, None) == [
        *({"y": "z"}, {}, None)
    ]


def test_nested_values_are_written_at_every_depth():
    """R10."""
    kind = pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.float32())))]))
    value = [{"m": [("k", [float("nan"), None])]}, None]
    assert written(kind, value, [], None) == [[{"m": {"k": ["NaN", None]}}, None], [], None]


def test_text_is_escaped():
    """R10."""
    text = 'quote " backslash \\ newline \n control \x01 umlaut ü line separator \u2028'
    assert written(pa.string(), text, "", None) == [text, "", None]


def test_times_and_decimals_are_written_as_spark_writes_them():
    """R10: an instant in UTC, a wall clock without a zone, both to the millisecond."""
    time = dt.datetime(2024, 2, 3, 4, 5, 6, 789_999, dt.UTC)
    berlin = pa.timestamp("us", tz="Europe/Berlin")
    assert written(pa.timestamp("us"), time.replace(tzinfo=None)) == ["2024-02-03T04:05:06.789"]
    assert written(berlin, time) == ["2024-02-03T04:05:06.789Z"]
    assert written(pa.date32(), dt.date(1, 2, 3)) == ["0001-02-03"]
    assert written(pa.decimal128(5, 2), Decimal("-1.20")) == [Decimal("-1.20")]


def test_a_slice_of_a_table_is_written_alone():
    """R10: nested columns share memory with the rows around the slice."""
    table = pa.table({"l": [[1], [2, 3], [4]], "s": [{"n": 1}, {"n": 2}, {"n": 3}]})
    assert json_lines(table.slice(1, 1)) == '{"l":[2,3],"s":{"n":2}}\n'
    assert json_lines(table.slice(0, 0)) == ""


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (pa.duration("us"), "Spark's JSON has no form for duration"),
        (pa.list_(pa.time64("us")), "Spark's JSON has no form for time64"),
        (pa.map_(pa.float64(), pa.int64()), "a double cannot be the name of a JSON field"),
    ],
    ids=str,
)
def test_a_type_that_has_no_form_is_named(kind, why):
    """U3."""
    assert why in unwritable(pa.schema([("fine", pa.int64()), ("bad", kind)]))
    assert "column bad" in unwritable(pa.schema([("fine", pa.int64()), ("bad", kind)]))
