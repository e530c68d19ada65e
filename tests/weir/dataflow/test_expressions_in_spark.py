"""Expressions give Spark's values and types, row by row, or are refused when the job is built."""

import math
import re
from collections.abc import Iterator
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from compared_expressions import OTHERS, OVERFLOWING, others, overflowing
from edge_case_rows import rows
from random_seed import SEED, dice, runs_all, show
from weir.dataflow.expressions import compiled, evaluate
from weir.errors import JobRejected
from weir.spark import WeirSession

SAMPLE = 200
"""Of the expressions that are made of templates; those that are written out are all compared."""
AT_ONCE = 100
RANDOM_ROWS = 40
_OF_DOUBLE = re.compile(r"cast\([fdek] AS decimal")
_CAST = re.compile(r"\bcast\(", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d\.\d+(E-?\d+)?")


@pytest.fixture(scope="module")
def spark(session: WeirSession) -> SparkSession:
    """A session of the Spark that the tests share, because settings differ."""
    own = session.spark.newSession()
    own.conf.set("spark.sql.session.timeZone", "UTC")
    # Compiling a hundred expressions for eighty rows takes longer than computing them.
    own.conf.set("spark.sql.codegen.wholeStage", "false")
    own.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return own


@pytest.mark.parametrize("is_ansi", [False, True], ids=["overflowing", "ansi"])
def test_values_and_types_are_those_of_spark(spark, is_ansi):
    """D7: a difference is refused when the job is built, never silent."""
    chance = dice("expressions")
    batch = rows(chance, RANDOM_ROWS)
    every = others() if is_ansi else overflowing()
    written = (OTHERS if is_ansi else OVERFLOWING).strip().splitlines()
    made = every[len(written) :]
    chosen = written + (made if runs_all() else chance.sample(made, SAMPLE))
    accepted = [text for text in chosen if not is_refused(text, batch.schema)]
    assert len(accepted) > len(chosen) / 2, "most expressions of the table are supported"

    spark.conf.set("spark.sql.ansi.enabled", is_ansi)
    frame = spark.createDataFrame(pa.Table.from_batches([batch])).coalesce(1)
    differences = [
        difference
        for begin in range(0, len(accepted), AT_ONCE)
        for difference in compared(accepted[begin : begin + AT_ONCE], batch, frame)
    ]

    show(f"seed {SEED}: {len(accepted)} expressions on {batch.num_rows} rows")
    assert not differences, f"seed {SEED}:\n" + "\n".join(differences)


def is_refused(text: str, schema: pa.Schema) -> bool:
    try:
        compiled(text, schema)
    except JobRejected:
        return True
    return False


def compared(texts: list[str], batch: pa.RecordBatch, frame: DataFrame) -> Iterator[str]:
    """What differs, one line for each expression."""
    asked = [_CAST.sub("try_cast(", text) for text in texts]
    named = [f"{text} AS c{position}" for position, text in enumerate(asked)]
    theirs = frame.selectExpr(*named).toArrow().combine_chunks()
    ours = evaluate([compiled(text, batch.schema) for text in texts], batch)
    for text, our, column in zip(texts, ours, theirs.columns, strict=True):
        their = column.chunk(0)
        if not our.type.equals(their.type):
            yield f"{text}: a {our.type}, in Spark a {their.type}"
            continue
        both = enumerate(zip(comparable(our), comparable(their), strict=True))
        wrong = next(((row, pair) for row, pair in both if not are_equal(*pair, text)), None)
        if wrong:
            row, (one, other) = wrong
            yield f"{text}: {one!r}, in Spark {other!r}, of {read_by(text, batch, row)}"


def comparable(column: pa.Array) -> list[object]:
    """Python cannot hold every timestamp, nor every string that Spark makes of bytes."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    if not pa.types.is_string(column.type):
        return column.to_pylist()
    texts = column.cast(pa.binary()).to_pylist()
    return [None if text is None else text.decode("utf-8", "replace") for text in texts]


def are_equal(one: object, other: object, expression: str) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        are_both_nan = math.isnan(one) and math.isnan(other)
        # Which of two equal zeros greatest and least give is not compared.
        has_same_sign = "est(" in expression or math.copysign(1, one) == math.copysign(1, other)
        return are_both_nan or (one == other and has_same_sign)
    if isinstance(one, str) and isinstance(other, str):
        return shortest(one, expression) == shortest(other, expression)
    if isinstance(one, Decimal) and isinstance(other, Decimal) and _OF_DOUBLE.search(expression):
        return math.isclose(one, other, rel_tol=1e-15)
    return one == other


def shortest(text: str, expression: str) -> str:
    """Java before 19 writes some doubles with a digit too many, and makes decimals of that."""
    number = np.float32 if re.search(r"\bf\b", expression) else float
    return _NUMBER.sub(lambda found: str(number(found[0])), text)


def read_by(text: str, batch: pa.RecordBatch, row: int) -> dict[str, object]:
    names = [name for name in batch.schema.names if re.search(rf"\b{name}\b", text)]
    return {name: comparable(batch.column(name).slice(row, 1))[0] for name in names}
