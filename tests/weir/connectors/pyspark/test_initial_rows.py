"""An initial state is handed to a processor once for each key, before the key's first row."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from processor_harness import MAX_PARALLELISM, ProcessorHarness, written
from spark_processors import Seeded, SeededFrames
from weir.connectors.pyspark.initial_rows import INITIAL_ROWS
from weir.connectors.pyspark.processor import FIRED_AT_ONCE
from weir.core.snapshots import KeyGroupRange
from weir.dataflow.physical import RowsAs
from weir.dataflow.types import schema_of
from weir.ports.user_code_errors import UserCodeFailed
from weir.state.snapshot_files import write_keyed
from weir.state.state_schema import KIND
from weir.wire.keys import key_groups

pytestmark = pytest.mark.usefixtures("each_backend")

INITIAL = schema_of("word string, begin long")
ALL_GROUPS = KeyGroupRange(0, MAX_PARALLELISM - 1)


def initial(*rows):
    """The state that a new job begins with, as a savepoint has it."""
    schema = pa.schema(
        [
            *schema_of("word string"),
            pa.field("state.ordinal", pa.int64()),
            pa.field("value.word", pa.string()),
            pa.field("value.begin", pa.int64()),
        ],
        metadata={KIND: b"list"},
    )
    columns = zip(*((word, at, word, begin) for at, (word, begin) in enumerate(rows)), strict=True)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=schema)
    batch = table.select(["word"]).to_batches()[0]
    groups = key_groups(batch, ["word"], MAX_PARALLELISM).astype(np.int32)
    return [(ALL_GROUPS, write_keyed(INITIAL_ROWS, table, groups, ["word"], MAX_PARALLELISM))]


def begun(*rows, processor=None, **more):
    job = ProcessorHarness(processor or Seeded(), initial=INITIAL, **more)
    return job.begin(initial(*rows)) if rows else job.begin()


def states(job):
    return [piece.name for piece in job.capture().keyed]


def test_a_key_begins_with_its_rows_in_their_order_and_then_gets_its_input():
    """D1: handleInitialState, once for each row."""
    job = begun(("a", 10), ("b", 20), ("a", 5))

    assert job.words("a", "c") == [{"word": "a", "total": 16}, {"word": "c", "total": 1}]


def test_keys_without_input_have_their_turn_too():
    """D1: PySpark hands all of them over in the first batch."""
    job = begun(("a", 10), ("b", 20))
    assert job.operator.is_due()
    assert job.operator.next_timer() == 0

    assert job.fire() == []

    assert not job.operator.is_due()
    assert job.operator.next_timer() is None
    assert job.words("b") == [{"word": "b", "total": 21}]


def test_nothing_is_handed_over_twice():
    """D1: neither by a second turn nor by a second row."""
    job = begun(("a", 10))
    job.words("a")
    job.fire()
    assert job.words("a") == [{"word": "a", "total": 12}]


def test_a_turn_hands_over_a_bounded_number_of_keys():
    """A11."""
    job = begun(*((f"word {n}", n) for n in range(FIRED_AT_ONCE + 1)))
    list(job.operator.fire())
    assert job.operator.is_due()


def test_a_checkpoint_in_between_holds_what_has_not_been_handed_over():
    """C1, D1: exactly once, whatever fails."""
    job = begun(("a", 10), ("b", 20))
    job.words("a")

    again = ProcessorHarness(Seeded(), initial=INITIAL).begin(written(job.capture()))

    assert again.words("a", "b") == [{"word": "a", "total": 12}, {"word": "b", "total": 21}]


def test_a_checkpoint_behind_it_knows_nothing_of_it():
    """D1: a restored job begins with what it had, and initialState may go from the program."""
    job = begun(("a", 10))
    job.fire()
    assert states(job) == ["total"]

    again = ProcessorHarness(Seeded()).begin(written(job.capture()))

    assert again.words("a") == [{"word": "a", "total": 11}]


def test_the_rows_move_with_their_keys_when_the_job_becomes_wider():
    """S11, D1."""
    words = [f"word {n}" for n in range(100)]
    files = initial(*((word, 1) for word in words))
    found = 0
    for index in range(3):
        part = ProcessorHarness(Seeded(), initial=INITIAL, index=index, parallelism=3)
        part.begin([(part.groups, data) for _, data in files])
        found += sum(row["total"] == 2 for row in part.words(*words))
    assert found == len(words)


def test_timers_can_be_set_from_it():
    """D1."""
    job = begun(("a", 2_000), processor=Seeded(with_timers=True), time_mode="ProcessingTime")
    job.fire()
    job.clock.now = 2_001
    assert job.fire() == [{"word": "a", "total": 2_000}]


def test_with_pandas_a_key_gets_one_frame_of_its_rows():
    """D1: transformWithStateInPandas."""
    job = begun(("a", 10), ("a", 5), processor=SeededFrames(), rows_as=RowsAs.PANDAS)
    assert job.words("a") == [{"word": "a", "total": 16}]


def test_a_failure_names_the_key_and_the_row():
    """U3."""
    job = begun(("a", -1))
    with pytest.raises(UserCodeFailed, match=r"handleInitialState for key \('a',\).*begin=-1"):
        job.words("a")


def test_a_job_without_an_initial_state_has_none_to_keep():
    """D1."""
    job = replace(ProcessorHarness(Seeded()), initial=None).begin()
    assert not job.operator.is_due()
    job.words("a")
    assert states(job) == ["total"]
