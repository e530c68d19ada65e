"""A watermark that makes very many timers due is worked off in turns, with barriers in between."""

from dataclasses import dataclass, replace
from time import perf_counter

import pyarrow as pa
import pytest
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from fake_connectors import NUMBERS, ONE, READ_0, WORK_0, FakeReader, FakeSink, FakeSource, a_chain
from processor_harness import ProcessorHarness
from stepped_slots import SECOND, a_barrier, stepped_slots
from weir.connectors.pyspark.processor import FIRED_AT_ONCE, FIRING_SECONDS
from weir.core.barriers import AlignmentType
from weir.core.lifecycle import SubtaskRunning
from weir.dataflow.physical import ProcessorHead, RowsAs, SourceHead

TIMED = pa.schema([*NUMBERS, ("at", pa.timestamp("ms"))])
TIMERS = 600
MUCH_LATER = 10_000
SPIN_SECONDS = 0.0005


class Storm(StatefulProcessor):
    """Sets a timer for each number, all for one moment; a firing takes its time."""

    def init(self, handle):
        self.handle = handle

    def handleInputRows(self, key, rows, timerValues):  # noqa: N802, N803, ARG002 - PySpark's names
        list(rows)
        if key[0] < TIMERS:
            self.handle.registerTimer(100)
        return iter(())

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):  # noqa: N802, N803, ARG002
        until = perf_counter() + SPIN_SECONDS
        while perf_counter() < until:
            pass
        yield Row(n=key[0])


class TimedReader(FakeReader):
    """The last number comes much later than all others."""

    def read(self, rows_wanted):
        batch = super().read(rows_wanted)
        if batch is None:
            return None
        times = [MUCH_LATER if n == TIMERS else 1 for n in batch.column("n").to_pylist()]
        return pa.record_batch([batch.column("n"), pa.array(times, TIMED[1].type)], schema=TIMED)


@dataclass
class TimedSource(FakeSource):
    """Numbers with the time at which they happened."""

    @property
    def schema(self):
        return TIMED

    def open(self, split, position):
        reader = super().open(split, position)
        return TimedReader(reader.fed, reader.at, self)


def a_storm(source, sink):
    graph = a_chain(source, sink)
    read, work, write = graph.stages
    head = ProcessorHead(("n",), Storm(), RowsAs.ROWS, TIMED, NUMBERS, "EventTime")
    read = replace(read, head=SourceHead(source, event_time="at"), output=TIMED)
    return replace(graph, stages=(read, replace(work, head=head), write))


def test_a_call_takes_on_no_other_timer_when_its_time_is_over():
    """A11: a slow handler does not make the turn long."""
    job = ProcessorHarness(
        Storm(), inputs="n long", output="n long", keys=("n",), time_mode="EventTime"
    ).begin()
    job.process(*({"n": n} for n in range(FIRED_AT_ONCE)))
    job.operator.advance(101)

    fired = sum(batch.num_rows for batch in job.operator.fire())

    assert fired <= FIRING_SECONDS / SPIN_SECONDS + 1 < FIRED_AT_ONCE
    assert job.operator.is_due()


@pytest.fixture
def source():
    source = TimedSource()
    source.feed(*range(TIMERS + 1))
    return source


def test_a_barrier_is_taken_between_turns_and_the_rest_fires_after_the_restore(source):
    """A11, C1: what has not fired is in the snapshot, and each timer fires once."""
    sink = FakeSink()
    with stepped_slots(a_storm(source, sink)) as job:
        job.host()
        job.assign(READ_0, ONE)
        job.until(lambda: sink.written)
        (fired,) = (g.rows_out for g in job.slots[0].mailbox.gauges() if g.subtask == WORK_0)
        assert fired < TIMERS, "one turn did not fire them all"
        job.send(READ_0, a_barrier(1, alignment=AlignmentType.UNALIGNED))
        job.until(lambda: job.is_acked(1))
        assert len(sink.written) < TIMERS, "the barrier did not wait for the last timer"
        manifest = job.manifest(1)
    before = [n for rows in sink.sealed.values() for n in rows]

    again = FakeSink()
    with stepped_slots(a_storm(source, again)) as job:
        job.host(SECOND, manifest)
        job.until(lambda: SubtaskRunning(SECOND, WORK_0) in job.reports)
        job.until(lambda: len(before) + len(again.written) >= TIMERS)
        job.settle()

    assert sorted([*before, *again.written]) == list(range(TIMERS))
