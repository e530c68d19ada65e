"""Dead bytes in merged files stay within their bound."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.core.space_amplification import LiveSegments, amplification, kept_files

paths = st.sampled_from(["a", "b", "c", "d", "e"])
states = st.lists(
    st.dictionaries(paths, st.integers(1, 100), max_size=4).map(LiveSegments), max_size=8
)


def live_bytes(states):
    live = {}
    for state in states:
        for path, size in state.bytes_by_file.items():
            live[path] = live.get(path, 0) + size
    return live


@given(states, st.dictionaries(paths, st.integers(0, 400)), st.floats(1.0, 5.0))
def test_what_is_kept_is_within_the_bound(found, dead, bound):
    """S6: physical bytes are at most so many times the live ones."""
    sizes = {path: size + dead.get(path, 0) for path, size in live_bytes(found).items()}

    kept = kept_files(found, sizes, bound)

    remaining = [state for state in found if set(state.bytes_by_file) <= kept]
    live = live_bytes(remaining)
    assert set(live) == kept
    assert sum(sizes[path] for path in kept) <= bound * sum(live.values())


def test_nothing_is_rewritten_within_the_bound():
    """S6: a file that is half dead costs no write."""
    assert kept_files([LiveSegments({"a": 50})], {"a": 100}, 2.0) == {"a"}


def test_the_file_with_the_smallest_live_share_is_left_first():
    """S6: that frees the most space for what is written again."""
    found = [LiveSegments({"a": 10}), LiveSegments({"b": 90})]

    assert kept_files(found, {"a": 150, "b": 100}, 2.0) == {"b"}


def test_state_refers_to_all_of_its_files_or_to_none():
    """S6: a layer without the whole below it restores nothing."""
    found = [LiveSegments({"a": 10, "b": 20}), LiveSegments({"c": 50})]

    assert kept_files(found, {"a": 200, "b": 20, "c": 50}, 2.0) == {"c"}


@pytest.mark.parametrize(("physical", "logical", "ratio"), [(0, 0, 1.0), (300, 100, 3.0)])
def test_amplification_is_the_bytes_of_files_for_each_byte_of_state(physical, logical, ratio):
    """S6: a checkpoint without files has none to waste."""
    assert amplification(physical, logical) == ratio
