"""One subtask in its slot: time that waits for all inputs, timers that can be interrupted, ends."""

from collections import deque

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_connectors import NUMBERS, WORK_0, FakeSink, FakeSource, a_chain, numbers_of, rows
from weir.core.alignment import Aligner
from weir.core.barriers import EndOfData, Idle, Watermark
from weir.core.channels import Inbox, Outbox, is_batch
from weir.core.coordinator.events import EndOfDataReached
from weir.core.ids import ChannelId, EdgeId, Millis
from weir.core.scheduler import ProcessBatches
from weir.core.task import Task
from weir.exchange.batch_sizes import BATCH_BYTES
from weir.exchange.routing import Router
from weir.slot.event_time import FOREVER, EventTime
from weir.slot.pipeline import Pipeline
from weir.slot.relay import Stateless
from weir.slot.subtask_runner import OUTPUT_LIMIT, SMALL_ROWS, SubtaskRunner, merged

TOPOLOGY = a_chain(FakeSource(), FakeSink()).topology
A, B = (ChannelId(EdgeId("rows"), sender, 0) for sender in (0, 1))
OUT = ChannelId(EdgeId("done"), 0, 0)
PLENTY = 1_000


class Home:
    """Notes what leaves the subtask."""

    def __init__(self):
        self.sent = []
        self.said = []

    def transmit(self, _, channel, element):
        assert channel == OUT
        self.sent.append(element)

    def say(self, event):
        self.said.append(event)


class Alarms(Stateless):
    """An operator with timers by event time: firing one emits its time."""

    def __init__(self, *times):
        self._waiting = deque(sorted(times))
        self._now = None
        self.buffered = []

    def process(self, _, batch):
        self.buffered.append(batch)
        return ()

    def flush(self):
        buffered, self.buffered = self.buffered, []
        return buffered

    def advance(self, watermark):
        self._now = watermark

    def is_due(self):
        return self._now is not None and bool(self._waiting) and self._waiting[0] <= self._now

    def fire(self):
        yield rows(self._waiting.popleft())

    def finish(self):
        return (*self.flush(), rows(-1))


class NeverDone(Alarms):
    """Firing a timer sets the next, due at once, until somebody stops it."""

    stopped = False

    def is_due(self):
        return not self.stopped

    def fire(self):
        return ()


def a_hosted(operator, *channels):
    task = Task(
        WORK_0,
        Aligner(channels),
        {channel: Inbox(channel) for channel in channels},
        {OUT: Outbox(OUT, PLENTY)},
    )
    router = Router(TOPOLOGY, TOPOLOGY.edge_by_id[EdgeId("done")], 0)
    time = EventTime(channels)
    return SubtaskRunner(Home(), (1, 1), task, operator, Pipeline(()), (router,), None, time)


def elements(hosted):
    """Batches as lists of numbers, markers as they are."""
    return [numbers_of([e]) if is_batch(e) else e for e in hosted.home.sent]


# Time


def test_time_goes_on_downstream_when_the_last_input_has_come_that_far():
    """D4."""
    hosted = a_hosted(Alarms(), A, B)
    assert hosted.advance(A, Watermark(Millis(10)))
    assert elements(hosted) == []
    assert hosted.advance(B, Watermark(Millis(7)))
    assert elements(hosted) == [Watermark(7)]


def test_a_subtask_is_idle_where_all_its_inputs_are():
    """D4: behind the time that the latest of them had reached."""
    hosted = a_hosted(Alarms(3), A, B)
    hosted.advance(A, Watermark(Millis(10)))
    hosted.advance(A, Idle())
    assert elements(hosted) == []
    hosted.advance(B, Idle())
    assert elements(hosted) == [[3], Watermark(10), Idle()]


def test_a_subtask_goes_on_with_the_first_of_its_inputs():
    """D4: and says so, though time stays where it is."""
    hosted = a_hosted(Alarms(), A, B)
    for channel in (A, B):
        hosted.advance(channel, Watermark(Millis(10)))
        hosted.advance(channel, Idle())
    hosted.home.sent.clear()
    hosted.advance(A, Watermark(Millis(10)))
    assert elements(hosted) == [Watermark(10)]
    hosted.advance(A, Idle())
    assert elements(hosted) == [Watermark(10), Idle()]


def test_timers_fire_before_the_watermark_that_made_them_due():
    """D4: no row behind a watermark is older."""
    hosted = a_hosted(Alarms(3, 9), A)
    hosted.advance(A, Watermark(Millis(5)))
    assert elements(hosted) == [[3], Watermark(5)]


def test_what_is_buffered_goes_before_the_watermark():
    """D4, A1."""
    hosted = a_hosted(Alarms(), A)
    hosted.process(ProcessBatches(WORK_0, A, [rows(1)]))
    hosted.advance(A, Watermark(Millis(5)))
    assert elements(hosted) == [[1], Watermark(5)]


def test_the_same_time_is_told_once():
    """D4."""
    hosted = a_hosted(Alarms(), A)
    for _ in range(2):
        hosted.advance(A, Watermark(Millis(5)))
    assert elements(hosted) == [Watermark(5)]


def test_firing_timers_is_interrupted_after_a_turn_and_goes_on_later():
    """A11: timers and window firings are interruptible; the marker comes again."""
    hosted = a_hosted(NeverDone(), A)
    assert not hosted.advance(A, Watermark(Millis(5)))
    assert elements(hosted) == []
    hosted.operator.stopped = True
    assert hosted.advance(A, Watermark(Millis(5)))
    assert elements(hosted) == [Watermark(5)]


# Ends


def test_the_end_of_the_data_fires_every_timer_and_finishes_the_operator():
    """C11, C14: watermark to the maximum, timers fire, then the end."""
    hosted = a_hosted(Alarms(3, 9), A)
    assert hosted.advance(A, EndOfData())
    assert elements(hosted) == [[3], [9], [-1], EndOfData()]
    assert hosted.home.said == [EndOfDataReached(1, WORK_0)]


def test_the_data_ends_when_the_last_input_has_ended():
    """C14."""
    hosted = a_hosted(Alarms(), A, B)
    hosted.advance(A, EndOfData())
    assert not hosted.task.at_end
    hosted.advance(B, EndOfData())
    assert hosted.task.at_end


def test_the_end_of_the_data_comes_once():
    """C11: a draining savepoint may find the data at its end already."""
    hosted = a_hosted(Alarms(), A)
    hosted.end_of_data()
    hosted.end_of_data()
    assert elements(hosted) == [[-1], EndOfData()]


def test_an_input_that_ended_is_kept_as_that_in_the_snapshot():
    """A10, C14."""
    hosted = a_hosted(Alarms(), A)
    hosted.advance(A, EndOfData())
    assert hosted.time.by_edge() == ((EdgeId("rows"), FOREVER),)


# Turns


def test_a_turn_takes_as_many_rows_as_its_pace_allows_and_gives_the_rest_back():
    """A11."""
    hosted = a_hosted(Stateless(), A)
    hosted.pace.rows = 3
    rest = hosted.process(ProcessBatches(WORK_0, A, [rows(1, 2), rows(3, 4), rows(5)]))
    assert elements(hosted) == [[1, 2, 3]]
    assert numbers_of(rest) == [4, 5]
    assert (hosted.counts.rows_in, hosted.counts.rows_out) == (3, 3)


@given(st.lists(st.lists(st.integers(), min_size=1, max_size=9), min_size=1), st.integers(1, 20))
def test_turns_together_process_every_row_once_and_in_order(lists, pace):
    """A11, A1: however batches are merged and cut."""
    hosted = a_hosted(Stateless(), A)
    waiting = [rows(*(abs(n) % 1000 for n in numbers)) for numbers in lists]
    everything = numbers_of(waiting)
    while waiting:
        hosted.pace.rows = pace
        waiting = hosted.process(ProcessBatches(WORK_0, A, waiting))
    assert numbers_of(hosted.home.sent) == everything


def test_a_turn_ends_early_when_its_output_has_no_room_left():
    """R7: what it did not get to waits at the input, where credit bounds it."""
    hosted = a_hosted(Stateless(), A)
    hosted.task.outboxes[OUT].credit = 0
    long = pa.record_batch({"n": [0], "text": ["x" * BATCH_BYTES]})
    rest = hosted.process(ProcessBatches(WORK_0, A, [long] * 9))
    assert hosted.task.outboxes[OUT].batches == OUTPUT_LIMIT
    assert len(rest) == 9 - OUTPUT_LIMIT


def test_timers_wait_while_the_output_has_no_room():
    """R7, A11: the watermark comes again when there is."""
    hosted = a_hosted(Alarms(1, 2, 3), A)
    hosted.task.outboxes[OUT].credit = 0
    assert not hosted.advance(A, Watermark(Millis(10)))
    assert hosted.task.outboxes[OUT].batches == OUTPUT_LIMIT
    hosted.obey(hosted.task.granted(OUT, PLENTY))
    assert hosted.advance(A, Watermark(Millis(10)))
    assert elements(hosted) == [[1], [2], [3], Watermark(Millis(10))]


def test_small_batches_are_merged_and_large_ones_are_left_alone():
    """D3: each batch costs as much as a few hundred rows do."""
    large = rows(*range(SMALL_ROWS))
    long = pa.record_batch({"n": [0], "text": ["x" * BATCH_BYTES]})
    assert [batch.num_rows for batch in merged([rows(1), rows(2, 3)])] == [3]
    assert [batch.num_rows for batch in merged([rows(1), large])] == [1, SMALL_ROWS]
    assert [batch.num_rows for batch in merged([long, long])] == [1, 1]


def test_a_batch_on_its_own_is_not_copied():
    """D3."""
    (only,) = merged([batch := rows(1)])
    assert only is batch


def test_whatever_is_processed_is_a_batch():
    """A marker that got here would be lost."""
    with pytest.raises(AssertionError, match="is a batch"):
        merged([pa.record_batch([[]], schema=NUMBERS), EndOfData()])
