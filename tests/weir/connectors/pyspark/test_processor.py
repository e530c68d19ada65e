"""A processor that was written for PySpark runs unchanged, its state beside it."""

import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from processor_harness import ManualClock, ProcessorHarness
from spark_processors import Fleeting, History, RunningTotal, Tally, Times
from weir.errors import JobRejected

pytestmark = pytest.mark.usefixtures("each_backend")


class Doing(StatefulProcessor):
    """Calls what a test gives it, for each key of a batch."""

    def __init__(self, act):
        self.act = act

    def init(self, handle):
        self.handle = handle

    def handleInputRows(self, key, rows, _timer_values):  # noqa: N802 - PySpark's name
        yield from self.act(key, rows)


def test_a_value_state_keeps_a_total_from_batch_to_batch():
    """D1."""
    job = ProcessorHarness(RunningTotal()).begin()

    assert job.process({"word": "a", "amount": 1}, {"word": "a", "amount": 2}) == [
        {"word": "a", "total": 3}
    ]
    assert job.process({"word": "a", "amount": 4}) == [{"word": "a", "total": 7}]


def test_a_list_state_keeps_its_elements_in_order_until_it_is_cleared():
    """D1."""
    job = ProcessorHarness(History()).begin()
    job.process({"word": "a", "amount": 7})

    assert job.process({"word": "a", "amount": 5}) == [
        {"word": "a 0", "total": 7},
        {"word": "a 1", "total": 5},
    ]
    assert job.process({"word": "a", "amount": 0}) == []


def test_a_map_state_keeps_entries_until_they_are_removed():
    """D1."""
    job = ProcessorHarness(Tally()).begin()
    job.process({"word": "a", "amount": 7}, {"word": "a", "amount": 7})

    counts = job.process({"word": "a", "amount": 5})
    assert {row["word"]: row["total"] for row in counts} == {"a 7": 2, "a 5": 1}
    assert job.process({"word": "a", "amount": -7}) == [{"word": "a 5", "total": 1}]


def test_values_with_a_time_to_live_are_gone_when_it_is_over():
    """S1."""
    job = ProcessorHarness(Fleeting()).begin()
    job.words("a")
    job.clock.now += 999
    assert job.words("a") == [{"word": "a", "total": 2}]

    job.clock.now += 1000
    assert job.words("a") == [{"word": "a", "total": 1}]


def test_keys_come_in_the_order_of_their_first_row_and_rows_as_they_came():
    """D6: what a batch is for handleInputRows."""

    def replied(key, rows):
        yield (f"{key[0]}: {[row.amount for row in rows]}", 0)

    job = ProcessorHarness(Doing(replied)).begin()
    rows = [("b", 1), ("a", 2), ("b", 3), ("c", 4), ("a", 5)]

    emitted = job.process(*({"word": word, "amount": amount} for word, amount in rows))

    assert [row["word"] for row in emitted] == ["b: [1, 3]", "a: [2, 5]", "c: [4]"]


def test_a_null_is_a_key_and_so_is_not_a_number():
    """D1: SQL groups nulls together, and all NaNs too."""

    def counted(key, rows):
        yield (str(key), len(list(rows)))

    job = ProcessorHarness(
        Doing(counted), inputs="word double, amount bigint", output="word string, total bigint"
    ).begin()
    rows = [{"word": word, "amount": 1} for word in (None, float("nan"), float("-nan"), None)]

    assert job.process(*rows) == [
        {"word": "(None,)", "total": 2},
        {"word": "(nan,)", "total": 2},
    ]


def test_rows_behave_as_those_of_pyspark():
    """D1."""
    seen = []

    def look(key, rows):
        for row in rows:
            seen.append(row)
            assert key == (row.word,) == (row["word"],)
        return ()

    ProcessorHarness(Doing(look), inputs="word string, count bigint").begin().process(
        {"word": "a", "count": 3}
    )

    assert seen == [Row(word="a", count=3)]
    assert repr(seen[0]) == "Row(word='a', count=3)"
    assert seen[0].asDict() == {"word": "a", "count": 3}
    assert callable(seen[0].count), "the method of tuples, as on every Row"


@pytest.mark.parametrize(
    "row",
    [
        Row(word="a", total=1),
        Row(total=1, word="a"),
        Row(total=1, word="a", more="ignored"),
        ("a", 1),
        {"total": 1, "word": "a"},
    ],
)
def test_output_counts_by_name_where_it_has_names_and_else_by_position(row):
    """D1."""
    job = ProcessorHarness(Doing(lambda *_: [row])).begin()

    assert job.words("a") == [{"word": "a", "total": 1}]


@pytest.mark.parametrize(
    ("mode", "times"),
    [("None", [-1, -1]), ("processingTime", [5_000, 4_000]), ("EventTime", [5_000, 4_000])],
)
def test_a_processor_sees_the_times_of_its_mode(mode, times):
    """D1, D6: the watermark in both modes that have a time."""
    job = ProcessorHarness(Times(), time_mode=mode, clock=ManualClock(5_000)).begin()
    job.operator.advance(4_000)

    assert [row["total"] for row in job.words("a")] == times


def test_each_operator_runs_a_processor_of_its_own():
    """R3: a slot that is reset in place begins with what the user wrote."""
    processor = Doing(lambda *_: [])
    ProcessorHarness(processor).begin()

    assert not hasattr(processor, "handle")


def test_an_empty_batch_and_a_flush_give_nothing():
    job = ProcessorHarness(RunningTotal()).begin()

    assert job.process() == []
    assert list(job.operator.flush()) == []
    assert list(job.operator.finish()) == []


def test_close_reaches_the_processor():
    """D1."""
    closed = []

    class Closing(RunningTotal):
        def close(self):
            closed.append(self)

    job = ProcessorHarness(Closing()).begin()
    job.operator.close()

    assert len(closed) == 1


def test_what_is_no_processor_is_refused():
    """U3."""
    with pytest.raises(JobRejected, match="a str is no StatefulProcessor"):
        ProcessorHarness("count please").begin()


def test_states_are_declared_in_init_only():
    """U3."""

    class Late(RunningTotal):
        def init(self, handle):
            self.handle = handle

        def handleInputRows(self, *_):  # noqa: N802 - PySpark's name
            return iter([self.handle.getValueState("late", "n int")])

    job = ProcessorHarness(Late()).begin()

    with pytest.raises(JobRejected, match="'late' is asked for outside of init"):
        job.words("a")
