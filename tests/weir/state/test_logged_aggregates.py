"""Every state backend restores running aggregates from its changelog as they were."""

import numpy as np
import pyarrow as pa
import pytest

from captured_state import a_place
from logged_state import POLICY, LoggedState, logged
from random_seed import dice
from weir.core.changelog import MOST_SEGMENTS
from weir.core.ids import CheckpointId
from weir.dataflow.physical import Aggregate
from weir.state.rocksdb.rocksdb_aggregates import RocksDBAggregates
from weir.state.snapshot_files import read_keyed

FATES = ("completes", "completes", "aborts after the ack", "aborts before the ack")
ROWS = pa.schema([("word", pa.string()), ("n", pa.int64())])
SUMS = (Aggregate("sum", "n", "total"), Aggregate("count", "", "c"))


class LoggedSums:
    """Running sums with their log, beside a dictionary."""

    def __init__(self, make):
        self.make = logged(make)
        self.state = LoggedState(POLICY._replace(preemptive_bytes=20_000))
        self.sums, self.numbers = {}, {}
        self.restart()

    def restart(self):
        self.backend = self.make(a_place(), (ROWS.field("word"),))
        self.table = self.backend.aggregates(SUMS, ROWS)
        self.state.begin(self.backend)
        self.numbers = {}

    def take(self, words):
        batch = pa.record_batch({"word": words, "n": list(range(len(words)))}, ROWS)
        row_numbers = self.table.update(batch).tolist()
        for n, (word, row_number) in enumerate(zip(words, row_numbers, strict=True)):
            total, count = self.sums.get(word, (0, 0))
            self.sums[word] = (total + n, count + 1)
            self.numbers[word] = row_number

    def remove(self, words):
        """Only rows that were handed out since the last flush have numbers."""
        gone = [word for word in dict.fromkeys(words) if word in self.numbers]
        if gone:
            self.table.remove(np.array([self.numbers.pop(word) for word in gone]))
            for word in gone:
                del self.sums[word]

    def write_back(self):
        """As when the table in front of RocksDB is full; elsewhere numbers stay valid."""
        if isinstance(self.table, RocksDBAggregates):
            self.table.write_back()
            self.numbers = {}

    def read(self):
        captured = self.backend.capture(CheckpointId(0))
        (piece,) = captured.keyed
        rows = read_keyed(piece.write(), piece.groups).table.to_pylist()
        captured.release()
        return {row["word"]: (row["sum(n)"], row["count(*)"]) for row in rows}


@pytest.mark.parametrize("case", range(3))
def test_logged_aggregates_are_restored_as_they_were(make_backend, case):
    """S5 S1 S14: with removed keys, aborts and materializations, over a hundred checkpoints."""
    rng = dice(f"logged aggregates {case}")
    sums = LoggedSums(make_backend)
    held = {}
    for _ in range(100):
        for _ in range(rng.randint(1, 3)):
            sums.take([f"w{rng.randrange(300)}" for _ in range(rng.randint(0, 60))])
            sums.remove([f"w{rng.randrange(300)}" for _ in range(rng.randint(0, 4))])
        if rng.random() < 0.2:
            sums.write_back()
        if rng.random() < 0.3:
            sums.state.cut(whole=rng.random() < 0.3, fails=rng.random() < 0.2)
        fate = rng.choice(FATES)
        handles = sums.state.checkpoint(fate=fate)
        assert len(handles) <= MOST_SEGMENTS
        if fate == "completes":
            held = dict(sums.sums)
        if rng.random() < 0.1:
            sums.backend.close()
            sums.state.end_log()
            sums.sums = dict(held)
            sums.restart()
            assert sums.read() == held
    sums.backend.close()


def test_a_segment_has_each_changed_key_once(make_backend):
    """S5: however often a key changes, so replay does not grow with the rows."""
    sums = LoggedSums(make_backend)
    for _ in range(50):
        sums.take(["a", "b", "a"])
    (handle,) = sums.state.checkpoint()
    rows = read_keyed(sums.state.content(handle.file), handle.groups).table.to_pylist()
    sums.backend.close()

    assert sorted(row["word"] for row in rows) == ["a", "b"]
