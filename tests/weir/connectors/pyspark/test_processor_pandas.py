"""A processor that was written for transformWithStateInPandas runs unchanged."""

from datetime import UTC, datetime

import pandas as pd
import pytest

from processor_harness import ProcessorHarness, written
from spark_processors import FrameTotal
from weir.dataflow.physical import RowsAs
from weir.ports.user_code_errors import UserCodeFailed

pytestmark = pytest.mark.usefixtures("each_backend")


class Yielding(FrameTotal):
    """Yields what a test makes of each frame."""

    def __init__(self, make):
        self.make = make

    def handleInputRows(self, key, rows, _timer_values):  # noqa: N802 - PySpark's name
        for frame in rows:
            yield self.make(key, frame)


def in_pandas(processor, **kwargs):
    return ProcessorHarness(processor, rows_as=RowsAs.PANDAS, **kwargs)


def test_frames_of_each_key_go_in_and_frames_come_out():
    """D1."""
    job = in_pandas(FrameTotal()).begin()
    rows = [("b", 1), ("a", 2), ("b", 3)]

    emitted = job.process(*({"word": word, "amount": amount} for word, amount in rows))

    assert emitted == [{"word": "b", "total": 4}, {"word": "a", "total": 2}]


def test_state_is_the_same_as_that_of_rows():
    """S10: NumPy's numbers are stored as plain ones."""
    job = in_pandas(FrameTotal()).begin()
    job.words("a")

    again = in_pandas(FrameTotal()).begin(written(job.capture()))

    assert again.words("a") == [{"word": "a", "total": 2}]


def test_a_frame_has_all_columns_and_an_index_from_zero():
    """D1."""
    frames = []

    def keep(_key, frame):
        frames.append(frame)
        return pd.DataFrame()

    in_pandas(Yielding(keep)).begin().process(
        {"word": "a", "amount": 1}, {"word": "b", "amount": 2}, {"word": "b", "amount": 3}
    )

    assert frames[1].to_dict("list") == {"word": ["b", "b"], "amount": [2, 3]}
    assert list(frames[1].index) == [0, 1]


def test_a_frame_may_be_changed_by_its_owner():
    """D1: no frame is a view of another one."""

    def doubled(_key, frame):
        frame["amount"] *= 2
        return frame.rename(columns={"amount": "total"})

    job = in_pandas(Yielding(doubled)).begin()

    assert job.words("a", "b") == [{"word": "a", "total": 2}, {"word": "b", "total": 2}]


def test_instants_are_naive_in_utc():
    """D1, D6."""

    def hours(_key, frame):
        return pd.DataFrame({"hour": frame["at"].dt.hour, "zone": [str(frame["at"].dt.tz)]})

    job = in_pandas(
        Yielding(hours), inputs="word string, at timestamp", output="hour int, zone string"
    ).begin()

    assert job.process({"word": "a", "at": datetime(2026, 1, 1, 15, tzinfo=UTC)}) == [
        {"hour": 15, "zone": "None"}
    ]


KINDS = {
    "at": ("timestamp", "datetime64[ns]", "Timestamp('2026-01-01 15:00:00.123456')"),
    "local": ("timestamp_ntz", "datetime64[ns]", "Timestamp('2026-01-01 15:00:00.123456')"),
    "day": ("date", "object", "datetime.date(2026, 1, 1)"),
    "short": ("smallint", "int64", "7"),
    "number": ("int", "int64", "7"),
    "single": ("float", "float64", "1.5"),
    "counts": ("map<string,int>", "object", "{'a': 1}"),
    "nested": ("map<string,map<string,int>>", "object", "{'a': {'b': 1}}"),
    "listed": ("array<map<string,int>>", "object", "array([{'a': 1}], dtype=object)"),
    "part": (
        "struct<counts:map<string,int>,at:timestamp>",
        "object",
        "{'counts': {'a': 1}, 'at': Timestamp('2026-01-01 15:00:00.123456')}",
    ),
}
"""The type of a column, and what PySpark 4.3 makes of it: the dtype and the value of its frames."""

INSTANT = datetime(2026, 1, 1, 15, 0, 0, 123456, tzinfo=UTC)
GIVEN = {
    "at": INSTANT,
    "local": INSTANT.replace(tzinfo=None),
    "day": INSTANT.date(),
    "short": 7,
    "number": 7,
    "single": 1.5,
    "counts": {"a": 1},
    "nested": {"a": {"b": 1}},
    "listed": [{"a": 1}],
    "part": {"counts": {"a": 1}, "at": INSTANT},
}


def test_columns_are_what_pyspark_makes_of_them():
    """D1: user code counts on nanoseconds, and asks maps by their keys."""

    def shown(_key, frame):
        found = [(name, str(frame[name].dtype), repr(frame[name].tolist()[0])) for name in KINDS]
        return pd.DataFrame(found, columns=["name", "dtype", "value"])

    declared = ", ".join(f"{name} {kind}" for name, (kind, _, _) in KINDS.items())
    job = in_pandas(
        Yielding(shown),
        inputs=f"word string, {declared}",
        output="name string, dtype string, value string",
    ).begin()

    emitted = job.process({"word": "a", **GIVEN})

    assert [tuple(row.values()) for row in emitted] == [
        (name, dtype, value) for name, (_, dtype, value) in KINDS.items()
    ]


def test_missing_numbers_become_nulls():
    """D1."""
    job = in_pandas(
        Yielding(lambda key, _: pd.DataFrame({"word": key, "total": [float("nan")]}))
    ).begin()

    assert job.words("a") == [{"word": "a", "total": None}]


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ({"word": "a", "total": 1}, "expected a pandas DataFrame, not a dict"),
        (pd.DataFrame({"word": ["a"]}), "no column 'total'"),
        (pd.DataFrame({"word": ["a"], "total": ["many"]}), "'total' was declared as int64"),
    ],
)
def test_frames_that_are_not_as_declared_are_refused(made, reason):
    """U3."""
    job = in_pandas(Yielding(lambda *_: made)).begin()

    with pytest.raises(UserCodeFailed, match=reason):
        job.words("a")
