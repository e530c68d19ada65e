"""Any row of the generator can be made anew, alone or among others; its pace is only a schedule."""

import pickle
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.connectors.generator import GeneratorSource
from weir.connectors.generator_rows import Recipe, splitmix64
from weir.core.ids import SplitId

SPLIT = SplitId("0001")
RECIPE = Recipe(keys=50, sparse_keys=True, out_of_orderness_ms=700, seed=11)


class ManualClock:
    """Seconds that pass when the test says so."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def drained(source, split, position="", rows=64):
    reader = source.open(split, position)
    batches = []
    while not reader.is_exhausted:
        batches.append(reader.read(rows))
    return pa.Table.from_batches(batches, source.schema)


@settings(deadline=None)  # the first example pays for imports
@given(
    cuts=st.lists(st.integers(0, 500), max_size=6),
    split=st.integers(0, 9),
    seed=st.integers(-(2**70), 2**70),
)
def test_rows_are_the_same_however_they_are_cut(cuts, split, seed):
    """R5: reading again from any position gives the same rows."""
    recipe = Recipe(keys=7, sparse_keys=True, out_of_orderness_ms=90, seed=seed)
    edges = sorted({0, *cuts, 500})

    pieces = [recipe.rows(split, first, stop) for first, stop in pairwise(edges)]

    whole = pa.Table.from_batches([recipe.rows(split, 0, 500)])
    assert pa.Table.from_batches(pieces).combine_chunks() == whole


def test_a_reader_goes_on_from_its_position():
    """R5."""
    source = GeneratorSource(RECIPE, splits=2, total=1_001)
    first = source.open(SPLIT, "")
    head = first.read(123)

    rest = drained(source, SPLIT, first.position)

    both = pa.concat_tables([pa.Table.from_batches([head]), rest])
    assert both.combine_chunks() == drained(source, SPLIT).combine_chunks()


@given(total=st.integers(1, 10_000), splits=st.integers(1, 40))
def test_the_total_is_divided_exactly(total, splits):
    source = GeneratorSource(splits=splits, total=total)

    shares = [source.share(split) for split in range(splits)]

    assert sum(shares) == total
    assert max(shares) - min(shares) <= 1


def test_a_split_without_rows_is_exhausted_at_once():
    """R6."""
    reader = GeneratorSource(splits=3, total=2).open(SplitId("0002"), "")

    assert reader.is_exhausted
    assert reader.read(10) is None


def test_every_split_is_found_once():
    source = GeneratorSource(splits=3)

    first = source.discover("")
    second = source.discover(first.seen)

    assert first.splits == ("0000", "0001", "0002")
    assert first.is_final
    assert second.splits == ()


def test_sparse_keys_are_as_many_as_asked_for_and_far_apart():
    keys = RECIPE.rows(0, 0, 5_000).column("key").unique().to_numpy()

    assert len(keys) == 50
    assert keys.min() < -(2**60)
    assert keys.max() > 2**60


def test_dense_keys_count_from_zero():
    keys = Recipe(keys=50).rows(0, 0, 5_000).column("key").unique().to_pylist()

    assert sorted(keys) == list(range(50))


def test_splits_and_seeds_give_other_rows():
    column = ["key"]
    rows = RECIPE.rows(0, 0, 100).select(column)

    assert RECIPE.rows(1, 0, 100).select(column) != rows
    assert Recipe(keys=50, sparse_keys=True, seed=12).rows(0, 0, 100).select(column) != rows


def test_a_row_is_late_by_no_more_than_was_asked_for():
    """D4."""
    recipe = Recipe(start_ms=10_000, step_ms=5, out_of_orderness_ms=700)

    times = recipe.rows(0, 0, 5_000).column("event_time").cast(pa.int64()).to_numpy()

    late = 10_000 + 5 * np.arange(5_000) - times
    assert late.min() == 0
    assert late.max() == 700


def test_dropping_columns_changes_nothing_in_the_others():
    few = Recipe(columns=("value", "key"), keys=50, sparse_keys=True, seed=11)

    assert few.schema.names == ["value", "key"]
    assert few.rows(3, 7, 99) == RECIPE.rows(3, 7, 99).select(["value", "key"])


def test_the_hash_is_the_published_one():
    """The first outputs of SplitMix64 for the seed 1234567, as other implementations print them."""
    states = (1234567 + np.arange(3, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)).astype(
        np.uint64
    )

    assert splitmix64(states).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_a_paced_reader_gives_what_is_due_and_says_how_long_to_rest():
    clock = ManualClock()
    reader = GeneratorSource(splits=2, rows_per_second=2_000, clock=clock).open(SPLIT, "")

    assert reader.read(500) is None
    assert reader.rest_ms == 10

    clock.now += 0.25
    assert reader.rest_ms == 0
    assert reader.read(500).num_rows == 250
    assert reader.read(500) is None


def test_a_slow_pace_rests_until_the_next_row():
    clock = ManualClock()
    reader = GeneratorSource(splits=1, rows_per_second=2, clock=clock).open(SPLIT, "")

    assert reader.rest_ms == 500
    clock.now += 0.5
    assert reader.read(10).num_rows == 1


def test_the_schedule_begins_anew_after_a_restore():
    clock = ManualClock()
    source = GeneratorSource(splits=1, rows_per_second=80, clock=clock)
    before = source.open(SPLIT, "")
    before.read(1)
    clock.now += 1
    before.read(1_000)

    clock.now += 3_600
    after = source.open(SPLIT, before.position)

    assert after.read(1_000) is None
    clock.now += 0.125
    assert after.read(1_000).num_rows == 10
    assert after.position == "90"


@pytest.mark.parametrize("rate", [0, 1_000])
def test_a_source_travels_by_pickle(rate):
    source = GeneratorSource(RECIPE, splits=5, total=70, rows_per_second=rate)

    assert pickle.loads(pickle.dumps(source)) == source  # noqa: S301
