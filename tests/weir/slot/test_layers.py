"""An incremental snapshot restores what a whole one would, from less that was put up."""

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepped_slots import a_barrier
from weir.core.ids import CheckpointId, EdgeId, OperatorId, SubtaskId
from weir.core.key_groups import range_of
from weir.core.snapshots import StateFile
from weir.dataflow.physical import Aggregate, AggregateHead
from weir.ports.operators import RestoredState, TaskInfo
from weir.slot.aggregate import AggregateOperator
from weir.slot.layers import MOST_LAYERS, Layers, is_worth_adding_to
from weir.state.memory.memory_backend import MemoryBackend

INPUT = pa.schema([("key", pa.int64()), ("value", pa.int64())])
OUTPUT = pa.schema([("key", pa.int64()), ("total", pa.int64())])
HEAD = AggregateHead(("key",), (Aggregate("sum", "value", "total"),), INPUT, OUTPUT)
EDGE = EdgeId("rows")


def an_operator(index=0, parallelism=1):
    subtask = SubtaskId(OperatorId("sum"), index)
    place = TaskInfo(subtask, parallelism, 128, 1, 1, clock=lambda: 0, is_incremental=True)
    return AggregateOperator(HEAD, place, MemoryBackend)


class Snapshots:
    """An operator whose snapshots are kept in a dictionary."""

    def __init__(self):
        self.operator = an_operator()
        self.operator.restore(RestoredState())
        self.layers = Layers()
        self.files = {}
        self.completed = CheckpointId(0)
        self.number = 0

    def take(self, rows):
        batch = pa.record_batch({"key": list(rows), "value": list(rows.values())}, INPUT)
        for _ in self.operator.process(EDGE, batch):
            pass

    def snapshot(self, *, completes=True):
        """Take a checkpoint; the files it is made of and the bytes that went up for it."""
        for _ in self.operator.flush():
            pass
        self.number += 1
        checkpoint = CheckpointId(self.number)
        before = sum(len(content) for content in self.files.values())
        barrier = replace(a_barrier(checkpoint), base=self.completed)
        (piece,) = self.operator.capture(checkpoint).keyed
        made = self.layers.store(barrier, piece, self._put)
        if completes:
            self.layers.completed(checkpoint)
            self.operator.completed(checkpoint)
            self.completed = checkpoint
        else:
            self.layers.aborted(checkpoint)
        return made, sum(len(content) for content in self.files.values()) - before

    def _put(self, what, content):
        path = f"{what}-{self.number}"
        self.files[path] = content.to_pybytes()
        return StateFile(path, content.size, shared=True)

    def restored(self, made, parallelism=1):
        """What subtasks of another width find in those files."""
        totals = {}
        for index in range(parallelism):
            operator = an_operator(index, parallelism)
            groups = range_of(index, parallelism, 128)
            contents = [(groups, pa.py_buffer(self.files[file.path])) for file in made]
            operator.restore(RestoredState(contents, checkpoint=CheckpointId(1)))
            totals.update(_content(operator))
        return totals


def _content(operator):
    table = operator.capture(CheckpointId(99)).keyed[0].write()
    rows = pa.ipc.open_file(table).read_all()
    return dict(zip(rows["key"].to_pylist(), rows["sum(value)"].to_pylist(), strict=True))


def test_a_checkpoint_puts_up_what_changed_and_refers_to_the_rest():
    """S2 S4: bytes follow the changed keys, not the state."""
    job = Snapshots()
    job.take(dict.fromkeys(range(100_000), 1))
    _, whole = job.snapshot()
    job.take(dict.fromkeys(range(1_000), 1))

    made, changes = job.snapshot()

    assert len(made) == 2
    assert changes < whole * 0.05
    assert job.restored(made) == {key: 1 + (key < 1_000) for key in range(100_000)}


def test_an_aborted_checkpoint_is_never_built_on():
    """S4: its files may be gone."""
    job = Snapshots()
    job.take({1: 1, 2: 2})
    job.snapshot()
    job.take({1: 1})
    lost, _ = job.snapshot(completes=False)
    job.take({2: 5})

    made, _ = job.snapshot()

    assert not {file.path for file in made} & {lost[-1].path}
    assert job.restored(made) == {1: 2, 2: 7}


def test_too_many_layers_become_a_new_whole():
    """S4: neither restoring nor storing grows without end."""
    job = Snapshots()
    job.take(dict.fromkeys(range(50_000), 1))
    lengths = []
    for key in range(MOST_LAYERS + 1):
        job.take({key: 1})
        made, _ = job.snapshot()
        lengths.append(len(made))

    assert max(lengths) == MOST_LAYERS
    assert lengths[-1] == 1


@pytest.mark.parametrize(
    ("whole", "changes", "worth"), [(100, [50, 50], True), (100, [50, 60], False), (100, [], True)]
)
def test_layers_larger_than_the_whole_below_them_are_not_added_to(whole, changes, worth):
    """S4: space is bounded by twice the state."""
    files = [StateFile("f", size, shared=True) for size in (whole, *changes)]

    assert is_worth_adding_to(dict(enumerate(files))) is worth


steps = st.tuples(
    st.dictionaries(st.integers(0, 30), st.integers(-5, 5), max_size=8), st.booleans()
)


@given(st.lists(steps, min_size=1, max_size=12), st.sampled_from([1, 2, 5]))
def test_layers_restore_the_state_at_their_barrier_at_any_parallelism(history, parallelism):
    """S4 S11 C1: whatever was aborted in between."""
    job, totals = Snapshots(), {}
    for rows, completes in history:
        job.take(rows)
        for key, value in rows.items():
            totals[key] = totals.get(key, 0) + value
        made, _ = job.snapshot(completes=completes)

        assert job.restored(made, parallelism) == totals
