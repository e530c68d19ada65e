"""The pieces of a slot's subtasks share files on real storage, and no ack outruns its files."""

from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from random import Random
from threading import Event

import pyarrow as pa
import pytest

from random_seed import SEED, dice, show
from stepped_slots import SteppedExecutor, a_barrier
from weir.core.coordinator.events import SubtaskAcked
from weir.core.file_pool import FileMergingPolicy
from weir.core.ids import NO_CHECKPOINT, CheckpointId, Millis, OperatorId, SubtaskId
from weir.core.reasons import Reason
from weir.core.snapshots import CheckpointKind, KeyGroupRange, Redistribution, SubtaskSnapshot
from weir.core.space_amplification import amplification
from weir.errors import Unavailable
from weir.ports.operators import Captured, KeyedSnapshot, ListSnapshot
from weir.slot.effects import StartUpload
from weir.slot.merged_files import AckReleased, MergedFiles
from weir.slot.row_format import ArrowFormat
from weir.slot.snapshot_storage import SnapshotStorage, SnapshotStorageSettings
from weir.slot.snapshot_uploads import (
    MOST_UPLOADS,
    SnapshotUploads,
    UploadEnded,
    UploadFailed,
    UploadMemory,
)
from weir.slot.snapshot_writer import SnapshotWriter
from weir.storage.file_store import FileStore

RUN = (1, 1)
GROUPS = KeyGroupRange(0, 127)
SUBTASKS = [SubtaskId(OperatorId("sum"), index) for index in range(6)]
KIB = 1024


class RefusingStorage(SnapshotStorage):
    """Storage that is not there for merged files, or slow, on demand."""

    refuses = False

    def __init__(self, settings):
        super().__init__(settings)
        self.began, self.goes_on = Event(), Event()
        self.goes_on.set()

    def put_merged(self, path, segments):
        self.began.set()
        assert self.goes_on.wait(20), "nothing let the write go on"
        if self.refuses:
            raise Unavailable("the storage is not there", retry_after=1.0)
        super().put_merged(path, segments)


@dataclass
class Slot:
    """The merged files of one slot, its uploads, and a mailbox that only collects."""

    place: str
    policy: FileMergingPolicy
    is_incremental: bool = True
    subtasks: list[SubtaskId] = field(default_factory=lambda: SUBTASKS[:2])
    now: int = 0
    limit: int | None = None
    hand: Executor = field(default_factory=SteppedExecutor)
    """Writes files."""

    def __post_init__(self):
        settings = SnapshotStorageSettings(
            self.place, 0, 0, is_incremental=self.is_incremental, merging=self.policy
        )
        self.storage = RefusingStorage(settings)
        self.mail = []
        self.merged = MergedFiles(
            self.storage, self.hand, self.mail.append, lambda: Millis(self.now)
        )
        self.memory = UploadMemory(self.limit)
        self.writers = {}
        for subtask in self.subtasks:
            uploads = SnapshotUploads(subtask, self.memory)
            self.writers[subtask] = SnapshotWriter(
                subtask, RUN, self.storage, ArrowFormat(), uploads, self.merged
            )
            self.merged.joined(RUN, subtask, uploads.layers)

    def barrier(self, number, base=NO_CHECKPOINT):
        location = f"{self.place}/job/chk-{number}"
        return replace(a_barrier(CheckpointId(number)), location=location, base=base)

    def upload(self, subtask, barrier, captured):
        """The upload of one subtask, up to its wish to ack; its result is what it names."""
        writer = self.writers[subtask]
        upload = writer.uploads.start(barrier, 0, captured)
        result = writer.write(StartUpload(upload, captured, SubtaskSnapshot(subtask)))
        return upload, result

    def ack(self, subtask, barrier, captured):
        _, result = self.upload(subtask, barrier, captured)
        acked = SubtaskAcked(1, barrier.checkpoint, subtask, result.snapshot, result.timings)
        self.merged.ack(RUN, acked)
        return result.snapshot

    def reported(self):
        """The acks that may go to the driver."""
        released = [mail for mail in self.mail if isinstance(mail, AckReleased)]
        self.mail[:] = [mail for mail in self.mail if mail not in released]
        return [each.event.subtask for each in released if self.merged.reported(each)]

    def files(self):
        return list(FileStore().list(f"{self.place}/job"))


def whole(size, name="state", since=lambda _: None):
    return Captured(keyed=(KeyedSnapshot(GROUPS, lambda: content(size), name, since),))


def content(size):
    return pa.py_buffer(bytes(range(256)) * (size // 256))


@pytest.fixture
def slot(tmp_path):
    return Slot(f"file://{tmp_path}", FileMergingPolicy(64 * KIB, 2.0, None))


def test_the_subtasks_of_a_slot_write_one_file(slot):
    """S6: which each of them reads its own piece of."""
    barrier = slot.barrier(1)
    snapshots = [slot.ack(s, barrier, whole(KIB * (n + 1))) for n, s in enumerate(slot.subtasks)]

    assert slot.reported() == slot.subtasks
    (path,) = slot.files()
    for number, snapshot in enumerate(snapshots):
        (file,) = snapshot.files()
        assert file.path == path
        assert slot.storage.fetch(file) == content(KIB * (number + 1))


def test_an_ack_waits_until_its_file_is_durable(slot):
    """S6, C1: a file that is being written is not yet state to restore."""
    slot.hand.is_held = True
    barrier = slot.barrier(1)
    for subtask in slot.subtasks:
        slot.ack(subtask, barrier, whole(KIB))
    assert slot.reported() == []

    slot.hand.release()

    assert slot.reported() == slot.subtasks


def test_a_file_that_cannot_be_written_declines_the_checkpoint_of_all_in_it(slot):
    """S6, C18: and none of them acks it."""
    slot.storage.refuses = True
    barrier = slot.barrier(1)
    for subtask in slot.subtasks:
        slot.ack(subtask, barrier, whole(KIB))

    reason, cause = Reason.CHECKPOINT_ASYNC_EXCEPTION, "a file that it shares was not written"
    failed = UploadFailed(CheckpointId(1), reason, cause)
    assert slot.mail == [UploadEnded(subtask, RUN, failed) for subtask in slot.subtasks]
    assert slot.files() == []


def test_what_waits_in_a_file_counts_against_the_memory_of_the_slot(tmp_path):
    """S6, R7: until it is durable or given up."""
    slot = Slot(f"file://{tmp_path}", FileMergingPolicy(64 * KIB, 2.0, None), limit=0)
    first, second = slot.subtasks
    slot.writers[first].uploads.restored(CheckpointId(0), ())
    upload, _ = slot.upload(first, slot.barrier(1), whole(KIB))
    upload.held_bytes = KIB
    assert slot.memory.refusal(CheckpointId(2))

    slot.writers[first].delete(upload)

    assert not slot.memory.refusal(CheckpointId(2))
    slot.merged.left(RUN, second)
    assert slot.files() == []


def test_an_ack_that_a_newer_checkpoint_has_overtaken_is_held_no_more(slot):
    """S6, R7: two checkpoints at once, and one subtask is always late for the older one."""
    first, second = slot.subtasks
    for number in range(1, 2 * MOST_UPLOADS + 2, 2):
        slot.ack(first, slot.barrier(number), whole(KIB))
        newer = slot.barrier(number + 1)
        for subtask in slot.subtasks:
            assert slot.writers[subtask].uploads.refusal(newer.checkpoint) == ""
            slot.ack(subtask, newer, whole(KIB))
        assert slot.reported() == [first, second]
        for subtask in slot.subtasks:
            slot.merged.completed(RUN, subtask, newer.checkpoint)
            slot.writers[subtask].uploads.keep_only(())

    assert not slot.writers[first].uploads.is_busy


def test_an_ack_that_is_given_up_on_its_way_does_not_go(slot):
    """S6, C7: its files are deleted."""
    for subtask in slot.subtasks:
        slot.ack(subtask, slot.barrier(1), whole(KIB))
    for subtask in slot.subtasks:
        slot.merged.completed(RUN, subtask, CheckpointId(2))

    assert slot.reported() == []
    assert slot.files() == []


def test_a_subtask_that_leaves_takes_nothing_from_the_others(slot):
    """S6, C9: its ack does not go, and theirs do."""
    first, second = slot.subtasks
    barrier = slot.barrier(1)
    snapshot = slot.ack(first, barrier, whole(KIB))
    slot.upload(second, barrier, whole(KIB))

    slot.merged.left(RUN, second)

    assert slot.reported() == [first]
    (file,) = snapshot.files()
    assert slot.storage.fetch(file) == content(KIB)


def test_a_file_that_is_dead_when_its_slot_ends_is_deleted(tmp_path):
    """S6, C7: it is being written, and the slot takes no new work for its upload threads."""
    threads = ThreadPoolExecutor(1)
    slot = Slot(f"file://{tmp_path}", FileMergingPolicy(64 * KIB, 2.0, None), hand=threads)
    slot.storage.goes_on.clear()
    for subtask in slot.subtasks:
        slot.ack(subtask, slot.barrier(1), whole(KIB))
    assert slot.storage.began.wait(20)
    for subtask in slot.subtasks:
        slot.merged.left(RUN, subtask)

    threads.shutdown(wait=False)
    slot.storage.goes_on.set()
    threads.shutdown(wait=True)

    assert slot.files() == []


def test_a_late_upload_of_a_subtask_that_has_left_fails(slot):
    """S6, C9: its pieces would have no owner."""
    first, _ = slot.subtasks
    slot.merged.left(RUN, first)

    _, result = slot.upload(first, slot.barrier(1), whole(KIB))

    assert isinstance(result, UploadFailed)
    assert "does not run here" in result.cause


def test_one_slow_subtask_does_not_hold_back_the_acks_of_others(tmp_path):
    """S6: if the pool does not block."""
    slot = Slot(f"file://{tmp_path}", FileMergingPolicy(64 * KIB, 2.0, 50))
    first, _ = slot.subtasks
    slot.ack(first, slot.barrier(1), whole(KIB))
    slot.merged.pass_time()
    assert slot.reported() == []

    slot.now = slot.merged.next_deadline()
    slot.merged.pass_time()

    assert slot.reported() == [first]


def test_a_savepoint_keeps_its_merged_files_to_itself(tmp_path):
    """S6, S10: in its own directory, whatever the job shares elsewhere."""
    slot = Slot(f"file://{tmp_path}", FileMergingPolicy(64 * KIB, 2.0, None))
    where = f"{slot.place}/job/savepoint-1"
    barrier = replace(slot.barrier(1), kind=CheckpointKind.SAVEPOINT, location=where)
    for subtask in slot.subtasks:
        slot.ack(subtask, barrier, whole(KIB))

    (path,) = slot.files()
    assert path.startswith(f"{where}/merged-")


def test_operator_state_lies_in_the_file_of_its_checkpoint(slot):
    """S6: apart from what later checkpoints refer to."""
    first, second = slot.subtasks
    barrier = slot.barrier(1)
    listed = ListSnapshot("splits", Redistribution.SPLIT, [b"x" * KIB])
    slot.ack(first, barrier, Captured(lists=(listed,)))
    snapshot = slot.ack(second, barrier, replace(whole(KIB), lists=(listed,)))

    shared, own = sorted(slot.files(), reverse=True)
    assert "/shared/merged-" in shared
    assert "/chk-1/merged-" in own
    assert {file.path: file.shared for file in snapshot.files()} == {shared: True, own: False}


# Many checkpoints


@dataclass
class SkewedHistory:
    """Six subtasks whose states change at very different rates, through many checkpoints."""

    slot: Slot
    dice: Random
    completed: CheckpointId = NO_CHECKPOINT
    retained: list[dict[SubtaskId, SubtaskSnapshot]] = field(default_factory=list)
    amplifications: list[float] = field(default_factory=list)

    def checkpoint(self, number):
        barrier = self.slot.barrier(number, self.completed)
        slot, snapshots = self.slot, {}
        for rank, subtask in enumerate(slot.subtasks):
            changed = KIB * self.dice.randrange(1, 2 + rank * rank)
            piece = whole(20 * KIB, since=lambda _, size=changed: content(size))
            snapshots[subtask] = slot.ack(subtask, barrier, piece)
        if self.dice.random() < 0.2:
            self.abort(barrier)
            return
        assert sorted(slot.reported()) == sorted(slot.subtasks)
        for subtask, writer in slot.writers.items():
            writer.uploads.completed(barrier.checkpoint)
            writer.uploads.keep_only(())
            slot.merged.completed(RUN, subtask, barrier.checkpoint)
        self.completed = barrier.checkpoint
        self.retained = [*self.retained[-1:], snapshots]
        self.delete_unreferenced()
        self.measure()

    def abort(self, barrier):
        for writer in self.slot.writers.values():
            writer.uploads.layers.aborted(barrier.checkpoint)
            upload = writer.uploads.discard(barrier.checkpoint)
            writer.delete(upload)
        assert self.slot.reported() == []

    def live(self):
        return {
            file.segment: file
            for snapshots in self.retained
            for snapshot in snapshots.values()
            for file in snapshot.files()
        }

    def delete_unreferenced(self):
        """As the coordinator does it, by counting references."""
        wanted = {file.path for file in self.live().values()}
        FileStore().delete(url for url in self.slot.files() if url not in wanted)

    def measure(self):
        live = self.live()
        for file in live.values():
            self.slot.storage.fetch(file)
        assert {file.path for file in live.values()} == set(self.slot.files())
        physical = sum(FileStore().size(url) for url in self.slot.files())
        logical = sum(file.bytes for file in live.values())
        self.amplifications.append(amplification(physical, logical))


@pytest.fixture
def _no_fsync(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _: None)


@pytest.mark.usefixtures("_no_fsync")
@pytest.mark.parametrize(("bound", "holds"), [(2.0, True), (1.3, True), (1e9, False)])
def test_space_amplification_is_bounded_over_five_hundred_checkpoints(tmp_path, bound, holds):
    """S6, S4: every segment is readable, no file is left over, and without a bound it grows."""
    policy = FileMergingPolicy(256 * KIB, bound, None)
    slot = Slot(f"file://{tmp_path}", policy, subtasks=SUBTASKS)
    show(f"WEIR_SEED={SEED}")
    history = SkewedHistory(slot, dice("skewed states"))

    for number in range(1, 501):
        history.checkpoint(number)

    assert max(history.amplifications) <= bound
    assert (max(history.amplifications) <= 2.0) is holds
