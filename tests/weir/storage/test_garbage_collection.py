"""What is garbage in a job's directory, and what never is."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.core.checkpoint_paths import manifest_path
from weir.core.ids import CheckpointId, Epoch, Millis, OperatorId, SubtaskId
from weir.core.lifecycle import JobStatus
from weir.core.log_entries import CheckpointLogged, EpochTaken, JobClosed
from weir.core.snapshots import (
    CheckpointKind,
    KeyedHandle,
    KeyGroupRange,
    Manifest,
    SubtaskSnapshot,
    Width,
)
from weir.errors import JobRejected
from weir.storage import manifests, state_files
from weir.storage.garbage_collection import (
    ABANDONED_AFTER_MS,
    StorageScan,
    abandoned,
    collect,
    is_ours,
    scan,
    unreferenced,
    written_at,
)
from weir.storage.job_log_store import JobLog
from weir.storage.memory_store import MemoryStore
from weir.storage.stores import store_for

HOME = "memory://checkpoints/orders"
CHECKPOINT, SAVEPOINT = CheckpointKind.CHECKPOINT, CheckpointKind.SAVEPOINT


class Job:
    """A job's directory, filled as its drivers would."""

    def __init__(self, store=None, home=HOME):
        self.store = store or MemoryStore()
        self.home = home
        self.log = JobLog(self.store, home)
        self.index = 0
        self.epoch = 0

    def enter(self, entry):
        assert self.log.create(self.index, entry)
        self.index += 1

    def begin(self, *, restoring="", goes_on=True):
        """A driver takes the job over."""
        self.epoch += 1
        epoch, until = Epoch(self.epoch), CheckpointId(99)
        self.enter(EpochTaken(epoch, "d", "x", goes_on, restoring, claims=False, ids_until=until))
        return self

    def put(self, name):
        """A state file of this epoch."""
        url = f"{self.home}/{name}-e{self.epoch}-a1"
        return state_files.put(self.store, url, b"state")

    def manifest(self, number, *files, location="", kind=CHECKPOINT):
        """A manifest that is written and not in the log."""
        groups = KeyGroupRange(0, 7)
        keyed = tuple(KeyedHandle(groups, file) for file in files)
        place = location or f"{self.home}/chk-{number}"
        snapshot = SubtaskSnapshot(SubtaskId(OperatorId("sums"), 0), keyed=keyed)
        width = Width(OperatorId("sums"), 1, 8)
        manifest = Manifest(
            checkpoint=CheckpointId(number),
            epoch=Epoch(self.epoch),
            kind=kind,
            taken_at=Millis(0),
            location=place,
            fingerprint=((), ()),
            widths=(width,),
            snapshots=(snapshot,),
            finished=(),
            coordinators=(),
            ledgers=(),
        )
        manifests.write(self.store, manifest)
        return manifest_path(place)

    def complete(self, number, *files, location="", kind=CHECKPOINT):
        path = self.manifest(number, *files, location=location, kind=kind)
        epoch, until = Epoch(self.epoch), CheckpointId(99)
        self.enter(CheckpointLogged(epoch, "d", CheckpointId(number), kind, path, until))
        return path

    def left(self):
        """What would be deleted, below the job's directory."""
        return [url.removeprefix(f"{self.home}/") for url in unreferenced(self.scan())]

    def scan(self):
        return scan(self.store, self.home)


# The decision

FILES = st.tuples(
    st.sampled_from(["chk-1", "chk-2", "shared", "taskowned", "savepoint-1", "log", "odd"]),
    st.sampled_from(["_metadata", "0007", "a-e1-a1", "a-e2-a1", "b-e3-a4", "c-e2-a12", "x"]),
).map("/".join)


@given(
    st.frozensets(FILES),
    st.frozensets(FILES),
    st.dictionaries(FILES, st.integers(1, 4)),
    st.integers(1, 4),
)
def test_nothing_that_is_referred_to_young_or_unknown_is_ever_garbage(listed, kept, epochs, newest):
    """S4: for any files and any references."""
    found = StorageScan(
        HOME,
        Epoch(newest),
        tuple(f"{HOME}/{name}" for name in sorted(listed)),
        {f"{HOME}/{name}": Epoch(epoch) for name, epoch in epochs.items()},
        frozenset(f"{HOME}/{name}" for name in kept),
    )
    deleted = {url.removeprefix(f"{HOME}/") for url in unreferenced(found)}

    assert deleted <= listed - kept
    assert all(is_ours(f"{HOME}/{name}", HOME) for name in deleted)
    assert not any(f"-e{epoch}-" in name for name in deleted for epoch in range(newest, 5))
    assert not any(name not in epochs for name in deleted if name.endswith("/_metadata"))
    assert not any(epochs[name] >= newest for name in deleted if name.endswith("/_metadata"))


@given(st.frozensets(st.integers(1, 9)), st.integers(1, 9))
def test_every_unreferenced_file_of_an_older_epoch_goes(epochs, newest):
    """S4: no unreferenced one stays."""
    listed = tuple(f"{HOME}/shared/sums-0-keyed-0-e{epoch}-a1" for epoch in sorted(epochs))
    found = StorageScan(HOME, Epoch(newest), listed, {}, frozenset())

    assert len(unreferenced(found)) == len([epoch for epoch in epochs if epoch < newest])


def test_only_what_is_old_enough_goes_if_an_age_is_asked_for():
    """S4: a file whose age is not known is not old."""
    urls = tuple(f"{HOME}/chk-1/{name}-e1-a1" for name in ("new", "old", "unknown"))
    times = {urls[0]: Millis(2_000), urls[1]: Millis(1_000)}
    found = StorageScan(HOME, Epoch(2), urls, {}, frozenset(), times)

    assert unreferenced(found, before=Millis(1_500)) == (urls[1],)


# What is read


def test_what_a_dead_attempt_left_goes_when_another_driver_reigns():
    """S4, C7: not before, for the driver may still be writing it."""
    job = Job().begin()
    job.put("chk-4/sums-0-keyed-0")
    assert job.left() == []

    job.begin()
    assert job.left() == ["chk-4/sums-0-keyed-0-e1-a1"]


def test_a_manifest_without_an_entry_goes_before_its_files():
    """S4, C17: a zombie wrote it; half deleted, it must not look whole."""
    job = Job().begin()
    job.manifest(4, job.put("chk-4/sums-0-keyed-0"))
    job.begin()

    assert job.left() == ["chk-4/_metadata", "chk-4/sums-0-keyed-0-e1-a1"]


def test_what_the_log_offers_stays_with_all_it_shares():
    """S4: of whatever epoch."""
    job = Job().begin()
    shared, own = job.put("shared/sums-0"), job.put("chk-4/sums-0")
    job.complete(4, shared, own)
    job.begin()
    job.complete(5, shared)
    job.begin()

    assert job.left() == []


def test_a_directory_that_goes_by_another_name_is_no_excuse(tmp_path):
    """S4: the manifests name their files by the job's URL, and the caller gave a link to it."""
    (tmp_path / "link").symlink_to(tmp_path / "job")
    job = Job(store_for("file://"), f"file://{tmp_path}/job").begin()
    job.complete(4, job.put("shared/sums-0"), job.put("chk-4/sums-0"))
    job.put("chk-5/sums-0")
    job.begin()
    found = scan(job.store, f"file://{tmp_path}/link")

    assert unreferenced(found) == (f"file://{tmp_path}/link/chk-5/sums-0-e1-a1",)


def test_what_subsumed_checkpoints_shared_goes_once_they_are_gone():
    """S4: their manifests were deleted, and a driver died before their files were."""
    job = Job().begin()
    old, shared = job.put("shared/old"), job.put("shared/both")
    gone = job.complete(4, old, shared)
    job.complete(5, shared)
    job.store.delete([gone])
    job.begin()

    assert job.left() == ["shared/old-e1-a1"]


def test_checkpoints_that_the_job_does_not_continue_from_are_garbage():
    """S4: the job began anew from a savepoint elsewhere."""
    job = Job().begin()
    job.complete(4, job.put("chk-4/sums-0"))
    elsewhere = job.manifest(3, location="memory://backups/s1", kind=SAVEPOINT)
    job.begin(restoring=elsewhere, goes_on=False)

    assert job.left() == ["chk-4/_metadata", "chk-4/sums-0-e1-a1"]


def test_savepoints_are_never_touched():
    """C12, S4: neither below the job's directory nor what one elsewhere refers to."""
    job = Job().begin()
    inside = job.put("savepoint-7/sums-0")
    job.manifest(7, inside, location=f"{HOME}/savepoint-7", kind=SAVEPOINT)
    job.complete(8, job.put("shared/lent"), location="memory://backups/s1", kind=SAVEPOINT)
    job.store.write(f"{HOME}/savepoint-9/_metadata", b"damaged")
    job.store.write(f"{HOME}/notes/mine-e1-a1", b"")
    job.begin()

    assert job.left() == []


def test_a_closed_job_that_retains_nothing_leaves_only_garbage_of_older_epochs():
    """C12, S4: until a new driver starts, the last epoch's files are not older."""
    job = Job().begin()
    job.complete(4, job.put("chk-4/sums-0"))
    status, until = JobStatus.FINISHED, CheckpointId(99)
    job.enter(JobClosed(Epoch(1), "d", status, retains=False, ids_until=until))
    assert job.left() == []

    job.begin()
    assert len(job.left()) == 2


def test_a_damaged_manifest_that_the_log_offers_refuses_the_whole_collection():
    """S4, U3: its references are not known."""
    job = Job().begin()
    path = job.complete(4, job.put("shared/sums-0"))
    job.complete(5)
    job.begin()
    job.store.write(path, job.store.read(path)[:-9])

    with pytest.raises(JobRejected, match=r"chk-4/_metadata .*cannot be read.* Remedy: "):
        job.scan()


def test_the_newest_that_the_log_offers_must_be_there():
    """S4: one that is lost may be brought back, and its files with it."""
    job = Job().begin()
    job.store.delete([job.complete(4, job.put("chk-4/sums-0"))])
    job.begin()

    with pytest.raises(JobRejected, match="not found"):
        job.scan()


def test_a_log_that_is_missing_or_not_conclusive_refuses():
    """S4, C17: an empty listing is not an empty log."""
    job = Job()
    with pytest.raises(JobRejected, match="has no log"):
        job.scan()

    job.store.write(f"{HOME}/log/floor", json.dumps({"floor": 7}).encode())
    with pytest.raises(JobRejected, match="could not be read to its end"):
        job.scan()


def test_a_checkpoint_that_is_subsumed_while_we_look_does_no_harm():
    """S4: the log is read again if it has moved on."""
    job = Job().begin()
    first = job.complete(4, job.put("chk-4/sums-0"))
    read = job.store.read

    def meanwhile(url):
        """The driver completes the next one and deletes the one before."""
        if url == first:
            job.store.read = read
            job.complete(5)
            job.store.delete([first])
        return read(url)

    job.store.read = meanwhile
    found = job.scan()

    assert found.referenced == {f"{HOME}/chk-5/_metadata"}


# The deletion


def test_what_was_found_is_deleted_and_nothing_else():
    """S4: what the log offers can still be read."""
    job = Job().begin()
    kept = job.put("chk-3/sums-0")
    job.complete(3, kept)
    job.put("chk-4/sums-0")
    job.begin()
    found = job.scan()
    collect(job.store, found, unreferenced(found))

    assert job.left() == []
    assert job.store.exists(kept.path)
    assert not job.store.exists(f"{HOME}/chk-4/sums-0-e1-a1")


def test_nothing_is_deleted_once_another_driver_reigns():
    """S4, C17: it may have restored from anything."""
    job = Job().begin()
    job.put("chk-4/sums-0")
    job.begin()
    found = job.scan()
    job.begin()

    with pytest.raises(JobRejected, match="took the job over"):
        collect(job.store, found, unreferenced(found))
    assert job.left()


def test_a_file_knows_when_it_was_written(tmp_path):
    """S4: in a directory as in a bucket."""
    job = Job(store_for("file://"), f"file://{tmp_path}").begin()
    url = job.put("chk-4/sums-0").path
    job.begin()
    written = (tmp_path / "chk-4/sums-0-e1-a1").stat().st_mtime_ns // 1_000_000
    found = replace(job.scan(), changed_at=written_at([url]))

    assert abs(found.changed_at[url] - written) <= 1
    assert unreferenced(found, Millis(written - 1_000)) == ()
    assert unreferenced(found, Millis(written + 1_000)) == (url,)


def test_a_bucket_is_collected_like_a_directory(in_s3, s3_server):
    """S4, S7: by the command itself, which has the keys from its environment."""
    job = Job(in_s3.store, in_s3.directory).begin()
    left = job.put("chk-4/sums-0").path
    job.begin()
    kept = job.put("chk-9/sums-0").path

    def gc(*more):
        command = [sys.executable, "-m", "weir.cli", "gc", in_s3.directory, "--yes", *more]
        environment = {**os.environ, **s3_server.environment(), "PYTHONPATH": ":".join(sys.path)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.stderr

    assert "Nothing is left over." in gc("--older-than", "1h")
    assert "1 files, 5 B" in gc()
    assert [in_s3.store.exists(url) for url in (left, kept)] == [False, True]


def test_a_temporary_file_is_abandoned_when_nothing_was_written_to_it_for_long():
    """S4: a write that still goes on changes its file, and so keeps it."""
    now = Millis(10 * ABANDONED_AFTER_MS)
    ages = {"old": ABANDONED_AFTER_MS + 1, "young": ABANDONED_AFTER_MS}
    times = {f"{HOME}/chk-1/{name}": Millis(now - age) for name, age in ages.items()}
    found = StorageScan(HOME, Epoch(1), (), {}, frozenset(), unfinished=times)

    assert abandoned(found, now) == (f"{HOME}/chk-1/old",)
    assert unreferenced(found) == ()


def test_temporary_files_are_found_wherever_they_lie_in_a_jobs_directory(tmp_path):
    """S4: beside log entries and in savepoints too, and none of another job."""
    job = Job(store_for("file://"), f"file://{tmp_path}/orders").begin()
    names = [f"{place}/.weir-unfinished-{'0' * 32}" for place in ("log", "chk-3", "savepoint-4")]
    for name in (*(f"orders/{name}" for name in names), f"other/{names[0]}"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"half")

    found = scan(job.store, job.home)

    assert sorted(found.unfinished) == sorted(f"{job.home}/{name}" for name in names)
