"""What changed since a capture is known exactly, or not at all."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from weir.core.ids import NO_CHECKPOINT, CheckpointId
from weir.state.memory.change_history import MOST_INTERVALS, ChangeHistory

SIZE = 100


def changing(history, *row_numbers):
    history.changed(np.array(row_numbers, np.int64), SIZE)


def test_what_changed_since_a_capture_is_what_changed_behind_it():
    """S4: and nothing of what changed before."""
    history = ChangeHistory()
    changing(history, 1, 2)
    history.captured(CheckpointId(1))
    changing(history, 2, 3)

    past = history.captured(CheckpointId(2))

    assert past.changed_since(CheckpointId(1)).tolist() == [2, 3]


def test_an_aborted_checkpoint_s_changes_belong_to_the_next_one():
    """S4: the base is the newest completed one, however many were aborted since."""
    history = ChangeHistory()
    history.captured(CheckpointId(1))
    changing(history, 5)
    history.captured(CheckpointId(2))
    changing(history, 7)

    past = history.captured(CheckpointId(3))

    assert past.changed_since(CheckpointId(1)).tolist() == [5, 7]


def test_a_restored_checkpoint_can_be_built_on():
    """S4: the first checkpoint after a restart need not be whole."""
    history = ChangeHistory()
    history.restored(CheckpointId(9))
    changing(history, 4)

    assert history.captured(CheckpointId(12)).changed_since(CheckpointId(9)).tolist() == [4]


def test_a_past_that_is_not_known_is_not_made_up():
    """S4: the caller then writes the whole state."""
    history = ChangeHistory()
    past = history.captured(CheckpointId(1))

    assert past.changed_since(CheckpointId(7)) is None


def test_the_past_does_not_grow_for_ever():
    """S4: checkpoints that never complete cost no memory without end."""
    history = ChangeHistory()
    for number in range(1, MOST_INTERVALS + 3):
        past = history.captured(CheckpointId(number))

    assert past.changed_since(NO_CHECKPOINT) is None
    assert past.changed_since(CheckpointId(MOST_INTERVALS)) is not None


def test_what_lies_before_a_completed_checkpoint_is_forgotten():
    """S4: no snapshot builds on it any more."""
    history = ChangeHistory()
    history.captured(CheckpointId(1))
    history.captured(CheckpointId(2))
    history.completed(CheckpointId(2))

    past = history.captured(CheckpointId(3))

    assert past.changed_since(CheckpointId(1)) is None
    assert past.changed_since(CheckpointId(2)).tolist() == []


@given(st.lists(st.lists(st.integers(0, SIZE - 1)), min_size=1, max_size=12), st.data())
def test_any_interval_is_the_union_of_its_parts(changes, data):
    """S4: each changed row once."""
    history = ChangeHistory()
    for number, row_numbers in enumerate(changes, start=1):
        changing(history, *row_numbers)
        past = history.captured(CheckpointId(number))
    since = data.draw(st.integers(0, len(changes) - 1))

    found = past.changed_since(CheckpointId(since)).tolist()

    assert found == sorted(
        {row_number for row_numbers in changes[since:] for row_number in row_numbers}
    )
