"""Timers of a processor fire in order, by the clock or by the watermark."""

import pytest

from one_processor import ProcessorUnderTest, written
from spark_processors import Reminder
from weir.connectors.pyspark.processor import FIRED_AT_ONCE
from weir.errors import JobRejected


def reminder(mode):
    return ProcessorUnderTest(Reminder(), time_mode=mode)


def test_a_timer_by_event_time_fires_when_the_watermark_is_past_it():
    """S1, D6: at the very millisecond of the watermark a timer is not due, as in Spark."""
    job = reminder("EventTime").begin()
    job.process({"word": "a", "amount": 5_000})

    job.operator.advance(5_000)
    assert not job.operator.is_due()
    job.operator.advance(5_001)
    assert job.fire() == [{"word": "a", "total": 5_000}]
    assert not job.operator.is_due()


def test_a_timer_by_the_clock_fires_when_the_clock_is_past_it():
    """S1, D6: and the slot is told when that will be."""
    job = reminder("ProcessingTime").begin()
    job.process({"word": "a", "amount": 5_000})

    assert job.operator.next_timer() == 5_001
    job.clock.now = 5_000
    assert not job.operator.is_due()
    job.clock.now = 5_001
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
    """A11."""
    job = reminder("EventTime").begin()
    rows = ({"word": str(n), "amount": 10} for n in range(FIRED_AT_ONCE + 1))
    job.process(*rows)
    job.operator.advance(11)

    (batch,) = job.operator.fire()
    assert batch.num_rows == FIRED_AT_ONCE
    assert job.operator.is_due()
    assert len(job.fire()) == 1


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
