"""When user code fails, the message leads to the line and the row."""

import pickle

import pytest
from pyspark.sql import Row

from processor_harness import ProcessorHarness
from spark_processors import Reminder, RunningTotal
from weir.ports.user_code_errors import UserCodeFailed


class DividesByAmount(RunningTotal):
    """Has a mistake that only some rows show."""

    def handleInputRows(self, key, rows, _timer_values):  # noqa: N802 - PySpark's name
        for row in rows:
            yield Row(word=key[0], total=100 // row.amount)


def test_a_failure_names_the_method_the_key_and_the_row():
    """U3."""
    job = ProcessorHarness(DividesByAmount()).begin()

    with pytest.raises(UserCodeFailed) as failed:
        job.process(*({"word": "a", "amount": amount} for amount in (1, 0, 2)))

    assert failed.value.doing == "DividesByAmount.handleInputRows for key ('a',)"
    assert failed.value.row == "row Row(word='a', amount=0)"
    assert isinstance(failed.value.__cause__, ZeroDivisionError)


def test_a_failure_names_the_lines_of_the_user():
    """U3: file, line and function of the user's own code, and none of Weir's."""
    job = ProcessorHarness(DividesByAmount()).begin()

    with pytest.raises(UserCodeFailed) as failed:
        job.process({"word": "a", "amount": 0})

    line = DividesByAmount.handleInputRows.__code__.co_firstlineno + 2
    message = str(failed.value)
    assert f"{__file__}:{line} in DividesByAmount.handleInputRows" in message
    assert "runtime/weir" not in message


def test_a_long_row_is_cut():
    """U3."""
    job = ProcessorHarness(DividesByAmount()).begin()

    with pytest.raises(UserCodeFailed) as failed:
        job.process({"word": "a" * 10_000, "amount": 0})

    assert len(f"{failed.value.doing} {failed.value.row}") < 600


def test_output_that_is_not_as_declared_names_the_first_such_row():
    """U3."""

    class Wrong(RunningTotal):
        def handleInputRows(self, key, rows, _timer_values):  # noqa: N802 - PySpark's name
            for row in rows:
                yield Row(word=key[0], total=row.amount or "none")

    job = ProcessorHarness(Wrong()).begin()

    with pytest.raises(UserCodeFailed, match=r"Row\(word='b', total='none'\).*total int64"):
        job.process({"word": "a", "amount": 1}, {"word": "b", "amount": 0})


def test_a_row_with_too_few_columns_is_refused():
    """U3."""

    class Short(RunningTotal):
        def handleInputRows(self, key, *_):  # noqa: N802 - PySpark's name
            yield key

    with pytest.raises(UserCodeFailed, match=r"row \('a',\)"):
        ProcessorHarness(Short()).begin().words("a")


def test_a_value_that_a_state_cannot_hold_is_refused_when_it_is_put_in():
    """S1, U3."""

    class Text(RunningTotal):
        def handleInputRows(self, key, *_):  # noqa: N802 - PySpark's name
            self.total.update(("many",))
            yield Row(word=key[0], total=0)

    with pytest.raises(UserCodeFailed, match=r"state 'total': field 'count' is bigint and cannot"):
        ProcessorHarness(Text()).begin().words("a")


def test_a_failing_timer_is_named():
    """U3."""

    class Broken(Reminder):
        def handleExpiredTimer(self, *_):  # noqa: N802 - PySpark's name
            raise RuntimeError("no")

    job = ProcessorHarness(Broken(), time_mode="EventTime").begin()
    job.process({"word": "a", "amount": 20})
    job.operator.advance(100)

    with pytest.raises(UserCodeFailed, match=r"for key \('a',\) failed at the timer of 20 ms"):
        job.fire()


def test_a_failing_init_is_named():
    """U3."""

    class Broken(RunningTotal):
        def init(self, _handle):
            raise RuntimeError("no")

    with pytest.raises(UserCodeFailed, match=r"Broken.init failed at no row: RuntimeError: no"):
        ProcessorHarness(Broken()).begin()


def test_a_failure_survives_pickle():
    """It travels from a slot's process to the driver's."""
    failed = pickle.loads(pickle.dumps(UserCodeFailed("counting", "row 3")))  # noqa: S301 - our own

    assert (failed.doing, failed.row) == ("counting", "row 3")
