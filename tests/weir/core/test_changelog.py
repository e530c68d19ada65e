"""What the changelog of a subtask refers to, folds, gives up and deletes."""

from weir.core.changelog import (
    MOST_SEGMENTS,
    RETRY_MS,
    START,
    Changelog,
    ChangelogPolicy,
    Cut,
    Position,
    Segment,
    files_of,
    size_of,
)
from weir.core.ids import NO_CHECKPOINT, CheckpointId, Millis
from weir.core.snapshots import StateFile

POLICY = ChangelogPolicy(materialization_interval_ms=600_000, preemptive_bytes=100)
ONE, TWO, THREE = CheckpointId(1), CheckpointId(2), CheckpointId(3)
STATE = "counts"


def a_file(path, size=10):
    return StateFile(path, size, shared=True)


def a_segment(since, upto, *, size=10, merged=False, weight=1):
    name = f"whole-{upto}" if since is None else f"{since}-{upto}"
    begin = None if since is None else Position(since)
    files = {STATE: (a_file(name, size),)}
    return Segment(begin, Position(upto), files, weight=weight, is_merged=merged)


def a_log(policy=POLICY):
    log = Changelog(policy)
    log.begun()
    return log


def take(log, checkpoint, position, *, base=NO_CHECKPOINT, **tail):
    """Plan a checkpoint and store its tail; the names of the files it refers to."""
    plan = log.plan(checkpoint, base, Cut(Position(position)))
    segment = a_segment(plan.since, position, weight=plan.weight, **tail)
    return names(log.stored(checkpoint, segment))


def names(chain):
    return [file.path for file in files_of(chain, STATE)]


def complete(log, checkpoint, position, *, base=NO_CHECKPOINT, size=10):
    made = take(log, checkpoint, position, base=base, size=size)
    log.acked(checkpoint)
    log.complete(checkpoint)
    return made


# -- what a checkpoint refers to


def test_a_checkpoint_adds_only_the_tail_to_what_was_uploaded_before() -> None:
    """S5: segments that went up before the barrier are confirmed, not written again."""
    log = a_log()
    complete(log, ONE, 2, size=500)
    assert log.begin_segment() == 2
    log.logged(a_segment(2, 3, size=500))

    assert take(log, TWO, 4, base=ONE) == ["1-2", "2-3", "3-4"]


def test_a_segment_that_is_not_durable_at_the_barrier_is_not_waited_for() -> None:
    """S5: the tail holds its changes too, and the late segment is deleted."""
    log = a_log()
    complete(log, ONE, 2, size=500)
    log.begin_segment()
    assert take(log, TWO, 4, base=ONE) == ["1-2", "2-4"]
    log.logged(a_segment(2, 3, size=500))
    log.acked(TWO)

    assert log.complete(TWO) == ["2-3"]


def test_a_checkpoint_does_not_refer_to_changes_behind_its_barrier() -> None:
    """S5: a segment that was cut after the barrier belongs to the next checkpoint."""
    log = a_log()
    complete(log, ONE, 2, size=500)
    log.logged(a_segment(2, 5, size=500))

    assert take(log, TWO, 4, base=ONE) == ["1-2", "2-4"]


def test_segments_are_laid_in_the_order_of_their_positions() -> None:
    """S5: the newest value of a key is laid last, in whatever order the uploads ended."""
    log = a_log()
    complete(log, ONE, 2, size=500)
    log.logged(a_segment(3, 4, size=500))
    log.logged(a_segment(2, 3, size=500))

    assert take(log, TWO, 5, base=ONE) == ["1-2", "2-3", "3-4", "4-5"]


def test_a_gap_is_never_skipped() -> None:
    """S5: what follows a missing segment is not referred to; the tail begins before the gap."""
    log = a_log()
    complete(log, ONE, 2, size=500)
    log.logged(a_segment(3, 4, size=500))

    assert take(log, TWO, 5, base=ONE) == ["1-2", "2-5"]


def test_a_restored_checkpoint_that_is_not_owned_is_not_referred_to() -> None:
    """S5 C16: without its claim the first checkpoint writes the whole state."""
    log = Changelog(POLICY)
    log.restored(ONE, {STATE: (a_file("old"),)}, merged=False)
    assert log.plan(TWO, NO_CHECKPOINT, Cut(Position(2))).since is None

    log = Changelog(POLICY)
    log.restored(ONE, {STATE: (a_file("old"), a_file("layer"))}, merged=False)
    assert take(log, TWO, 2, base=ONE) == ["old", "layer", "1-2"]


def test_a_full_checkpoint_refers_to_nothing_older() -> None:
    """S5 C11: it materializes, and the next checkpoint builds on it."""
    log = a_log()
    complete(log, ONE, 2)
    plan = log.plan(TWO, NO_CHECKPOINT, Cut(Position(3)), is_full=True)
    assert plan.since is None
    assert plan.chain == ()
    log.stored(TWO, a_segment(None, 3))
    log.acked(TWO)
    log.complete(TWO)

    assert take(log, THREE, 4, base=TWO) == ["whole-3", "3-4"]


def test_a_state_whose_changes_are_not_known_is_written_as_a_whole() -> None:
    """S5: nothing of that state below is read, and the other states keep theirs."""
    first = Segment(None, START, {"a": (a_file("a0"),), "b": (a_file("b0"),)})
    files = {"a": (a_file("a1"),), "b": (a_file("b1"),)}
    second = Segment(START, Position(2), files, whole_states=frozenset({"a"}))

    assert [f.path for f in files_of((first, second), "a")] == ["a1"]
    assert [f.path for f in files_of((first, second), "b")] == ["b0", "b1"]


# -- aborts: who owns what


def test_what_an_aborted_checkpoint_had_acked_is_logged_again() -> None:
    """S5 C7 C9: the coordinator deletes those files, so the next tail begins before them."""
    log = a_log()
    complete(log, ONE, 2, size=500)
    take(log, TWO, 3, base=ONE)
    log.acked(TWO)
    assert log.given_up(TWO) == ["2-3"]

    assert take(log, THREE, 4, base=ONE) == ["1-2", "2-4"]


def test_the_tail_of_a_checkpoint_that_was_not_acked_stays_in_the_log() -> None:
    """S5: its upload was not in vain."""
    log = a_log()
    complete(log, ONE, 2, size=500)
    take(log, TWO, 3, base=ONE, size=500)
    assert log.given_up(TWO) == []

    assert take(log, THREE, 4, base=ONE) == ["1-2", "2-3", "3-4"]


def test_a_tail_that_shares_a_file_goes_with_its_checkpoint() -> None:
    """S5 S6: another subtask may have acked the file, and then the coordinator deletes it."""
    log = a_log()
    complete(log, ONE, 2, size=500)
    take(log, TWO, 3, base=ONE, merged=True)
    assert log.given_up(TWO) == []

    assert take(log, THREE, 4, base=ONE) == ["1-2", "2-4"]


def test_two_pending_checkpoints_do_not_refer_to_each_other() -> None:
    """S5 S4: the older may abort while the newer is under way."""
    log = a_log()
    complete(log, ONE, 2, size=500)
    take(log, TWO, 3, base=ONE, size=500)
    log.acked(TWO)

    assert take(log, THREE, 4, base=ONE) == ["1-2", "2-4"]


def test_a_trigger_that_names_a_checkpoint_tells_of_its_completion() -> None:
    """S5: the barrier may come before the notice."""
    log = a_log()
    take(log, ONE, 2, size=500)
    log.acked(ONE)

    assert take(log, TWO, 3, base=ONE) == ["1-2", "2-3"]


# -- folding


def test_small_tails_are_folded_as_a_counter_carries() -> None:
    """S5: the number of segments grows with the logarithm of the checkpoints."""
    log, base, chains = a_log(), NO_CHECKPOINT, []
    for number in range(1, 65):
        chains.append(complete(log, CheckpointId(number), number + 1, base=base, size=1))
        base = CheckpointId(number)

    assert max(map(len, chains)) <= 7
    assert chains[-1] == ["1-65"]


def test_a_large_segment_is_not_written_again() -> None:
    """S5: folding costs each change a few uploads, not one with every checkpoint."""
    log = a_log()
    complete(log, ONE, 2, size=100)

    assert complete(log, TWO, 3, base=ONE, size=10) == ["1-2", "2-3"]


def test_no_segment_begins_before_what_the_backend_still_knows() -> None:
    """S5: the backend forgets changes only where no later segment begins."""
    log, base = a_log(), NO_CHECKPOINT
    for number in range(1, 40):
        oldest = log.oldest_position()
        plan = log.plan(CheckpointId(number), base, Cut(Position(number + 1)))
        assert plan.since is not None
        assert plan.since >= oldest
        size = 10 if number % 7 else 200
        tail = a_segment(plan.since, number + 1, size=size, weight=plan.weight)
        log.stored(CheckpointId(number), tail)
        log.acked(CheckpointId(number))
        log.complete(CheckpointId(number))
        base = CheckpointId(number)
    assert log.oldest_position() > START


# -- materialization


def test_a_materialization_is_due_by_its_interval_and_by_the_size_of_the_log() -> None:
    """S5: replay is bounded by the state, not by the history."""
    log = a_log()
    assert not log.wants_materialization(Millis(0))
    complete(log, ONE, 2, size=50)
    assert not log.wants_materialization(Millis(1))
    assert log.wants_materialization(Millis(600_000))
    complete(log, TWO, 3, base=ONE, size=101)
    assert log.wants_materialization(Millis(2))


def test_a_materialization_is_due_when_there_are_many_segments() -> None:
    """S5: a restore does not open files without a bound."""
    log = Changelog(POLICY._replace(preemptive_bytes=1))
    log.free = (a_segment(None, 1, size=10**9),)
    complete(log, ONE, 2, size=1)
    for upto in range(3, MOST_SEGMENTS + 1):
        log.logged(a_segment(upto - 1, upto, size=1))
    take(log, TWO, MOST_SEGMENTS + 1, base=ONE, size=1)

    assert size_of(log.newest()).segments == MOST_SEGMENTS
    assert log.wants_materialization(Millis(1))


def test_a_materialized_state_truncates_the_log() -> None:
    """S5: later checkpoints refer to it and to what came after it."""
    log = a_log()
    complete(log, ONE, 2, size=200)
    log.begin_materialization(Millis(0))
    assert not log.wants_materialization(Millis(1)), "one at a time"
    complete(log, TWO, 4, base=ONE, size=200)
    log.materialized(a_segment(None, 3))
    assert not log.wants_materialization(Millis(1)), "no checkpoint refers to it yet"

    assert take(log, THREE, 5, base=TWO) == ["whole-3", "2-4", "4-5"]


def test_a_segment_is_kept_while_the_new_whole_does_not_cover_it() -> None:
    """S5: truncated up to the position of the whole, and not beyond."""
    log = a_log()
    complete(log, ONE, 2, size=200)
    log.begin_materialization(Millis(0))
    log.logged(a_segment(2, 3, size=200))
    log.logged(a_segment(3, 5, size=200))

    assert log.materialized(a_segment(None, 4)) == ["2-3"]
    assert take(log, TWO, 6, base=ONE) == ["whole-4", "3-5", "5-6"]


def test_a_materialization_that_fails_is_tried_again_later() -> None:
    """S5: and nothing else fails."""
    log = a_log()
    complete(log, ONE, 2, size=200)
    assert log.wants_materialization(Millis(0))
    log.begin_materialization(Millis(0))
    log.materialized(None)

    assert not log.wants_materialization(Millis(RETRY_MS - 1))
    assert log.wants_materialization(Millis(RETRY_MS))


def test_a_segment_that_was_not_written_is_folded_into_the_next() -> None:
    """S5: a failed preemptive upload fails no checkpoint and loses no change."""
    log = a_log()
    complete(log, ONE, 2, size=200)
    log.begin_segment()
    assert not log.wants_segment(10**9), "one at a time"
    log.logged(None)

    assert log.wants_segment(100)
    assert not log.wants_segment(99)
    assert log.begin_segment() == 2


# -- the end


def test_an_ended_subtask_leaves_no_file_that_nothing_refers_to() -> None:
    """S5: segments that no ack named are deleted, also those whose uploads end later."""
    log = a_log()
    complete(log, ONE, 2, size=200)
    log.logged(a_segment(2, 3, size=200))
    take(log, TWO, 4, base=ONE, size=200)

    assert log.close() == []
    assert log.given_up(TWO) == ["2-3", "3-4"]
    assert log.logged(a_segment(4, 5)) == ["4-5"]


def test_only_what_is_needed_is_kept_of_merged_files() -> None:
    """S5 S6: a tail whose file is not worth keeping is written again."""
    log = a_log()
    take(log, ONE, 2, merged=True)
    log.acked(ONE)
    log.complete(ONE)

    assert names(log.plan(TWO, ONE, Cut(Position(3)), kept=frozenset({"1-2"})).chain) == []
    log.free = (a_segment(2, 3, size=500),)
    plan = log.plan(TWO, ONE, Cut(Position(4)), kept=frozenset())

    assert plan.since == START, "the merged tail is not worth keeping"
    assert names(plan.chain) == []
