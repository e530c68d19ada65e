"""Sources that listen are notified after each completed checkpoint of what is never read again."""

from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from threading import Event

import pytest

from coordinated_job import a_manifest
from fake_connectors import MORE, ONE, READ, READ_0, TWO, FakeSource
from scripted_loop import ImmediateActionRunner, a_loop
from split_reads import patiently
from weir.core.coordinator.actions import ReportCompleted
from weir.core.enumerator import Pool
from weir.core.ids import Millis
from weir.core.lifecycle import TimePassed
from weir.core.snapshots import (
    CheckpointKind,
    CoordinatorSnapshot,
    ListHandle,
    Redistribution,
    SubtaskSnapshot,
)
from weir.driver.source_commits import SourceCommits
from weir.ports.sources import SPLITS, CheckpointedSplit
from weir.state.snapshot_files import write_list
from weir.storage.memory_store import MemoryStore
from weir.storage.state_files import put, small

PATIENCE = 20.0
NOW = TimePassed(Millis(0), 0.0)


@dataclass
class Listening(FakeSource):
    """Records notifications, when it may."""

    heard: SimpleQueue = field(default_factory=SimpleQueue)
    may_hear: Event = field(default_factory=Event)
    begun: Event = field(default_factory=Event)
    problems: list[Exception] = field(default_factory=list)

    def completed(self, seen, unread):
        self.begun.set()
        assert self.may_hear.wait(PATIENCE)
        if self.problems:
            raise self.problems.pop()
        self.heard.put((seen, unread))

    def stop(self):
        self.heard.put("stop")


@pytest.fixture
def source():
    made = Listening()
    made.may_hear.set()
    return made


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def commits(source, store):
    commits = SourceCommits({READ: source, MORE: FakeSource()}, store)
    commits.start()
    yield commits
    source.may_hear.set()
    commits.close()


def completed(commits, seen, free=(), reading=(), kind=CheckpointKind.CHECKPOINT):
    """The driver has completed a checkpoint with this in it."""
    lists = tuple(ListHandle(SPLITS, Redistribution.SPLIT, file, 1) for file in reading)
    pools = (CoordinatorSnapshot(READ, Pool(tuple(free), seen)),)
    snapshot = SubtaskSnapshot(READ_0, lists=lists)
    manifest = replace(a_manifest(1, kind, snapshots=(snapshot,)), coordinators=pools)
    job = a_loop(ImmediateActionRunner())[0].job
    commits.on_step(NOW, job, (ReportCompleted(manifest, 1, 1),))


def kept(split):
    return write_list([CheckpointedSplit(split, "7", Millis(0)).encode()])


def test_what_is_free_and_what_is_being_read_has_not_been_read(commits, source, store):
    """R5: the state may be in the manifest or in storage."""
    completed(commits, "a", free=[ONE], reading=[small(kept(TWO))])
    assert source.heard.get(timeout=PATIENCE) == ("a", (ONE, TWO))
    completed(commits, "b", reading=[put(store, "memory://x/list", kept(ONE))])
    assert source.heard.get(timeout=PATIENCE) == ("b", (ONE,))


def test_a_savepoint_on_the_side_commits_nothing(commits, source):
    """R5: no job recovers from it by itself."""
    completed(commits, "a", kind=CheckpointKind.SAVEPOINT)
    completed(commits, "b")
    assert source.heard.get(timeout=PATIENCE) == ("b", ())


def test_a_slow_source_hears_the_newest_of_what_waited(commits, source):
    """R5: and the driver's loop does not wait for it."""
    source.may_hear.clear()
    completed(commits, "a")
    assert source.begun.wait(PATIENCE)
    for seen in "bcd":
        completed(commits, seen)
    source.may_hear.set()
    assert source.heard.get(timeout=PATIENCE) == ("a", ())
    assert source.heard.get(timeout=PATIENCE) == ("d", ())


def test_a_source_that_fails_hears_of_the_next(commits, source, caplog):
    """R1: a commit is a hint to the source, and no checkpoint depends on it."""
    source.problems.append(OSError("the line is dead"))
    completed(commits, "a")
    patiently(lambda: not source.problems)
    completed(commits, "b")
    assert source.heard.get(timeout=PATIENCE) == ("b", ())
    assert "read could not commit what has been read: OSError: the line is dead" in caplog.text


def test_a_source_is_stopped_with_its_driver(commits, source):
    """D1: behind the last commit."""
    completed(commits, "a")
    commits.close()
    assert [source.heard.get(timeout=PATIENCE) for _ in range(2)] == [("a", ()), "stop"]
