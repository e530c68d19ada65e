"""A split is in exactly one place in every checkpoint: with the enumerator, or with a reader."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from weir.core.enumerator import AssignSplit, NoMoreSplits, Splits, shown
from weir.core.ids import NO_CHECKPOINT, OperatorId, SubtaskId

READERS = (SubtaskId(OperatorId("read"), 0), SubtaskId(OperatorId("read"), 1))
ADA, BOB = READERS
BOTH = frozenset(READERS)


def given_to(splits, *readers):
    for reader in readers:
        splits, _ = splits.give(reader)
    return splits


def test_a_reader_that_asks_gets_the_next_split():
    """C4: the driver hands out splits one at a time."""
    splits, answer = Splits(("a", "b")).give(ADA)

    assert answer == AssignSplit("a")
    assert splits.free == ("b",)


def test_a_reader_that_asks_an_empty_pool_hears_that_there_are_no_more():
    """C14: that is how a reader comes to its end."""
    assert Splits(()).give(ADA)[1] == NoMoreSplits()


def test_what_a_source_keeps_in_an_id_is_not_shown():
    """X4: a URL is a location; the rest of an id behind its name belongs to the source."""
    assert shown("file:///in/part-1.parquet") == "file:///in/part-1.parquet"
    assert shown("0003") == "0003"
    assert shown("000001-000002.e30=.c2VjcmV0") == "000001-000002"


def test_a_reader_that_waits_is_forgotten_when_it_is_reset():
    """C4: its next attempt asks again."""
    splits = given_to(Splits((), is_final=False), ADA, BOB).reset(frozenset({ADA}), NO_CHECKPOINT)

    _, messages = splits.find(("a", "b"), "b", is_final=False)

    assert messages == ((BOB, AssignSplit("a")),)


def test_what_was_assigned_after_the_snapshot_returns_when_its_reader_goes_back_to_it():
    """C4: the checkpoint has it as free, and its reader's state does not know it."""
    splits = given_to(Splits(("a", "b")).snapshot(1), ADA)

    assert splits.reset(BOTH, 1).free == ("a", "b")


def test_what_was_assigned_before_the_snapshot_stays_with_its_reader():
    """C4: it is in the reader's state; handing it out again would read it twice."""
    splits = given_to(Splits(("a", "b")), ADA).snapshot(1)

    assert splits.reset(BOTH, 1).free == ("b",)


def test_a_reader_that_was_not_reset_keeps_what_it_has():
    """R4: a failure in one region takes no split from another."""
    splits = given_to(Splits(("a", "b")).snapshot(1), ADA, BOB)

    assert splits.reset(frozenset({BOB}), 1).free == ("b",)


def test_a_reader_that_starts_from_nothing_gives_back_all_it_had():
    """R1: no checkpoint holds any of it."""
    splits = given_to(Splits(("a", "b")), ADA, BOB)

    assert splits.reset(BOTH, NO_CHECKPOINT).free == ("a", "b")


def test_a_split_returns_though_the_checkpoint_after_its_assignment_was_aborted():
    """C9: an aborted snapshot covers nothing."""
    splits = given_to(Splits(("a", "b")).snapshot(1), ADA).snapshot(2)

    assert splits.reset(BOTH, 1).free == ("a", "b")


def test_a_completion_forgets_what_its_readers_hold_for_good_and_nothing_else():
    """C4: history is kept as long as a restore may need it."""
    splits = given_to(Splits(("a", "b")), ADA).snapshot(1)
    splits = given_to(splits, BOB).completed(1)

    assert [assigned.split for assigned in splits.assigned] == ["b"]


def test_no_split_is_given_back_twice():
    """C4: a repeated reset changes nothing more."""
    once = given_to(Splits(("a",)), ADA).reset(BOTH, NO_CHECKPOINT)

    assert once.reset(BOTH, NO_CHECKPOINT) == once


class AgainstReaders(RuleBasedStateMachine):
    """C4 R1: readers take splits, checkpoints come and go, readers fall back to the newest one."""

    def __init__(self):
        super().__init__()
        self.splits = Splits(tuple("abcdef"))
        self.held = {reader: set() for reader in READERS}
        self.saved = {NO_CHECKPOINT: {reader: set() for reader in READERS}}
        self.newest = NO_CHECKPOINT
        self.ids = 0

    @rule(reader=st.sampled_from(READERS))
    def ask(self, reader):
        self.splits, answer = self.splits.give(reader)
        if isinstance(answer, AssignSplit):
            self.held[reader].add(answer.split)

    @rule()
    def snapshot(self):
        self.ids += 1
        self.splits = self.splits.snapshot(self.ids)
        self.saved[self.ids] = {reader: set(held) for reader, held in self.held.items()}

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def complete(self, data):
        later = [c for c in self.saved if c > self.newest]
        if later:
            self.newest = data.draw(st.sampled_from(sorted(later)))
            self.splits = self.splits.completed(self.newest)

    @rule(readers=st.sets(st.sampled_from(READERS)))
    def fall_back(self, readers):
        self.splits = self.splits.reset(frozenset(readers), self.newest)
        for reader in readers:
            self.held[reader] = set(self.saved[self.newest][reader])
        self.forget_snapshots_in_flight()

    def forget_snapshots_in_flight(self):
        """A restart aborts every checkpoint that is not complete."""
        self.saved = {c: saved for c, saved in self.saved.items() if c <= self.newest}

    @invariant()
    def every_split_is_in_one_place(self):
        places = [*self.splits.free, *(s for held in self.held.values() for s in held)]
        assert sorted(places) == list("abcdef")


TestAgainstReaders = AgainstReaders.TestCase
