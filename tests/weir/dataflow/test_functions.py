"""Columns as values: they write the SQL that a careful person would write."""

import datetime as dt
import decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.dataflow import functions as F  # noqa: N812
from weir.dataflow.expressions import compiled, evaluate
from weir.errors import JobRejected

ROWS = pa.record_batch({"a": [1, 2, None], "b b": [4, 5, 6], "s": ["x", "it's", None]})
A, B, S = F.col("a"), F.col("b b"), F.col("s")


def value_of(expression, rows=ROWS):
    return evaluate([compiled(expression.sql, rows.schema)], rows)[0].to_pylist()


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        (A + B, [5, 7, None]),
        (10 - A, [9, 8, None]),
        (A * -2, [-2, -4, None]),
        (1 / A, [1.0, 0.5, None]),
        (2 * A + 1, [3, 5, None]),
        (B % 4, [0, 1, 2]),
        (-B, [-4, -5, -6]),
        (A == 1, [True, False, None]),
        (A != 1, [False, True, None]),
        ((A >= 1) & (B < 9), [True, True, None]),
        ((A > 1) | (B <= 4), [True, True, None]),
        (~(A > 1), [True, False, None]),
        (A.isNull(), [False, False, True]),
        (A.isNotNull(), [True, True, False]),
        (A.isin(1, 3), [True, False, None]),
        (A.isin([1, 3]), [True, False, None]),
        (A.isin([]), [False, False, False]),
        (B.between(4, 5), [True, True, False]),
        (A.eqNullSafe(None), [False, False, True]),
        (A.cast("string"), ["1", "2", None]),
        (S == "it's", [False, True, None]),
        (S.like("it%"), [False, True, None]),
        (S.startswith("i"), [False, True, None]),
        (S.endswith("s"), [False, True, None]),
        (S.contains("'"), [False, True, None]),
        (S.substr(2, 2), ["", "t'", None]),
        (F.expr("a + 1") * 2, [4, 6, None]),
    ],
)
def test_operators_build_expressions(expression, values):
    """D2: PySpark's operators, with PySpark's precedence."""
    assert value_of(expression) == values


@given(st.text(max_size=20))
def test_any_text_can_be_a_literal(text):
    assert value_of(F.lit(text))[0] == text


@pytest.mark.parametrize(
    "value",
    [
        *(True, False, None, 0, -5, 2**40, 1.5, -1e300),
        *(decimal.Decimal("12.50"), decimal.Decimal("-0.05"), decimal.Decimal("1E+3")),
        *(dt.date(2020, 2, 3), dt.datetime(2020, 2, 3, 4, 5, 6, 7, tzinfo=dt.UTC)),
        *(dt.date(1, 2, 3), dt.datetime(1, 2, 3, tzinfo=dt.UTC)),
    ],
)
def test_a_literal_is_its_value(value):
    assert value_of(F.lit(value))[0] == value


def test_names_are_quoted_and_dots_lead_into_structs():
    rows = pa.record_batch({"a.b": [1], "s": [{"x y": 2}], "select": [3]})

    assert value_of(F.col("`a.b`"), rows) == [1]
    assert value_of(F.col("s.x y"), rows) == [2]
    assert value_of(F.col("select"), rows) == [3]


def test_an_expression_has_no_truth_of_its_own():
    with pytest.raises(JobRejected, match="use & for and"):
        bool(A > 1)


def test_what_cannot_be_a_literal_is_refused():
    with pytest.raises(JobRejected, match="a dict cannot be a literal"):
        F.lit({})


@pytest.mark.parametrize(
    ("aggregate", "name"),
    [
        (F.sum("v"), "sum(v)"),
        (F.avg(F.col("v") * 2), "avg((v * 2))"),
        (F.count("*"), "count(1)"),
        (F.count(F.lit(1)), "count(1)"),
        (F.count("v"), "count(v)"),
        (F.min("v").alias("least"), "least"),
        (F.max("v"), "max(v)"),
    ],
)
def test_aggregates_are_called_as_in_pyspark(aggregate, name):
    assert aggregate.label == name
