"""Timers of a processor fire in order, by the clock or by the watermark."""

from datetime import UTC, datetime

import pytest

from processor_harness import ProcessorHarness, written
from spark_processors import Reminder, RunningTotal
from weir.connectors.pyspark.processor import FIRED_AT_ONCE
from weir.errors import JobRejected
from weir.slot.event_time import FOREVER


def reminder(mode):
    return ProcessorHarness(Reminder(), time_mode=mode)


def test_a_timer_by_event_time_fires_when_the_watermark_reaches_it():
    """S1, D6: at the very millisecond of the watermark a timer is due, as in Spark."""
    job = reminder("EventTime").begin()
    job.process({"word": "a", "amount": 5_000})

    job.operator.advance(4_999)
    assert not job.operator.is_due()
    job.operator.advance(5_000)
    assert job.fire() == [{"word": "a", "total": 5_000}]
    assert not job.operator.is_due()


def test_a_timer_by_the_clock_fires_when_the_clock_reaches_it():
    """S1, D6: and the slot knows when that will be."""
    job = reminder("ProcessingTime").begin()
    job.process({"word": "a", "amount": 5_000})

    assert job.operator.next_timer() == 5_000
    job.clock.now = 4_999
    assert not job.operator.is_due()
    job.clock.now = 5_000
    assert job.fire() == [{"word": "a", "total": 5_000}]
    assert job.operator.next_timer() is None


def test_the_clock_alone_never_fires_a_timer_by_event_time():
    """D4."""
    job = reminder("EventTime").begin()
    job.process({"word": "a", "amount": 5_000})
    job.clock.now = 9_000

    assert job.operator.next_timer() is None
    assert not job.operator.is_due()


def test_timers_fire_by_their_time_whatever_their_key():
    """D6."""
    job = reminder("EventTime").begin()
    for word, expiry in (("a", 30), ("b", 10), ("a", 20)):
        job.process({"word": word, "amount": expiry})
    job.operator.advance(100)

    assert [(row["word"], row["total"]) for row in job.fire()] == [("b", 10), ("a", 20), ("a", 30)]


def test_timers_are_listed_and_deleted_by_key():
    """D1."""
    job = reminder("EventTime").begin()
    job.process({"word": "b", "amount": 10})
    job.process({"word": "a", "amount": 20}, {"word": "a", "amount": 10})

    assert job.process({"word": "a", "amount": -20}) == [{"word": "a waits", "total": 10}]
    job.operator.advance(100)
    assert [row["word"] for row in job.fire()] == ["b", "a"]


def test_one_call_fires_a_bounded_number():
    """A11: and fewer where that takes too long."""
    job = reminder("EventTime").begin()
    rows = ({"word": str(n), "amount": 10} for n in range(FIRED_AT_ONCE + 1))
    job.process(*rows)
    job.operator.advance(11)

    (batch,) = job.operator.fire()
    assert 0 < batch.num_rows <= FIRED_AT_ONCE
    assert job.operator.is_due()
    assert len(job.fire()) == FIRED_AT_ONCE + 1 - batch.num_rows


def test_timers_survive_a_restore():
    """S1."""
    job = reminder("EventTime").begin()
    job.process({"word": "a", "amount": 20}, {"word": "b", "amount": 10})

    again = reminder("EventTime").begin(written(job.capture()), watermark=15)

    assert again.operator.is_due(), "the restored watermark is past a timer"
    assert again.fire() == [{"word": "b", "total": 10}]
    again.operator.advance(21)
    assert again.fire() == [{"word": "a", "total": 20}]


def test_a_key_whose_last_timer_fired_leaves_nothing_behind():
    """S1."""
    job = reminder("EventTime").begin()
    job.process({"word": "a", "amount": 20})
    job.operator.advance(21)
    job.fire()

    assert job.capture().keyed == ()


def test_timers_of_another_time_mode_are_refused():
    """U3."""
    job = reminder("EventTime").begin()
    job.process({"word": "a", "amount": 20})

    with pytest.raises(JobRejected, match="restored timers go by EventTime"):
        reminder("ProcessingTime").begin(written(job.capture()))


def test_timers_without_a_time_are_refused():
    """U3."""
    job = reminder("None").begin()

    with pytest.raises(JobRejected, match="timers need a time"):
        job.process({"word": "a", "amount": 20})


class Swapped(Reminder):
    """Its parameters are in an order of its own."""

    def handleExpiredTimer(self, expiredTimerInfo, key, timerValues):  # noqa: N802, N803
        yield from super().handleExpiredTimer(key, timerValues, expiredTimerInfo)


def test_a_timer_is_handed_over_by_the_names_of_its_parameters():
    """D1: as PySpark does it."""
    job = ProcessorHarness(Swapped(), time_mode="EventTime").begin()
    job.process({"word": "a", "amount": 20})
    job.operator.advance(20)

    assert job.fire() == [{"word": "a", "total": 20}]


class Naming(Reminder):
    """Asks the key of a timer by its name."""

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):  # noqa: N802, N803, ARG002
        yield (key.word, expiredTimerInfo.getExpiryTimeInMs())


def test_the_key_of_a_timer_has_the_names_of_its_columns():
    """D1: as in PySpark, where it is a Row."""
    job = ProcessorHarness(Naming(), time_mode="EventTime").begin()
    job.process({"word": "a", "amount": 20})
    job.operator.advance(20)

    assert job.fire() == [{"word": "a", "total": 20}]


# Late rows


def in_time(mode, kind="timestamp"):
    return ProcessorHarness(
        RunningTotal(),
        inputs=f"word string, amount bigint, at {kind}",
        time_mode=mode,
        event_time="at",
    ).begin()


def at(second):
    return None if second is None else datetime.fromtimestamp(second, UTC)


def row(word, second):
    return {"word": word, "amount": 1, "at": at(second)}


def words(emitted):
    return [row["word"] for row in emitted]


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_a_row_behind_the_watermark_is_dropped_and_counted(kind):
    """D4, D9: Spark drops it too."""
    job = in_time("EventTime", kind)
    job.operator.advance(10_000)

    assert words(job.process(row("late", 9), row("edge", 10), row("new", 11))) == ["edge", "new"]
    assert job.operator.late_rows == 1


def test_a_row_that_tells_no_time_is_not_late():
    """D4: nor is it in Spark."""
    job = in_time("EventTime")
    job.operator.advance(10_000)

    assert words(job.process(row("when", None))) == ["when"]


def test_before_the_first_watermark_no_row_is_late():
    """D4: however long ago it was."""
    assert words(in_time("EventTime").process(row("old", -9))) == ["old"]


def test_a_job_that_goes_on_after_a_drain_takes_all_rows():
    """D4, C11: a drain ends all time, and a savepoint keeps that."""
    job = in_time("EventTime")
    job.operator.advance(FOREVER)

    assert words(job.process(row("new", 9))) == ["new"]


@pytest.mark.parametrize("mode", ["None", "ProcessingTime"])
def test_without_event_time_no_row_is_late(mode):
    """D4: as in Spark, though the stream has a watermark."""
    job = in_time(mode)
    job.operator.advance(10_000)

    assert words(job.process(row("old", 9))) == ["old"]


def test_a_restored_processor_knows_which_rows_are_late():
    """D4, A10: watermarks are part of the checkpoint."""
    job = ProcessorHarness(
        RunningTotal(),
        inputs="word string, amount bigint, at timestamp",
        time_mode="EventTime",
        event_time="at",
    ).begin(watermark=10_000)

    assert words(job.process(row("late", 9), row("new", 10))) == ["new"]
