"""Rows in the order of a number are found from its beginning and by the number."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from weir.state.memory.sorted_runs import SortedRuns

rows = st.integers(0, 30)
numbers = st.integers(-4, 4)
steps = st.one_of(
    st.tuples(st.just("add"), st.dictionaries(rows, numbers)),
    st.tuples(st.just("drop"), st.sets(rows)),
    st.tuples(st.just("until"), numbers),
    st.tuples(st.just("matching"), st.lists(numbers, unique=True)),
)


def array(values):
    return np.array(list(values), np.int64)


@given(st.lists(steps, max_size=40))
def test_rows_are_found_as_in_a_dictionary(script):
    """S14: rows are dropped and come again with another number, or with the same."""
    tested, model = SortedRuns(), {}
    for what, given_ in script:
        if what == "add":
            new = {row: number for row, number in given_.items() if row not in model}
            tested.add(array(new.values()), array(new))
            model |= new
        elif what == "drop":
            there = sorted(row for row in given_ if row in model)
            tested.drop(array(there))
            for row in there:
                del model[row]
        elif what == "until":
            found = tested.until(given_, 1_000).tolist()
            assert found == sorted(row for row, number in model.items() if number <= given_)
        else:
            positions, found = tested.matching(array(given_))
            pairs = sorted(zip(positions.tolist(), found.tolist(), strict=True))
            assert pairs == sorted(
                (at, row)
                for at, wanted in enumerate(given_)
                for row, number in model.items()
                if number == wanted
            )


@given(st.dictionaries(rows, numbers, min_size=1), st.integers(1, 5))
def test_portions_are_bounded_and_complete(given_rows, most):
    """S14."""
    tested = SortedRuns()
    for row, number in given_rows.items():
        tested.add(array([number]), array([row]))
    found = []
    while len(portion := tested.until(2, most)):
        assert len(portion) <= most
        found += portion.tolist()
        tested.drop(portion)

    assert sorted(found) == sorted(row for row, number in given_rows.items() if number <= 2)


def test_rows_that_were_dropped_leave_their_room():
    """S14: though their numbers never come due."""
    tested = SortedRuns()
    few = np.arange(100)
    for number in range(300):
        tested.add(np.full(100, number), few)
        tested.drop(few)

    assert tested.entries < 10_000
