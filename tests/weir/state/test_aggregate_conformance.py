"""Every state backend keeps the same running aggregates, and restores those of another one."""

from datetime import date

import pyarrow as pa
import pytest

from captured_state import MAX_PARALLELISM, a_place, whole, written
from weir.core.ids import CheckpointId
from weir.core.key_groups import range_of
from weir.dataflow.physical import Aggregate
from weir.ports.operators import RestoredState
from weir.state.memory.memory_backend import MemoryBackend
from weir.wire.keys import key_groups

ROWS = pa.schema(
    [("word", pa.string()), ("at", pa.struct([("d", pa.date32())])), ("n", pa.int64())]
)
SUMS = (Aggregate("sum", "n", "total"), Aggregate("min", "n", "least"), Aggregate("count", "", "c"))


def a_batch(numbers):
    return pa.RecordBatch.from_pylist(
        [
            {
                "word": None if number % 11 == 0 else f"w{number % 50}",
                "at": None
                if number % 7 == 0
                else {"d": None if number % 5 == 0 else date(2026, 1, 1)},
                "n": None if number % 13 == 0 else number,
            }
            for number in numbers
        ],
        schema=ROWS,
    )


KEY_FIELDS = tuple(ROWS.field(name) for name in ("word", "at"))


class Sums:
    """A backend with running aggregates, used as their operator uses it."""

    def __init__(self, make, place=None):
        self.backend = make(place or a_place(), KEY_FIELDS)
        self.table = self.backend.aggregates(SUMS, ROWS)
        self.emitted = {}

    def take(self, batch):
        row_numbers = self.table.update(batch)
        columns = [column.to_pylist() for column in self.table.rows(row_numbers)]
        for word, day, *sums in zip(*columns, strict=True):
            self.emitted[word, str(day)] = sums
        self.backend.flushed()
        return self

    def restored(self, files):
        assert self.backend.restore(RestoredState(keyed=files)) == []
        return self


def expected_sums(*batches):
    found = {}
    for row in (row for batch in batches for row in batch.to_pylist()):
        total, least, count = found.get((row["word"], str(row["at"])), (None, None, 0))
        n = row["n"]
        if n is not None:
            total = (total or 0) + n
            least = n if least is None else min(least, n)
        found[row["word"], str(row["at"])] = [total, least, count + 1]
    return found


def test_aggregates_are_those_of_all_rows(make_backend):
    """S1 S14: with nulls and structs among the keys, and values that are null."""
    batches = [a_batch(range(first, first + 700)) for first in range(0, 2_100, 700)]
    sums = Sums(make_backend)
    for batch in batches:
        sums.take(batch)

    assert sums.emitted == expected_sums(*batches)


def test_a_capture_of_aggregates_does_not_see_later_rows(make_backend):
    """S3 C1 S14."""
    sums = Sums(make_backend).take(a_batch(range(900)))
    captured = sums.backend.capture(CheckpointId(1))
    sums.take(a_batch(range(900, 2_000)))
    files = [(piece.groups, piece.write()) for piece in captured.keyed]
    captured.release()
    restored = Sums(make_backend).restored(files).take(a_batch(range(100)))

    known = expected_sums(a_batch(range(900)), a_batch(range(100)))
    assert restored.emitted.items() <= known.items()
    assert sum(whole(file).table.num_rows for file in files) == len(known)


def test_only_the_backend_in_memory_keeps_old_aggregates_in_memory(rocksdb_backends):
    """R7 S14: the budget of a slot's memory goes by it."""
    for make, is_in_memory in ((MemoryBackend, True), (rocksdb_backends, False)):
        captured = Sums(make).take(a_batch(range(10))).backend.capture(CheckpointId(1))
        captured.release()

        assert captured.keyed
        assert captured.is_in_memory is is_in_memory


def test_a_capture_keeps_its_moment_when_rows_are_written_back(make_backend):
    """S3 C1 S14: more keys than the least memory holds come between a capture and its upload."""
    sums = Sums(make_backend).take(numbered(60_000, 1)).take(numbered(60_000, 2))
    captured = sums.backend.capture(CheckpointId(1))
    sums.take(numbered(60_000, 3)).take(numbered(60_000, 4))
    (state,) = map(whole, [(piece.groups, piece.write()) for piece in captured.keyed])
    captured.release()

    assert state.table.num_rows == 60_000
    assert set(state.table["sum(n)"].to_pylist()) == {3}


def numbered(count, n):
    words = pa.array([f"word {number}" for number in range(count)])
    days = pa.nulls(count, ROWS.field("at").type)
    return pa.RecordBatch.from_arrays([words, days, pa.array([n] * count)], schema=ROWS)


def test_a_removed_key_begins_afresh_and_leaves_the_others_alone(make_backend):
    """S1 S14: whether it was written back before or not, and while others take its place."""
    sums = Sums(make_backend).take(numbered(100, 1))
    there = sums.table.update(numbered(50, 2))
    sums.table.remove(there[:20])
    sums.take(numbered(100, 4))

    assert {sums.emitted[f"word {number}", "None"][0] for number in range(20)} == {4}
    assert {sums.emitted[f"word {number}", "None"][0] for number in range(20, 50)} == {7}
    assert {sums.emitted[f"word {number}", "None"][0] for number in range(50, 100)} == {5}


def test_a_removed_key_is_in_no_later_snapshot(make_backend, make_other_backend):
    """S4 S14."""
    sums = Sums(make_backend).take(numbered(100, 1))
    sums.table.remove(sums.table.update(numbered(40, 2)))
    sums.backend.flushed()
    restored = Sums(make_other_backend).restored(written(sums.backend)).take(numbered(100, 4))

    assert {restored.emitted[f"word {number}", "None"][0] for number in range(40)} == {4}
    assert {restored.emitted[f"word {number}", "None"][0] for number in range(40, 100)} == {5}


@pytest.mark.parametrize("parallelism", range(1, 9))
def test_aggregates_move_between_parallelisms_and_backends(
    make_backend, make_other_backend, parallelism
):
    """S11 S10 S14."""
    before, after = a_batch(range(1_500)), a_batch(range(1_500, 3_000))
    files = written(Sums(make_backend).take(before).backend)
    groups = key_groups(after, ("word", "at"), MAX_PARALLELISM)
    emitted = {}
    for index in range(parallelism):
        mine = range_of(index, parallelism, MAX_PARALLELISM)
        sums = Sums(make_other_backend, a_place(index, parallelism))
        sums.restored([(mine, data) for _, data in files])
        sums.take(after.filter(pa.array((groups >= mine.first) & (groups <= mine.last))))
        emitted |= sums.emitted

    assert emitted.items() <= expected_sums(before, after).items()
    assert set(emitted) == {(row["word"], str(row["at"])) for row in after.to_pylist()}
