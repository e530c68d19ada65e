"""Files hold what Spark would have written, and are found where Spark would find them."""

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weir.connectors.json_lines import json_lines

INF = float("inf")
TIME = dt.datetime(2024, 2, 3, 4, 5, 6, 789_999, dt.UTC)
POINT = pa.struct([("x", pa.float64()), ("y", pa.string())])

ROWS = pa.table(
    {
        "id": pa.array([0, 1, 2, 3]),
        "double": pa.array([1.5, float("nan"), INF, None]),
        "float": pa.array([100.0, -INF, 1.1, None], pa.float32()),
        "decimal": pa.array([Decimal("1.20"), Decimal("-0.01"), Decimal(0), None]),
        "flag": pa.array([True, False, None, None]),
        "text": pa.array(['a "quoted"\n\\ \x01 ü', "", "\u2028", None]),
        "binary": pa.array([b"\x00\xff", b"", b"any length", None]),
        "day": pa.array([TIME.date(), dt.date(1970, 1, 1), dt.date(1900, 12, 31), None]),
        "instant": pa.array([TIME, TIME, None, None], pa.timestamp("us", tz="UTC")),
        "clock": pa.array([TIME.replace(tzinfo=None), None, None, None], pa.timestamp("us")),
        "list": pa.array([[1.0, None, float("nan")], [], None, None]),
        "map": pa.array(
            [[("a b", 1), ("c", None)], [], None, None], pa.map_(pa.string(), pa.int64())
        ),
        "numbered": pa.array(
            [[(7, {"x": INF, "y": None})], [], None, None], pa.map_(pa.int32(), POINT)
        ),
        "struct": pa.array([{"x": None, "y": "z"}, {"x": -0.0, "y": None}, None, None], POINT),
    }
)


@pytest.fixture(scope="module")
def spark(session):
    """A session of the Spark that the tests share, with another time zone."""
    own = session.spark.newSession()
    own.conf.set("spark.sql.session.timeZone", "UTC")
    return own


def values_of(lines):
    found = [json.loads(line, parse_float=Decimal) for line in lines]
    return sorted(found, key=lambda row: row["id"])


def test_lines_of_json_hold_what_spark_writes(spark, tmp_path):
    """R10: value for value, and the same fields are left out."""
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    spark.read.parquet(str(tmp_path / "rows.parquet")).write.json(str(tmp_path / "spark"))
    by_spark = [
        line
        for file in (tmp_path / "spark").glob("*.json")
        for line in file.read_text(encoding="utf-8").split("\n")
        if line
    ]
    assert values_of(json_lines(ROWS).split("\n")[:-1]) == values_of(by_spark)
