"""Dead bytes in merged files stay within their bound."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.core.snapshots import StateFile
from weir.core.space_amplification import amplification, kept_files

PLACES = [(path, 100 * number) for path in "abcde" for number in range(4)]
segments = st.builds(
    lambda place: StateFile(place[0], 10 + place[1] // 4, offset=place[1]), st.sampled_from(PLACES)
)
states = st.lists(st.lists(segments, max_size=4, unique=True), max_size=8)


def a_state(**bytes_by_file):
    return [StateFile(path, size) for path, size in bytes_by_file.items()]


def live_bytes(states):
    """Of each file; what two states share counts once."""
    live = {}
    for file in {file for state in states for file in state}:
        live[file.path] = live.get(file.path, 0) + file.bytes
    return live


@given(states, st.dictionaries(st.sampled_from("abcde"), st.integers(0, 400)), st.floats(1.0, 5.0))
def test_what_is_kept_is_within_the_bound(found, dead, bound):
    """S6: physical bytes are at most so many times the live ones."""
    sizes = {path: size + dead.get(path, 0) for path, size in live_bytes(found).items()}

    kept = kept_files(found, sizes, bound)

    remaining = [state for state in found if {file.path for file in state} <= kept]
    live = live_bytes(remaining)
    assert set(live) == kept
    assert sum(sizes[path] for path in kept) <= bound * sum(live.values())


def test_nothing_is_rewritten_within_the_bound():
    """S6: a file that is half dead costs no write."""
    assert kept_files([a_state(a=50)], {"a": 100}, 2.0) == {"a"}


def test_the_file_with_the_smallest_live_share_is_left_first():
    """S6: that frees the most space for what is written again."""
    assert kept_files([a_state(a=10), a_state(b=90)], {"a": 150, "b": 100}, 2.0) == {"b"}


def test_a_state_refers_to_all_of_its_files_or_to_none():
    """S6: a layer without the whole below it restores nothing."""
    found = [a_state(a=10, b=20), a_state(c=50)]

    assert kept_files(found, {"a": 200, "b": 20, "c": 50}, 2.0) == {"c"}


def test_a_segment_that_two_states_have_in_common_counts_once():
    """S6, S11: after a rescaling two subtasks may refer to the files of one."""
    assert kept_files([a_state(a=10), a_state(a=10)], {"a": 40}, 2.0) == frozenset()


@pytest.mark.parametrize(("physical", "logical", "ratio"), [(0, 0, 1.0), (300, 100, 3.0)])
def test_amplification_is_the_bytes_of_files_for_each_byte_of_state(physical, logical, ratio):
    """S6: a checkpoint without files has none to waste."""
    assert amplification(physical, logical) == ratio
