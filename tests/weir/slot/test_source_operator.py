"""A source's splits: each is read on from where a checkpoint left it, and none starves another."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from fake_connectors import ONE, TWO, FakeSource, numbers_of
from weir.core.enumerator import AssignSplit, NoMoreSplits, NoSplitsYet
from weir.core.ids import CheckpointId, SplitId
from weir.core.snapshots import Redistribution
from weir.dataflow.physical import SourceHead
from weir.ports.operators import RestoredState
from weir.slot.event_time import FOREVER, LONG_AGO
from weir.slot.source_operator import SPLITS, SourceOperator


def an_operator(source, *splits):
    operator = SourceOperator(SourceHead(source))
    for split in splits:
        operator.answered(AssignSplit(split))
    return operator


def captured(operator):
    """The splits of a snapshot."""
    (piece,) = [piece for piece in operator.capture(CheckpointId(1)).lists if piece.name == SPLITS]
    return piece


def heritage_of(*operators):
    """What one subtask restores of these ones' snapshots."""
    lists = {}
    for operator in operators:
        for piece in operator.capture(CheckpointId(1)).lists:
            lists.setdefault(piece.name, []).extend(piece.items)
    return RestoredState(lists=lists)


def read_all(operator, at_once=2):
    batches = []
    while (batch := operator.poll(at_once)) is not None:
        batches.append(batch)
    return numbers_of(batches)


def test_splits_take_turns():
    """A11: one that never ends does not keep the others from being read."""
    operator = an_operator(FakeSource({ONE: [1, 2, 3, 4], TWO: [10, 20]}), ONE, TWO)
    assert read_all(operator, at_once=1) == [1, 10, 2, 20, 3, 4]


def test_a_split_that_has_nothing_at_the_moment_is_passed_over():
    """R6."""
    source = FakeSource({ONE: [], TWO: [10]})
    operator = an_operator(source, ONE, TWO)
    assert read_all(operator) == [10]
    source.feed(1)
    assert read_all(operator) == [1]


def test_positions_survive_a_snapshot():
    """C1, R5: what was read is behind the position, what was not is before it."""
    source = FakeSource({ONE: [1, 2, 3], TWO: [10, 20, 30]})
    operator = an_operator(source, ONE, TWO)
    read = numbers_of([operator.poll(2), operator.poll(1)])
    piece = captured(operator)
    heir = SourceOperator(SourceHead(source))
    heir.restore(RestoredState(lists={SPLITS: piece.items}))
    assert sorted(read + read_all(heir)) == [1, 2, 3, 10, 20, 30]


def test_positions_are_shared_out_one_by_one():
    """S11: at another parallelism each split still has exactly one reader."""
    piece = captured(an_operator(FakeSource({ONE: [1], TWO: [2]}), ONE, TWO))
    assert (piece.name, piece.redistribution) == (SPLITS, Redistribution.SPLIT)
    assert len(piece.items) == 2


def test_a_split_that_is_read_to_its_end_is_in_no_snapshot():
    """R5: it is never read again."""
    source = FakeSource({ONE: [1], TWO: [2]}, is_bounded=True)
    operator = an_operator(source, ONE, TWO)
    assert read_all(operator) == [1, 2]
    assert captured(operator).items == ()
    assert [reader.closed for reader in source.readers] == [True, True]


def test_a_reader_asks_when_it_has_nothing_left_and_not_again_before_the_answer():
    """C4."""
    operator = an_operator(FakeSource({ONE: [1]}, is_bounded=True))
    assert operator.wants_split
    operator.ask()
    assert not operator.wants_split
    operator.answered(AssignSplit(ONE))
    assert not operator.wants_split
    operator.poll(1)
    assert operator.wants_split


def test_a_reader_of_endless_splits_asks_for_every_one_it_can_get():
    """R6: a split that never ends would otherwise be its last."""
    operator = an_operator(FakeSource({ONE: [1]}, is_endless=True), ONE)
    assert operator.wants_split


def test_a_source_is_over_when_no_more_splits_come_and_none_is_left():
    """R6."""
    operator = an_operator(FakeSource({ONE: [1]}, is_bounded=True), ONE)
    operator.answered(NoMoreSplits())
    assert not operator.is_over
    assert not operator.wants_split
    operator.poll(1)
    assert operator.is_over


def test_a_source_rests_as_long_as_the_most_eager_of_its_splits():
    """An idle source costs nothing, and a busy one has no delay."""
    source = FakeSource({ONE: []}, rest_ms=70)
    operator = an_operator(source, ONE)
    assert operator.poll(1) is None
    assert operator.rest_ms == 70


def test_a_source_whose_last_split_ended_empty_asks_for_the_next_at_once():
    """The rest of a split that was read to its end does not count."""
    operator = an_operator(FakeSource({ONE: []}, rest_ms=70, is_bounded=True), ONE)
    assert operator.poll(1) is None
    assert (operator.wants_split, operator.rest_ms) == (True, 0)


def test_a_closed_source_closes_every_split():
    """R3."""
    source = FakeSource({ONE: [1], TWO: [2]})
    an_operator(source, ONE, TWO).close()
    assert [reader.closed for reader in source.readers] == [True, True]


# Event time

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)


class TimedSource(FakeSource):
    """The numbers are microseconds after noon."""

    def __init__(self, kind, *, is_bounded=False, **splits):
        fed = {SplitId(name): list(rows) for name, rows in splits.items()}
        super().__init__(fed, at_once=1, is_bounded=is_bounded)
        self.kind = kind

    def open(self, split, position):
        reader = super().open(split, position)
        return TimedReader(reader, self.kind)


class TimedReader:
    """Scheduler numbers into times."""

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


def a_timed_operator(kind=None, delay_ms=0, *, is_bounded=False, **splits):
    source = TimedSource(kind or pa.timestamp("us", "UTC"), is_bounded=is_bounded, **splits)
    operator = SourceOperator(SourceHead(source, event_time="at", delay_ms=delay_ms))
    for split in splits:
        operator.answered(AssignSplit(SplitId(split)))
    return operator


def restored(*operators):
    """One subtask that goes on where these ones were captured; all splits are in one storage."""
    heir = a_timed_operator(is_bounded=True)
    for operator in operators:
        heir._head.source.splits.update(operator._head.source.splits)  # noqa: SLF001 - storage
    heir.restore(heritage_of(*operators))
    return heir


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
    assert restored(operator).low_watermark() == NOON_MS + 10


def test_a_source_that_is_over_promises_everything():
    """D4."""
    operator = a_timed_operator()
    operator.answered(NoMoreSplits())
    assert operator.low_watermark() == FOREVER


def assign(operator, **splits):
    """The enumerator gives out splits that were found since."""
    for name, rows in splits.items():
        operator._head.source.splits[SplitId(name)] = rows  # noqa: SLF001 - its storage
        operator.answered(AssignSplit(SplitId(name)))


def test_a_split_that_is_read_in_one_batch_moves_the_watermark():
    """D4: most files of a directory are smaller than a batch."""
    operator = a_timed_operator(delay_ms=5, is_bounded=True, one=[10_000])
    operator.poll(1)
    assert operator.low_watermark() == NOON_MS + 10 - 5


def test_time_does_not_turn_back_when_another_split_begins():
    """D4: what exhausted splits have reached stays reached."""
    operator = a_timed_operator(is_bounded=True, one=[10_000])
    operator.poll(1)
    assign(operator, two=[3_000, 20_000])
    assert operator.low_watermark() == NOON_MS + 10
    operator.poll(1)
    assert operator.low_watermark() == NOON_MS + 10
    operator.poll(1)
    assert operator.low_watermark() == NOON_MS + 20


def test_an_exhausted_split_is_not_ahead_of_those_that_are_still_read():
    """D4: and counts once they are read too."""
    operator = a_timed_operator(is_bounded=True, ahead=[90_000], behind=[10_000, 20_000])
    operator.poll(1)
    assert operator.low_watermark() == LONG_AGO
    operator.poll(1)
    assert operator.low_watermark() == NOON_MS + 10
    operator.poll(1)
    assert operator.low_watermark() == NOON_MS + 90


def test_an_exhausted_split_no_longer_holds_time_back():
    """D4: though no row tells that it is exhausted."""
    source = TimedSource(pa.timestamp("us", "UTC"), ahead=[90_000], behind=[10_000])
    operator = SourceOperator(SourceHead(source, event_time="at"))
    operator.answered(AssignSplit(SplitId("behind")))
    operator.answered(AssignSplit(SplitId("ahead")))
    operator.poll(1)
    operator.poll(1)
    assert operator.low_watermark() == NOON_MS + 10
    source.readers[0].source = FakeSource(is_bounded=True)
    assert operator.poll(1) is None
    assert operator.low_watermark() == NOON_MS + 90


def test_the_time_of_exhausted_splits_survives_a_snapshot():
    """D4, A10: a barrier may overtake the watermark, and no row comes to tell the time again."""
    operator = a_timed_operator(is_bounded=True, one=[10_000])
    operator.poll(1)
    heir = restored(operator)
    assert heir.low_watermark() == NOON_MS + 10
    assign(heir, two=[3_000])
    assert heir.low_watermark() == NOON_MS + 10


def test_the_time_of_exhausted_splits_counts_again_after_a_restore():
    """D4: once the splits beside them are read too, as without the restore."""
    operator = a_timed_operator(is_bounded=True, ahead=[90_000], behind=[10_000, 20_000])
    operator.poll(1)
    operator.poll(1)
    heir = restored(operator)
    assert heir.low_watermark() == NOON_MS + 10
    heir.poll(1)
    assert heir.low_watermark() == NOON_MS + 90


def test_one_heir_of_two_readers_promises_no_more_than_both_did():
    """A10: a restore at another parallelism is never ahead."""
    ahead = a_timed_operator(is_bounded=True, one=[90_000])
    behind = a_timed_operator(is_bounded=True, two=[10_000, 20_000])
    ahead.poll(1)
    behind.poll(1)
    assert restored(ahead, behind).low_watermark() == NOON_MS + 10


def test_a_reader_is_idle_once_it_knows_that_there_is_nothing_to_read():
    """D4: not while its request is under way, for its next split may be behind the others."""
    operator = a_timed_operator(is_bounded=True, one=[10_000])
    operator.poll(1)
    operator.ask()
    assert not operator.is_idle
    operator.answered(NoSplitsYet())
    assert operator.is_idle
    assert not operator.wants_split
    assign(operator, two=[20_000])
    assert not operator.is_idle


def test_a_reader_that_tells_no_time_is_never_idle():
    """D4: a stream without a watermark holds event time back."""
    operator = an_operator(FakeSource({ONE: [1]}, is_bounded=True))
    operator.ask()
    operator.answered(NoSplitsYet())
    assert not operator.is_idle
