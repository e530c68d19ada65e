"""A turn stays short, whatever a row costs."""

from hypothesis import given
from hypothesis import strategies as st

from weir.slot.turn_budget import FEWEST_ROWS, MOST_ROWS, TURN_BYTES, TURN_SECONDS, TurnBudget


@given(st.floats(1e-7, 1e-3))
def test_turns_come_to_last_as_long_as_they_should(cost):
    """A11: about twenty milliseconds, learnt from the last turns."""
    budget = TurnBudget()
    for _ in range(60):
        budget.record(budget.rows, budget.rows * cost)
    fitting = min(max(TURN_SECONDS / cost, FEWEST_ROWS), MOST_ROWS)
    assert 0.8 * fitting - 1 <= budget.rows <= 1.2 * fitting + 1


@given(st.floats(0.05, 1.0), st.floats(1e-6, 1e-4))
def test_a_call_that_is_slow_by_itself_is_not_given_ever_fewer_rows(call, row):
    """A11: a barrier waits for one call either way, and fewer rows would only mean more calls."""
    budget = TurnBudget()
    for _ in range(60):
        budget.record(budget.rows, call + budget.rows * row)
    assert budget.rows * row > 0.5 * TURN_SECONDS


def test_a_function_that_becomes_slow_is_noticed_within_a_few_turns():
    """A11."""
    budget = TurnBudget(rows=MOST_ROWS)
    for _ in range(12):
        budget.record(budget.rows, budget.rows * 1e-3)
    assert budget.rows * 1e-3 < 4 * TURN_SECONDS


@given(st.integers(0, 1 << 20), st.floats(0, 1e4))
def test_a_turn_takes_at_least_a_few_rows_and_never_too_many(rows, seconds):
    """A11: the slowest function goes on, and one slow row does not stop the next turn."""
    budget = TurnBudget()
    budget.record(rows, seconds)
    assert FEWEST_ROWS <= budget.rows <= MOST_ROWS


@given(st.integers(1, 64 << 20))
def test_a_turn_takes_no_more_bytes_than_outputs_should_hold(row_bytes):
    """R7: long rows are taken a few at a time however cheap they are, and one at least."""
    budget = TurnBudget()
    for _ in range(30):
        budget.record(budget.rows, 1e-6, budget.rows * row_bytes)
    assert budget.rows == 1 or budget.rows * row_bytes <= TURN_BYTES


def test_a_turn_without_rows_teaches_nothing():
    """A11."""
    budget = TurnBudget(rows=100)
    budget.record(0, 1.0)
    assert budget.rows == 100
