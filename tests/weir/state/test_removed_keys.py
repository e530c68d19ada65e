"""Keys can be removed from running aggregates: they are gone, and their room is used again."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepped_slots import a_barrier
from weir.core.ids import CheckpointId, OperatorId, SubtaskId
from weir.core.key_groups import range_of
from weir.core.snapshots import KeyGroupRange, StateFile
from weir.dataflow.physical import Aggregate
from weir.ports.operators import RestoredState, TaskInfo
from weir.slot.layers import Layers
from weir.state.memory import change_history
from weir.state.memory.memory_backend import MemoryBackend
from weir.state.memory.number_index import NumberIndex
from weir.state.state_file_reader import rows_of

NUMBER = (pa.field("user", pa.int64()),)
TEXT = (pa.field("user", pa.string()),)
WINDOW = (pa.field("user", pa.string()), pa.field("window", pa.int64()))
KEYS = (NUMBER, TEXT, WINDOW)
SUM = [Aggregate("sum", "value", "total")]
GROUPS = 16


def key_of(fields, number):
    """One of the keys of these columns has nulls."""
    if fields is NUMBER:
        return (None if number == 0 else number,)
    return ((None if number == 0 else f"u{number % 4}"), number // 2)[: len(fields)]


class Sums:
    """Sums by key of one subtask, beside a dictionary that must have the same content."""

    def __init__(self, fields, backend=MemoryBackend, index=0, parallelism=1):
        subtask = SubtaskId(OperatorId("sum"), index)
        place = TaskInfo(subtask, parallelism, GROUPS, 1, 1, clock=lambda: 0, is_incremental=True)
        self.schema = pa.schema([*fields, ("value", pa.int64())])
        self.backend = backend(place, fields)
        self.sums = self.backend.aggregates(SUM, self.schema)
        self.model = {}
        self.row_numbers = {}

    def add(self, rows: Mapping[tuple[object, ...], int | None]) -> None:
        columns = list(zip(*rows, strict=True)) or [()] * (len(self.schema) - 1)
        arrays = [
            pa.array(values, field.type)
            for values, field in zip([*columns, list(rows.values())], self.schema, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        found = self.sums.update(batch).tolist()
        for (key, value), row_number in zip(rows.items(), found, strict=True):
            assert self.row_numbers.setdefault(key, row_number) == row_number
            known = self.model.get(key)
            self.model[key] = known if value is None else (known or 0) + value
        assert len(set(self.row_numbers.values())) == len(self.row_numbers)

    def remove(self, keys) -> None:
        there = [key for key in dict.fromkeys(keys) if key in self.model]
        self.sums.remove(np.array([self.row_numbers[key] for key in there], np.int64))
        for key in there:
            del self.model[key], self.row_numbers[key]


class Job(Sums):
    """With snapshots in layers."""

    def __init__(self, fields):
        super().__init__(fields)
        self.fields = fields
        self.backend.restore(RestoredState())
        self.layers = Layers()
        self.files = {}
        self.base = CheckpointId(0)

    def capture(self, number):
        """A checkpoint that is written later, with what it must contain."""
        barrier = replace(a_barrier(CheckpointId(number)), base=self.base)
        return barrier, self.backend.capture(barrier.checkpoint), dict(self.model)

    def write(self, barrier, captured, *, completes=True):
        made = self.layers.store(barrier, captured.keyed[0], self._put)
        captured.release()
        if completes:
            self.layers.completed(barrier.checkpoint)
            self.backend.completed(barrier.checkpoint)
            self.base = barrier.checkpoint
        else:
            self.layers.aborted(barrier.checkpoint)
        return [self.files[file.path] for file in made]

    def _put(self, what, content):
        path = f"{what}-{len(self.files)}"
        self.files[path] = content
        return StateFile(path, content.size, shared=True)


def restored(fields, files, parallelism):
    """What subtasks of that number find in those files."""
    found = {}
    for index in range(parallelism):
        part = Sums(fields, index=index, parallelism=parallelism)
        groups = range_of(index, parallelism, GROUPS)
        contents = [(groups, file) for file in files]
        part.backend.restore(RestoredState(contents, checkpoint=CheckpointId(1)))
        found |= content(fields, [part.backend.capture(CheckpointId(9)).keyed[0].write()])
    return found


def content(fields, files):
    batches = list(rows_of(files, KeyGroupRange(0, GROUPS - 1)))
    names = [*(field.name for field in fields), "sum(value)"]
    columns = [[batch[name].to_pylist() for name in names] for batch in batches]
    rows = [row for batch in columns for row in zip(*batch, strict=True)]
    return {tuple(key): total for *key, total in rows}


keys = st.integers(0, 12)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.dictionaries(keys, st.none() | st.integers(-5, 5))),
        st.tuples(st.just("remove"), st.lists(keys)),
        st.tuples(st.just("capture"), st.just(None)),
        st.tuples(st.just("write"), st.booleans()),
    ),
    max_size=30,
)


@pytest.mark.parametrize("fields", KEYS, ids=["number", "text", "pair"])
@given(history=steps, parallelism=st.sampled_from([1, 2, 5]))
def test_snapshots_with_removals_restore_the_state_at_their_barrier(fields, history, parallelism):
    """S3 S4 S11 C1: whole or in layers, however late they are written, at any parallelism."""
    job, waiting = Job(fields), []
    for number, (step, given_here) in enumerate([*history, ("capture", None), ("write", True)], 1):
        if step == "add":
            job.add({key_of(fields, k): v for k, v in given_here.items()})
        elif step == "remove":
            job.remove(key_of(fields, k) for k in given_here)
        elif step == "capture":
            waiting.append(job.capture(number))
        elif waiting:
            barrier, captured, expected = waiting.pop(0)
            files = job.write(barrier, captured, completes=given_here)
            assert content(fields, files) == expected
            assert restored(fields, files, parallelism) == expected


def test_a_removed_key_that_comes_again_begins_afresh(make_backend):
    """S1: also in the batch after its removal."""
    sums = Sums(NUMBER, make_backend)
    sums.backend.restore(RestoredState())
    sums.add({(1,): 10, (2,): 20})
    sums.remove([(1,)])
    sums.add({(1,): 1, (3,): 3})

    users, totals = sums.sums.rows(np.array([sums.row_numbers[k,] for k in (1, 2, 3)]))

    assert (users.to_pylist(), totals.to_pylist()) == ([1, 2, 3], [1, 20, 3])


@pytest.mark.parametrize("fields", KEYS, ids=["number", "text", "pair"])
def test_keys_that_come_and_go_do_not_add_up(fields):
    """R7: the room of removed keys is used again."""
    job = Job(fields)
    for round_ in range(60):
        some = [
            ((f"user {i}", round_) if len(fields) > 1 else (round_ * 1000 + i,)) for i in range(100)
        ]
        some = [(str(key[0]),) for key in some] if fields is TEXT else some
        job.add(dict.fromkeys(some, 1))
        barrier, captured, _ = job.capture(round_ + 1)
        job.remove(some)
        job.write(barrier, captured)

    assert job.sums.size <= 200


def test_rows_of_a_removed_key_wait_for_captures_from_before_the_removal():
    """S3: the writer of a snapshot reads the keys of its rows in place."""
    job = Job(NUMBER)
    job.add({(1,): 1})
    before, removed_before, _ = job.capture(1)
    job.remove([(1,)])
    _, after, _ = job.capture(2)

    job.add({(2,): 2})
    assert job.row_numbers[2,] == 1, "the first capture has row 0"
    assert content(NUMBER, job.write(before, removed_before)) == {(1,): 1}
    job.add({(3,): 3})

    assert job.row_numbers[3,] == 0, "the second capture does not have row 0"
    assert content(NUMBER, [after.keyed[0].write()]) == {}


def test_more_removals_than_keys_lead_to_a_whole_snapshot(monkeypatch):
    """S4 R7: they are not remembered without end."""
    monkeypatch.setattr(change_history, "FEW_REMOVED", 10)
    job = Job(NUMBER)
    for number in (1, 2):
        for key in range(40):
            job.add({(key % 20,): 1})
            job.remove([(key % 20,)] if number == 2 else [])
        barrier, captured, expected = job.capture(number)
        files = job.write(barrier, captured)

        assert len(files) == 1
        assert content(NUMBER, files) == expected


def test_an_index_with_as_many_removals_as_insertions_stays_small():
    """R7: cells of removed numbers are cleared, and the numbers that are left are still found."""
    index, rng = NumberIndex(), np.random.default_rng(11)
    known = {}
    for round_ in range(200):
        numbers = rng.integers(0, 1 << 62, 500)
        known |= dict(zip(numbers.tolist(), index.row_numbers(numbers).tolist(), strict=True))
        gone = [number for number in known if rng.random() < 0.5]
        index.remove(np.array([known.pop(number) for number in gone]), round_)
        index.free_rows.reuse(round_ + 1)

    found = index.row_numbers(np.array(list(known), np.int64)).tolist()
    assert found == list(known.values())
    assert index.size < 3_000
