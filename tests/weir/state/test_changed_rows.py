"""Each changed row is named once, whether few changed or many."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from weir.state.changed_rows import ChangedRows


@given(st.lists(st.lists(st.integers(0, 99)), max_size=5))
def test_a_drain_names_each_changed_row_once(batches):
    changed = ChangedRows()
    for batch in batches:
        changed.add(np.array(batch, np.int64), 100)

    assert changed.drain().tolist() == sorted(
        {row_number for batch in batches for row_number in batch}
    )


def test_many_changes_are_named_once_too():
    rng = np.random.default_rng(5)
    changed = ChangedRows()
    for _ in range(2):
        batches = [rng.integers(0, size, 9_000) for size in (1_000, 30_000, 90_000)]
        for batch in batches:
            changed.add(batch, batch.max() + 1)

        np.testing.assert_array_equal(changed.drain(), np.unique(np.concatenate(batches)))


def test_nothing_is_changed_after_a_drain():
    changed = ChangedRows()
    assert changed.is_empty
    changed.add(np.array([4]), 5)
    assert not changed.is_empty

    changed.drain()

    assert changed.is_empty
    assert changed.drain().tolist() == []
