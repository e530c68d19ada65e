"""Steps do to one batch what was declared, and say clearly when the user's code did not."""

import pickle

import pandas as pd
import pyarrow as pa
import pytest

from weir.dataflow.stateless_steps import Filter, MapInArrow, MapInPandas, Project
from weir.dataflow.types import schema_of
from weir.ports.user_code_errors import UserCodeFailed

BATCH = pa.record_batch({"name": ["a", None, "c"], "value": [1, None, 3]})
OUT = schema_of("value long")


def double(batches):
    for batch in batches:
        yield pa.record_batch(
            {"value": [value.as_py() * 2 for value in batch["value"] if value.is_valid]}
        )


def double_frames(frames):
    for frame in frames:
        yield pd.DataFrame({"value": frame["value"].dropna() * 2})


def rows(batches):
    return [row for batch in batches for row in batch.to_pylist()]


def test_a_filter_keeps_only_what_is_true():
    """D2: null is not true."""
    assert rows(Filter("value < 3", BATCH.schema)(BATCH)) == [{"name": "a", "value": 1}]


def test_a_filter_that_keeps_nothing_gives_no_batch():
    assert list(Filter("value > 9", BATCH.schema)(BATCH)) == []
    assert list(Filter("NULL", BATCH.schema)(BATCH)) == []


def test_a_projection_computes_some_columns_and_passes_others_on():
    step = Project((("n", "name"), ("twice", "value * 2"), ("one", "1")), BATCH.schema)

    (made,) = step(BATCH)

    assert made.schema.equals(step.output)
    assert made.to_pydict() == {"n": ["a", None, "c"], "twice": [2, None, 6], "one": [1, 1, 1]}
    assert made.column("n").buffers()[2].address == BATCH.column("name").buffers()[2].address


def test_a_projection_of_an_empty_batch_is_empty():
    step = Project((("one", "1"), ("twice", "value * 2")), BATCH.schema)

    (made,) = step(BATCH.slice(0, 0))

    assert made.num_rows == 0
    assert made.schema.equals(step.output)


def test_steps_that_have_run_still_travel():
    """Only the text travels; the other side compiles it again."""
    step = Filter("value < 3", BATCH.schema)
    fresh = pickle.dumps(step)
    list(step(BATCH))

    assert pickle.dumps(step) == fresh
    assert rows(pickle.loads(fresh)(BATCH)) == rows(step(BATCH))  # noqa: S301


@pytest.mark.parametrize("step", [MapInArrow(double, OUT), MapInPandas(double_frames, OUT)])
def test_a_function_maps_batches(step):
    """D2, D3."""
    assert rows(step(BATCH)) == [{"value": 2}, {"value": 6}]


def test_a_function_is_run_to_its_end_before_the_step_returns():
    """A12: it sees one batch, its iterator ends, and no row stays inside."""
    seen = []

    def greedy(batches):
        seen.extend(batches)
        for batch in seen:
            yield batch.select(["value"])
        seen.append("the end")

    MapInArrow(greedy, OUT)(BATCH)

    assert seen == [BATCH, "the end"]


def test_columns_are_put_into_the_declared_order_and_types():
    def swapped(batches):
        for _ in batches:
            yield pa.record_batch({"b": ["x"], "a": pa.array([1], pa.int8())})

    (made,) = MapInArrow(swapped, schema_of("a long, b string"))(BATCH)

    assert made.schema.equals(schema_of("a long, b string"))


def test_batches_without_rows_are_not_passed_on():
    assert MapInArrow(lambda batches: (b.slice(0, 0) for b in batches), BATCH.schema)(BATCH) == []


def test_a_failure_of_user_code_names_the_step_and_the_row():
    def broken(batches):
        raise ZeroDivisionError(next(batches).num_rows)

    with pytest.raises(UserCodeFailed) as failed:
        MapInArrow(broken, OUT, "my step")(BATCH)

    assert failed.value.doing == "my step"
    assert failed.value.row == "{'name': 'a', 'value': 1}"
    assert isinstance(failed.value.__cause__, ZeroDivisionError)


def test_the_row_that_is_shown_is_the_one_that_fails():
    """U3: not the first of its batch, which may be innocent."""

    def picky(batches):
        for batch in batches:
            assert 700 not in batch["value"].to_pylist()
            yield batch

    batch = pa.record_batch({"value": range(1000)})

    with pytest.raises(UserCodeFailed) as failed:
        MapInArrow(picky, batch.schema)(batch)

    assert failed.value.row == "{'value': 700}"


def test_a_long_row_is_shown_short():
    batch = pa.record_batch({"text": ["x" * 1000]})

    with pytest.raises(UserCodeFailed) as failed:
        MapInArrow(lambda _: 1 / 0, OUT)(batch)

    assert len(failed.value.row) == 200


@pytest.mark.parametrize(
    ("step", "complaint"),
    [
        (MapInArrow(lambda _: ["x"], OUT), "it gave a str, not a pyarrow.RecordBatch"),
        (MapInArrow(lambda batches: batches, OUT), "the columns name, value; declared are value"),
        (
            MapInArrow(lambda _: [pa.record_batch({"value": ["x"]})], OUT),
            "its result is not as declared",
        ),
        (MapInPandas(lambda _: ["x"], OUT), "it gave a str, not a DataFrame"),
        (MapInPandas(lambda _: [pd.DataFrame({"x": [1]})], OUT), "no column 'value'"),
        (MapInPandas(lambda _: [pd.DataFrame({"value": ["x"]})], OUT), "is not as declared"),
    ],
)
def test_a_result_that_is_not_as_declared_is_the_functions_failure(step, complaint):
    with pytest.raises(UserCodeFailed) as failed:
        step(BATCH)

    assert failed.value.doing.startswith(("mapInArrow(", "mapInPandas("))
    assert complaint in failed.value.doing
