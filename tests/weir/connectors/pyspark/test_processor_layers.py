"""Layers of changes restore what a whole snapshot of a processor's state would."""

from collections import defaultdict
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor_harness import MAX_PARALLELISM, ProcessorHarness
from spark_processors import History, RunningTotal, Tally
from stepped_slots import a_barrier
from weir.core.ids import CheckpointId
from weir.core.key_groups import range_of
from weir.core.snapshots import KeyGroupRange, StateFile
from weir.slot.layers import Layers
from weir.state.state_file_reader import rows_of


class Layered:
    """A processor whose incremental snapshots are kept in a dictionary."""

    def __init__(self, processor):
        self.processor = processor
        self.subtask = ProcessorHarness(processor, is_incremental=True).begin()
        self.layers, self.files = Layers(), {}
        self.number = 0
        self.completed = CheckpointId(0)

    def snapshot(self, *, completes):
        """The content of the files that the checkpoint is made of, in the order they are laid."""
        self.number += 1
        checkpoint = CheckpointId(self.number)
        barrier = replace(a_barrier(checkpoint), base=self.completed)
        pieces = self.subtask.operator.capture(checkpoint).keyed
        made = [f for p in pieces for f in self.layers.store(barrier, p, self._put)]
        if completes:
            self.layers.completed(checkpoint)
            self.subtask.operator.completed(checkpoint)
            self.completed = checkpoint
        else:
            self.layers.aborted(checkpoint)
        return [self.files[file.path] for file in made]

    def _put(self, what, content):
        path = f"{what}-{self.number}"
        self.files[path] = content
        return StateFile(path, content.size, shared=True)

    def restored(self, contents, parallelism):
        """All rows of all states, as subtasks of another width find them."""
        found = []
        for index in range(parallelism):
            groups = range_of(index, parallelism, MAX_PARALLELISM)
            files = [(groups, content) for content in contents]
            subtask = ProcessorHarness(self.processor, index=index, parallelism=parallelism)
            found += state_of(subtask.begin(files))
        return sorted(found, key=repr)


def state_of(subtask):
    rows = []
    for piece in subtask.operator.capture(CheckpointId(99)).keyed:
        table = pa.ipc.open_file(piece.write()).read_all()
        rows += [(piece.name, *row.items()) for row in table.to_pylist()]
    return sorted(rows, key=repr)


batches = st.lists(
    st.fixed_dictionaries({"word": st.sampled_from("abcdefg"), "amount": st.integers(-3, 3)}),
    max_size=6,
)


@pytest.mark.parametrize("processor", [RunningTotal(), History(), Tally()])
@given(
    st.lists(st.tuples(batches, st.booleans()), min_size=1, max_size=10),
    st.sampled_from([1, 2, 5]),
)
def test_layers_of_values_lists_and_maps_restore_the_state_at_their_barrier(
    processor, history, parallelism
):
    """S4 S11 C1: keys that changed, came and went, whatever was aborted in between."""
    job = Layered(processor)
    for rows, completes in history:
        if rows:
            job.subtask.process(*rows)
        made = job.snapshot(completes=completes)

        assert job.restored(made, parallelism) == state_of(job.subtask)


def test_a_layer_holds_the_keys_that_changed_and_names_those_that_went():
    """S4: bytes follow the changes."""
    job = Layered(History())
    job.subtask.words(*"abcd")
    job.snapshot(completes=True)
    job.subtask.process({"word": "a", "amount": 7}, {"word": "b", "amount": 0})

    _, layer = job.snapshot(completes=True)

    removed = defaultdict(set)
    for row in pa.ipc.open_file(layer).read_all().to_pylist():
        removed[row["state.removed"]].add(row["word"])
    assert removed == {False: {"a"}, True: {"b"}}


def test_rows_read_from_layers_are_the_state_without_what_was_removed():
    """S9 U2: as a tool would show it."""
    job = Layered(History())
    job.subtask.words(*"abc")
    job.snapshot(completes=True)
    job.subtask.process({"word": "a", "amount": 7}, {"word": "b", "amount": 0})
    made = job.snapshot(completes=True)

    shown = pa.Table.from_batches(rows_of(made, KeyGroupRange(0, MAX_PARALLELISM - 1)))

    found = sorted(zip(shown["word"].to_pylist(), shown["value.amount"].to_pylist(), strict=True))
    assert found == [("a", 1), ("a", 7), ("c", 1)]
