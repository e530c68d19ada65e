"""A processor that was written for transformWithStateInPandas runs unchanged."""

from datetime import UTC, datetime

import pandas as pd
import pytest

from one_processor import ProcessorUnderTest, written
from spark_processors import FrameTotal
from weir.dataflow.physical import RowsAs
from weir.ports.failures import UserCodeFailed


class Yielding(FrameTotal):
    """Yields what a test makes of each frame."""

    def __init__(self, make):
        self.make = make

    def handleInputRows(self, key, rows, _timer_values):  # noqa: N802 - PySpark's name
        for frame in rows:
            yield self.make(key, frame)


def in_pandas(processor, **kwargs):
    return ProcessorUnderTest(processor, rows_as=RowsAs.PANDAS, **kwargs)


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
