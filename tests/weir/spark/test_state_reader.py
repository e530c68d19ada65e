"""State as a DataFrame."""

import pytest
from pyspark.errors import PySparkException

from golden_savepoint import EXPECTED, GOLDEN
from weir.spark.state_reader import register


@pytest.fixture(scope="module")
def reader(session):
    register(session.spark)
    return session.spark.read.format("weir-state").option("path", str(GOLDEN))


def test_a_state_is_a_frame_with_its_keys_and_values(reader):
    """S9: a schema, every row, and one partition for each file."""
    totals = reader.option("operator", "each").option("state", "total").load()

    assert totals.schema.simpleString() == (
        "struct<key_group:int,key:bigint,value_total:bigint,value_rows:int>"
    )
    found = {str(row.key): [row.value_total, row.value_rows] for row in totals.collect()}
    assert found == EXPECTED["total"]
    assert totals.rdd.getNumPartitions() == 2


def test_a_map_state_has_a_row_for_each_entry(reader):
    """S9: user keys are columns too, and Spark can compute on them."""
    parities = reader.option("operator", "each").option("state", "parities").load()

    rows = parities.groupBy("user_key_parity").sum("value_rows").collect()
    assert sum(row[1] for row in rows) == sum(rows for _, rows in EXPECTED["total"].values())


def test_the_only_state_of_an_operator_needs_no_name(reader):
    """S9: aggregates are called as Spark calls them."""
    sums = reader.option("operator", "sums").option("state", "").load()

    found = {str(row.key): [row["sum(value)"], row["count(*)"]] for row in sums.collect()}
    assert found == EXPECTED["total"]


def test_what_is_not_there_is_refused_with_what_is(reader):
    """U3: the operators to choose of."""
    with pytest.raises(PySparkException, match=r"no operator 'summs'.*choose one of rows, each"):
        reader.option("operator", "summs").option("state", "").load()
