"""Values with a time to live are invisible when it is over, and freed soon after."""

import pytest

from keyed_state_files import captured, refill, rows
from weir.dataflow.types import schema_of
from weir.state.memory.chunks import CHUNK_ROWS
from weir.state.memory.keyed_states import ValueState
from weir.state.memory.row_index import RowIndex
from weir.state.memory.ttl import (
    ExpiredStateCleanup,
    ExpiringListState,
    ExpiringMapState,
    ExpiringValueState,
)
from weir.state.row_types import RowType

TTL = 1_000
NUMBER = RowType("state 's'", schema_of("n long"))


def at(row_index, now):
    row_index.cursor.now = now


def begun(make, *arguments):
    row_index = RowIndex()
    row_index.seek((1,))
    return row_index, make("s", row_index, *arguments, TTL)


def test_a_value_lives_for_its_time_after_the_last_update():
    """S1."""
    row_index, state = begun(ExpiringValueState, NUMBER)
    state.update((1,))
    at(row_index, 600)
    state.update((2,))

    at(row_index, 1_599)
    assert state.get() == (2,)
    at(row_index, 1_600)
    assert state.get() is None
    assert not state.exists()


def test_each_element_of_a_list_has_its_own_age():
    """S1."""
    row_index, state = begun(ExpiringListState, NUMBER)
    state.append((1,))
    at(row_index, 600)
    state.extend([(2,), (3,)])

    at(row_index, 1_000)
    assert list(state.get()) == [(2,), (3,)]
    at(row_index, 1_600)
    assert not state.exists()


def test_each_entry_of_a_map_has_its_own_age():
    """S1."""
    row_index, state = begun(ExpiringMapState, (NUMBER, NUMBER))
    state.update((1,), (10,))
    at(row_index, 600)
    state.update((2,), (20,))

    at(row_index, 1_000)
    assert state.value((1,)) is None
    assert not state.contains((1,))
    assert list(state.items()) == [((2,), (20,))]
    at(row_index, 1_600)
    assert not state.exists()


@pytest.mark.parametrize("number", [1, 2])
def test_what_is_dead_is_in_no_snapshot(number):
    """S1."""
    row_index, state = begun(ExpiringListState, NUMBER)
    state.append((1,))
    at(row_index, 600)
    state.append((2,))
    at(row_index, 600 + number * 500)

    alive = [(row["value.n"], row["state.expires_at"]) for row in rows(captured(row_index, state))]

    assert alive == ([(2, 1_600)] if number == 1 else [])


@pytest.mark.parametrize(
    ("make", "fill", "look"),
    [
        (ExpiringValueState, lambda state: state.update((1,)), lambda state: state.get()),
        (ExpiringListState, lambda state: state.append((1,)), lambda state: list(state.get())),
        (
            lambda name, row_index, row, ttl: ExpiringMapState(name, row_index, (row, row), ttl),
            lambda state: state.update((1,), (1,)),
            lambda state: list(state.items()),
        ),
    ],
)
def test_a_restored_value_keeps_its_age(make, fill, look):
    """S1."""
    row_index, state = begun(make, NUMBER)
    fill(state)
    piece = captured(row_index, state)

    again, restored = begun(make, NUMBER)
    at(again, 999)
    refill(piece, again, restored)

    assert look(restored)
    at(again, 1_000)
    assert not look(restored)


def test_what_died_between_snapshot_and_restore_is_not_restored():
    """S1."""
    row_index, state = begun(ExpiringValueState, NUMBER)
    state.update((1,))
    piece = captured(row_index, state)

    again = RowIndex()
    at(again, 1_000)
    refill(piece, again, ExpiringValueState("s", again, NUMBER, TTL))

    assert len(again) == 0


def test_values_from_before_there_was_a_time_to_live_begin_to_age_when_restored():
    """S12."""
    row_index = RowIndex()
    row_index.seek((1,))
    ageless = ValueState("s", row_index, NUMBER)
    ageless.update((1,))

    again, restored = begun(ExpiringValueState, NUMBER)
    at(again, 5_000)
    refill(captured(row_index, ageless), again, restored)

    at(again, 5_999)
    assert restored.get() == (1,)
    at(again, 6_000)
    assert restored.get() is None


def test_values_lose_their_age_when_the_time_to_live_is_taken_away():
    """S12."""
    row_index, state = begun(ExpiringValueState, NUMBER)
    state.update((1,))

    again = RowIndex()
    ageless = ValueState("s", again, NUMBER)
    refill(captured(row_index, state), again, ageless)

    again.seek((1,))
    at(again, 9_999)
    assert ageless.get() == (1,)


def test_a_cleanup_frees_untouched_expired_state_chunk_by_chunk():
    """S1, R7."""
    row_index = RowIndex()
    value = ExpiringValueState("v", row_index, NUMBER, TTL)
    elements = ExpiringListState("l", row_index, NUMBER, 2 * TTL)
    entries = ExpiringMapState("m", row_index, (NUMBER, NUMBER), 2 * TTL)
    for key in range(2 * CHUNK_ROWS):
        row_index.seek((key,))
        value.update((1,))
    elements.append((1,))
    entries.update((1,), (1,))
    sweep, states = ExpiredStateCleanup(row_index), [value, elements, entries]

    sweep.step(states, TTL)
    assert len(row_index) in (CHUNK_ROWS, CHUNK_ROWS + 1)
    sweep.step(states, TTL)
    assert len(row_index) == 1, "the last key has a list and a map that live longer"
    for _ in range(2):
        sweep.step(states, 2 * TTL)
    assert len(row_index) == 0


def test_a_sweep_changes_no_snapshot():
    """S3."""
    row_index, state = begun(ExpiringValueState, NUMBER)
    state.update((1,))
    piece = captured(row_index, state)

    ExpiredStateCleanup(row_index).step([state], 5_000)

    assert [row["value.n"] for row in rows(piece)] == [1]
