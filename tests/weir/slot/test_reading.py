"""A source's splits: each is read on from where a checkpoint left it, and none starves another."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from fed_jobs import ONE, TWO, FedSource, numbers_of
from weir.core.enumerator import AssignSplit, NoMoreSplits
from weir.core.ids import CheckpointId, SplitId
from weir.core.snapshots import Redistribution
from weir.dataflow.physical import SourceHead
from weir.ports.operators import Heritage
from weir.slot.event_time import FOREVER, LONG_AGO
from weir.slot.reading import SPLITS, SourceOperator


def an_operator(source, *splits):
    operator = SourceOperator(SourceHead(source))
    for split in splits:
        operator.hear(AssignSplit(split))
    return operator


def captured(operator):
    (piece,) = operator.capture(CheckpointId(1)).lists
    return piece


def read_all(operator, at_once=2):
    batches = []
    while (batch := operator.poll(at_once)) is not None:
        batches.append(batch)
    return numbers_of(batches)


def test_splits_take_turns():
    """A11: one that never ends does not keep the others from being read."""
    operator = an_operator(FedSource({ONE: [1, 2, 3, 4], TWO: [10, 20]}), ONE, TWO)
    assert read_all(operator, at_once=1) == [1, 10, 2, 20, 3, 4]


def test_a_split_that_has_nothing_at_the_moment_is_passed_over():
    """R6."""
    source = FedSource({ONE: [], TWO: [10]})
    operator = an_operator(source, ONE, TWO)
    assert read_all(operator) == [10]
    source.feed(1)
    assert read_all(operator) == [1]


def test_positions_survive_a_snapshot():
    """C1, R5: what was read is behind the position, what was not is before it."""
    source = FedSource({ONE: [1, 2, 3], TWO: [10, 20, 30]})
    operator = an_operator(source, ONE, TWO)
    read = numbers_of([operator.poll(2), operator.poll(1)])
    piece = captured(operator)
    heir = SourceOperator(SourceHead(source))
    heir.restore(Heritage(lists={SPLITS: piece.items}))
    assert sorted(read + read_all(heir)) == [1, 2, 3, 10, 20, 30]


def test_positions_are_shared_out_one_by_one():
    """S11: at another parallelism each split still has exactly one reader."""
    piece = captured(an_operator(FedSource({ONE: [1], TWO: [2]}), ONE, TWO))
    assert (piece.name, piece.redistribution) == (SPLITS, Redistribution.SPLIT)
    assert len(piece.items) == 2


def test_a_split_that_is_read_to_its_end_is_in_no_snapshot():
    """R5: it is never read again."""
    source = FedSource({ONE: [1], TWO: [2]}, is_bounded=True)
    operator = an_operator(source, ONE, TWO)
    assert read_all(operator) == [1, 2]
    assert captured(operator).items == ()
    assert [reader.closed for reader in source.readers] == [True, True]


def test_a_reader_asks_when_it_has_nothing_left_and_not_again_before_the_answer():
    """C4."""
    operator = an_operator(FedSource({ONE: [1]}, is_bounded=True))
    assert operator.wants_split
    operator.ask()
    assert not operator.wants_split
    operator.hear(AssignSplit(ONE))
    assert not operator.wants_split
    operator.poll(1)
    assert operator.wants_split


def test_a_reader_of_endless_splits_asks_for_every_one_it_can_get():
    """R6: a split that never ends would otherwise be its last."""
    operator = an_operator(FedSource({ONE: [1]}, is_endless=True), ONE)
    assert operator.wants_split


def test_a_source_is_over_when_no_more_splits_come_and_none_is_left():
    """R6."""
    operator = an_operator(FedSource({ONE: [1]}, is_bounded=True), ONE)
    operator.hear(NoMoreSplits())
    assert not operator.is_over
    assert not operator.wants_split
    operator.poll(1)
    assert operator.is_over


def test_a_source_rests_as_long_as_the_most_eager_of_its_splits():
    """An idle source costs nothing, and a busy one has no delay."""
    source = FedSource({ONE: []}, rest_ms=70)
    operator = an_operator(source, ONE)
    assert operator.poll(1) is None
    assert operator.rest_ms == 70


def test_a_source_whose_last_split_ended_empty_asks_for_the_next_at_once():
    """What a split that is gone says about resting concerns nobody."""
    operator = an_operator(FedSource({ONE: []}, rest_ms=70, is_bounded=True), ONE)
    assert operator.poll(1) is None
    assert (operator.wants_split, operator.rest_ms) == (True, 0)


def test_a_closed_source_closes_every_split():
    """R3."""
    source = FedSource({ONE: [1], TWO: [2]})
    an_operator(source, ONE, TWO).close()
    assert [reader.closed for reader in source.readers] == [True, True]


# Event time

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)


class TimedSource(FedSource):
    """The numbers are microseconds after noon."""

    def __init__(self, kind, **splits):
        super().__init__({SplitId(name): list(rows) for name, rows in splits.items()}, at_once=1)
        self.kind = kind

    def open(self, split, position):
        reader = super().open(split, position)
        return TimedReader(reader, self.kind)


class TimedReader:
    """Turns numbers into times."""

    def __init__(self, reader, kind):
        self._reader = reader
        self._kind = kind

    def __getattr__(self, name):
        return getattr(self._reader, name)

    def read(self, wanted):
        batch = self._reader.read(wanted)
        if batch is None:
            return None
        micros = [None if n < 0 else NOON_MS * 1000 + n for n in numbers_of([batch])]
        at = pa.array(micros, pa.timestamp("us")).cast(self._kind, safe=False)
        return pa.record_batch({"at": at})


def a_timed_operator(kind=None, delay_ms=0, **splits):
    source = TimedSource(kind or pa.timestamp("us", "UTC"), **splits)
    operator = SourceOperator(SourceHead(source, event_time="at", delay_ms=delay_ms))
    for split in splits:
        operator.hear(AssignSplit(SplitId(split)))
    return operator


@pytest.mark.parametrize(
    "kind",
    [
        pa.timestamp("s"),
        pa.timestamp("ms", "UTC"),
        pa.timestamp("us"),
        pa.timestamp("us", "Europe/Berlin"),
        pa.timestamp("ns", "UTC"),
    ],
    ids=str,
)
def test_times_of_every_unit_make_watermarks(kind):
    """D4: PySpark's own timestamps have microseconds, and a watermark is never ahead of them."""
    operator = a_timed_operator(kind, one=[2_999_999])
    operator.poll(1)
    exact = NOON_MS + 2_999
    assert exact - 999 <= operator.low_watermark() <= exact


def test_the_watermark_is_that_of_the_slowest_split_less_the_delay():
    """D4: watermarks per source split."""
    operator = a_timed_operator(delay_ms=5, one=[10_000], two=[90_000])
    operator.poll(1)
    assert operator.low_watermark() == LONG_AGO
    operator.poll(1)
    assert operator.low_watermark() == NOON_MS + 10 - 5


def test_a_late_row_does_not_turn_time_back():
    """D4."""
    operator = a_timed_operator(one=[10_000, 3_000])
    operator.poll(1)
    operator.poll(1)
    assert operator.low_watermark() == NOON_MS + 10


def test_rows_without_a_time_say_nothing_about_it():
    """D4."""
    operator = a_timed_operator(one=[-1])
    operator.poll(1)
    assert operator.low_watermark() == LONG_AGO


def test_the_time_of_a_split_survives_a_snapshot():
    """D4: watermarks are part of the checkpoint."""
    operator = a_timed_operator(one=[10_000], two=[20_000])
    operator.poll(1)
    operator.poll(1)
    piece = captured(operator)
    heir = a_timed_operator()
    heir._head.source.splits.update(operator._head.source.splits)  # noqa: SLF001 - one storage
    heir.restore(Heritage(lists={SPLITS: piece.items}))
    assert heir.low_watermark() == NOON_MS + 10


def test_a_source_that_is_over_promises_everything():
    """D4."""
    operator = a_timed_operator()
    operator.hear(NoMoreSplits())
    assert operator.low_watermark() == FOREVER
