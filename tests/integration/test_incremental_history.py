"""Hundreds of incremental checkpoints with every mishap in between: no file missing, none left."""

import os
from dataclasses import dataclass, field
from random import Random
from statistics import median

import pytest

from counting_job import COUNT, FORGET, SPLITS, a_counting_graph, expected_counts
from fake_connectors import READ, FakeSource
from in_process_job import InProcessJob, all_free
from weir.core.coordinator.actions import RequestSucceeded
from weir.core.file_pool import FileMergingPolicy
from weir.core.lifecycle import JobStatus
from weir.core.policy import Policy, Retention
from weir.core.restore_decision import RestoreRequest
from weir.core.snapshots import CheckpointKind, KeyGroupRange
from weir.core.space_amplification import amplification
from weir.slot.layers import MOST_LAYERS
from weir.slot.snapshot_storage import SnapshotStorageSettings
from weir.state.snapshot_files import read_list
from weir.state.state_file_reader import header_of, rows_of
from weir.storage import state_files
from weir.storage.garbage_collection import collect, scan, unreferenced
from weir.storage.inspection import StateFileReaders, describe, find

CHECKPOINTS = 500
SEED = 11
TIMEOUT_MS = 1_000
OPENING = StateFileReaders(header_of, read_list)
NUMBERS = 300
CHECKPOINT, FULL = CheckpointKind.CHECKPOINT, CheckpointKind.FULL_CHECKPOINT


@dataclass
class History:
    """A job, what happens to it, and what was found after each checkpoint."""

    job: InProcessJob
    source: FakeSource
    dice: Random
    savepoints: str
    asked: int = 0
    completed: int = 0
    happened: list[str] = field(default_factory=list)
    layers: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    deployments: int = 0
    amplifications: list[float] = field(default_factory=list)
    """Bytes of all retained files for each byte of their live segments, after each checkpoint."""
    files_made: list[float] = field(default_factory=list)
    """Files of each checkpoint that no older one refers to, for each slot."""
    orphaned: set[int] = field(default_factory=set)
    """Epochs in which a slot died with files that it had not reported."""

    # -- lives of drivers

    def start(self, *, width=2, path="", claims=False, retention=Retention.RETAIN_ON_CANCELLATION):
        self.deployments += 1
        policy = Policy(
            timeout_ms=TIMEOUT_MS,
            tolerable_failures=self.dice.choice([0, 1_000]),
            retained=self.dice.choice([1, 2, 3]),
            retention=retention,
            incremental=True,
        )
        restore_request = RestoreRequest(f"deployment-{self.deployments}", path, claims)
        self.job.start(policy, width, restore_request, all_free(*SPLITS))

    @property
    def epoch(self):
        return self.job.driver.beginning.epoch_state.epoch

    @property
    def width(self):
        return self.job.driver.beginning.topology.slots_needed

    def feed(self):
        for _ in range(self.dice.randrange(1, 4)):
            low = self.dice.randrange(NUMBERS)
            span = NUMBERS - low if self.dice.random() < 0.05 else 8
            rows = [self.dice.randrange(low, low + span) for _ in range(self.dice.randrange(12))]
            self.source.feed(*rows, split=self.dice.choice(SPLITS))
        self.job.settle(3)

    # -- what may happen

    def nothing(self):
        self.ask()

    def full(self):
        self.ask(FULL)

    def refused_upload(self):
        """A decline: some files are up, the next is not."""
        self.any_slot().files.refuses_after = self.dice.randrange(3)
        self.ask()
        for slot in self.job.slots:
            slot.files.refuses_after = None

    def timeout(self):
        """An upload hangs until the checkpoint is long dead."""
        slot = self.any_slot()
        slot.hand.is_held = True
        request = self.begin()
        self.job.settle()
        self.job.now += TIMEOUT_MS
        self.finish(request)
        slot.hand.release()
        self.job.settle()

    def lost_completion(self):
        slot = self.any_slot()
        slot.hears_completions = False
        self.ask()
        slot.hears_completions = True

    def slot_dies(self):
        self.job.kill(self.dice.randrange(self.width))
        self.ask()

    def slot_dies_with_its_uploads_up(self):
        """Files that were not reported."""
        number = self.dice.randrange(self.width)
        slot = self.job.slots[number]
        slot.hand.is_held = True
        request = self.begin()
        self.job.settle()
        slot.hand.release()
        self.job.kill(number)
        self.orphaned.add(self.epoch)
        self.finish(request)

    def driver_dies(self):
        self.start(width=self.width)

    def driver_dies_in_a_checkpoint(self):
        """It finds out that it is dead only when it wants to complete what it began."""
        zombie = self.job.driver
        zombie.hand.is_held = True
        self.begin()
        self.job.settle()
        self.start(width=self.width)
        zombie.hand.release()
        zombie.step(self.job.now)
        assert zombie.end is None or zombie.end.fenced

    def rescaling(self):
        self.start(width=self.dice.choice([w for w in (1, 2, 3) if w != self.width]))

    def savepoint(self):
        where = f"{self.savepoints}/{self.asked}"
        self.finish(self.begin(CheckpointKind.SAVEPOINT, where))

    def begins_anew_from_a_savepoint(self):
        where = f"{self.savepoints}/{self.asked}"
        if isinstance(self.finish(self.begin(CheckpointKind.SAVEPOINT, where)), RequestSucceeded):
            claims = self.dice.random() < 0.5
            self.start(width=self.width, path=f"{where}/_metadata", claims=claims)

    def any_slot(self):
        return self.dice.choice(self.job.slots)

    # -- checkpoints

    def ask(self, kind=CHECKPOINT):
        return self.finish(self.begin(kind))

    def begin(self, kind=CHECKPOINT, location=""):
        self.job.until_running()
        self.asked += 1
        return self.job.ask(kind, location)

    def finish(self, request):
        outcome = self.job.answer(request)
        self.job.settle(3)
        if isinstance(outcome, RequestSucceeded):
            self.completed += 1
            self.check()
        return outcome

    def check(self):
        """All that is retained can be restored from, and is what the rows make it."""
        for done in self.job.driver.job.coordinator.checkpoints.completed:
            found = describe(self.job.store, find(self.job.store, done.manifest.location), OPENING)
            self.wrong += found.problems
        if self.job.driver.job.coordinator.checkpoints.completed:
            self.check_counts(found)
            self.measure()

    def measure(self):
        kept = [done.manifest for done in self.job.driver.job.coordinator.checkpoints.completed]
        live = {f.segment: f.bytes for manifest in kept for f in manifest.files()}
        physical = sum(self.job.store.size(path) for path in self.referenced_files())
        self.amplifications.append(amplification(physical, sum(live.values())))
        newest = {file.path for file in kept[-1].files()}
        older = {file.path for manifest in kept[:-1] for file in manifest.files()}
        if len(kept) > 1:
            self.files_made.append(len(newest - older) / self.width)

    def check_counts(self, found):
        expected = expected_counts(self.source, found.by_uid[READ].positions)
        for operator, column in ((COUNT, "count(*)"), (FORGET, "value.rows")):
            counted = {}
            for state in found.by_uid[operator].keyed:
                for part in state.parts:
                    self.layers.append(len(part))
                    counted.update(self.rows_in(part, column))
            if counted != expected[operator]:
                self.wrong.append(f"{found.manifest.location}: {operator} has other counts")

    def rows_in(self, part, column):
        files = [state_files.fetch(self.job.store, handle.file) for handle in part]
        groups = KeyGroupRange(*part[0].groups)
        for batch in rows_of(files, groups):
            numbers = batch.column("n").to_pylist()
            yield from zip(numbers, batch.column(column).to_pylist(), strict=True)

    # -- what is in storage

    def check_leftovers(self):
        """What an epoch has written and does not need goes while it lives."""
        coordinator = self.job.driver.job.coordinator
        assert not coordinator.checkpoints.pending, "everything that was asked for is answered"
        if self.epoch not in self.orphaned:
            self.wrong += [f"{url} is left over" for url in self.of_this_epoch()]

    def of_this_epoch(self):
        """Files that this epoch wrote and does not refer to."""
        return [u for u in self.files() - self.referenced() if f"-e{self.epoch}-" in u]

    def files(self):
        listed = self.job.store.list(self.job.directory)
        return {url for url in listed if not url.startswith(f"{self.job.directory}/log/")}

    def referenced_files(self):
        kept = [done.manifest for done in self.job.driver.job.coordinator.checkpoints.completed]
        return {file.path for manifest in kept for file in manifest.files()}

    def referenced(self):
        kept = [done.manifest for done in self.job.driver.job.coordinator.checkpoints.completed]
        return self.referenced_files() | {f"{manifest.location}/_metadata" for manifest in kept}

    def collect(self):
        found = scan(self.job.store, self.job.directory)
        collect(self.job.store, found, unreferenced(found))


OFTEN = ("nothing",) * 12
MISHAPS = (
    *OFTEN,
    "full",
    "refused_upload",
    "refused_upload",
    "timeout",
    "lost_completion",
    "lost_completion",
    "slot_dies",
    "slot_dies_with_its_uploads_up",
    "driver_dies",
    "driver_dies_in_a_checkpoint",
    "rescaling",
    "savepoint",
    "begins_anew_from_a_savepoint",
)


@pytest.fixture(scope="module")
def _no_fsync():
    """Waiting for the disk would be most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


BOUND = 2.0
MERGED = FileMergingPolicy(64 << 10, BOUND, longest_wait_ms=50)


@pytest.fixture(scope="module", params=[None, MERGED], ids=["a file each", "merged files"])
def history(tmp_path_factory, _no_fsync, request):
    """Five hundred checkpoints, until the job is canceled."""
    place = tmp_path_factory.mktemp("history")
    source = FakeSource({split: [] for split in SPLITS}, is_endless=True)
    keeping = SnapshotStorageSettings(
        f"file://{place}", 0, 0, is_incremental=True, merging=request.param
    )
    job = InProcessJob(keeping, lambda width: a_counting_graph(source, width))
    dice = Random(SEED)  # noqa: S311 - a story to repeat, not a secret
    lived = History(job, source, dice, f"file://{place}/savepoints")
    lived.start()
    while lived.asked < CHECKPOINTS:
        what = lived.dice.choice(MISHAPS)
        lived.happened.append(what)
        lived.feed()
        getattr(lived, what)()
        lived.check_leftovers()
    lived.start()
    lived.ask()
    job.cancel()
    return lived


def test_every_mishap_happened_and_the_job_went_on(history):
    """C9, R1: a history that tests nothing would be no proof."""
    assert set(history.happened) == set(MISHAPS)
    assert history.completed > CHECKPOINTS // 2
    assert history.job.driver.end.status is JobStatus.CANCELED


def test_whatever_is_retained_is_there_and_nothing_else(history):
    """S4, C1, C9, C18: after each checkpoint, with its checksum and the rows before its barrier."""
    assert history.wrong == []


def test_layers_stay_bounded(history):
    """S4: a snapshot has more than one layer, and never more than so many."""
    assert 1 < max(history.layers) <= MOST_LAYERS


def test_the_space_of_files_stays_bounded(history):
    """S6: all files of all retained checkpoints together, after each of them."""
    assert max(history.amplifications) <= BOUND


def test_merged_files_are_few(history, request):
    """S6: for each slot one that later checkpoints may refer to, and one that they may not."""
    is_merged = request.node.callspec.params["history"] is not None

    assert (median(history.files_made) <= 2) is is_merged


def test_nothing_is_left_over_but_what_dead_processes_left(history):
    """S4: files of older epochs without references; collecting them leaves what is needed."""
    assert history.files() - history.referenced()
    assert history.of_this_epoch() == []

    history.collect()

    assert history.files() == history.referenced()
    history.check()
    assert history.wrong == []
