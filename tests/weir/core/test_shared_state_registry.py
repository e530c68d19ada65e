"""No shared file is deleted while a checkpoint refers to it, or outlives its last reference."""

from collections import Counter

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from weir.core.shared_state_registry import SharedStateRegistry


def test_a_file_is_free_when_its_last_reference_goes():
    """S4: no unreferenced one stays."""
    shared, freed = SharedStateRegistry().take(["a"]).release(["a"])

    assert freed == ("a",)
    assert "a" not in shared


def test_a_file_that_two_checkpoints_share_outlives_the_first():
    """S4: no referenced file is ever deleted."""
    shared, freed = SharedStateRegistry().take(["a"]).take(["a"]).release(["a"])

    assert freed == ()
    assert "a" in shared


def test_a_file_that_one_checkpoint_names_twice_counts_twice():
    """S4: two subtasks may hold parts of one file."""
    shared, freed = SharedStateRegistry().take(["a", "a"]).release(["a"])

    assert freed == ()
    assert shared.release(["a"])[1] == ("a",)


def test_a_reference_that_was_never_taken_cannot_be_released():
    """S4: a double release would delete what another checkpoint owns, so it is a bug of ours."""
    with pytest.raises(AssertionError, match="a was released more often than taken"):
        SharedStateRegistry().release(["a"])


def test_taking_and_releasing_leave_the_registry_before_as_it_was():
    """S4: a registry is a value; an abandoned step of the coordinator has changed nothing."""
    before = SharedStateRegistry().take(["a"])
    before.take(["a"])
    before.release(["a"])

    assert before == SharedStateRegistry({"a": 1})


PATHS = st.lists(st.sampled_from("abcdef"), max_size=5)


class AgainstALedger(RuleBasedStateMachine):
    """S4: checkpoints come and go, and the registry agrees with a list of all that are held."""

    checkpoints = Bundle("checkpoints")

    def __init__(self):
        super().__init__()
        self.shared = SharedStateRegistry()
        self.held = []
        self.deleted = set()

    @rule(target=checkpoints, paths=PATHS)
    def register(self, paths):
        fresh = [path for path in paths if path not in self.deleted]
        self.shared = self.shared.take(fresh)
        self.held.append(fresh)
        return fresh

    @rule(paths=consumes(checkpoints))
    def discard(self, paths):
        self.shared, freed = self.shared.release(paths)
        self.held.remove(paths)
        assert not set(freed) & self.referenced()
        assert not set(freed) & self.deleted
        self.deleted |= set(freed)

    @invariant()
    def only_what_is_held_is_there(self):
        assert dict(self.shared.references) == Counter(p for paths in self.held for p in paths)

    @invariant()
    def a_rebuilt_registry_is_the_same(self):
        """A driver that starts rebuilds it from manifests, in whatever order it reads them."""
        rebuilt = SharedStateRegistry()
        for paths in reversed(self.held):
            rebuilt = rebuilt.take(paths)
        assert rebuilt.references == self.shared.references

    def referenced(self):
        return {path for paths in self.held for path in paths}


TestAgainstALedger = AgainstALedger.TestCase
