"""Incremental checkpoints in RocksDB's own files: restore after capture changes nothing."""

from datetime import date

import pyarrow as pa
import pytest

from captured_state import MAX_PARALLELISM
from native_checkpoints import (
    NativeSubtask,
    a_native_place,
    assigned,
    immutable,
    storage_in,
)
from random_seed import SEED, dice, show
from weir.core.ids import CheckpointId, Millis
from weir.core.key_groups import range_of
from weir.core.shared_state_registry import SharedStateRegistry
from weir.core.snapshots import CheckpointKind
from weir.dataflow.types import schema_of
from weir.errors import JobRejected
from weir.ports.keyed_state import TimeMode
from weir.ports.operators import RestoredState
from weir.state.row_types import RowType
from weir.wire.keys import key_groups

WORD = (pa.field("word", pa.string()),)
WORDS = [f"w{number}" for number in range(60)]


def rows_of(ddl):
    return RowType("state 's'", schema_of(ddl))


def group_of(word):
    batch = pa.RecordBatch.from_arrays([pa.array([word])], ["word"])
    return int(key_groups(batch, ["word"], MAX_PARALLELISM)[0])


class Job:
    """The subtasks of one operator with a state of each kind, at some parallelism."""

    def __init__(self, backends, directory, parallelism=1, **how):
        attempt, ttl_ms, more = (how.get(name) for name in ("attempt", "ttl_ms", "more"))
        self.parallelism = parallelism
        storage = storage_in(directory)
        self.subtasks = []
        for index in range(parallelism):
            place = a_native_place(index, parallelism)
            backend = backends(place, WORD)
            if more:
                backend.value_state("new", rows_of("n long")).name  # noqa: B018 - declared first
            self.subtasks.append(NativeSubtask(backend, place, storage, directory, attempt or 1))
            backend.states = (
                backend.value_state("total", rows_of("n long, t string"), ttl_ms),
                backend.list_state("seen", rows_of("n long"), ttl_ms),
                backend.map_state("by_day", rows_of("d date"), rows_of("n double"), ttl_ms),
                backend.timers(TimeMode.EVENT_TIME),
            )

    def of(self, word):
        for index, subtask in enumerate(self.subtasks):
            own = range_of(index, self.parallelism, MAX_PARALLELISM)
            if own.first <= group_of(word) <= own.last:
                subtask.backend.seek((word,))
                return subtask.backend.states
        raise AssertionError(word)

    def fill(self, words, number):
        for word in words:
            value, seen, by_day, timers = self.of(word)
            value.update((number, f"text {number}"))
            seen.append((number,))
            by_day.update((date(2026, 1, 1 + number % 20),), (number / 2,))
            timers.register(number)

    def content(self):
        found = {}
        for word in WORDS:
            value, seen, by_day, timers = self.of(word)
            of_key = list(timers.of_key())
            found[word] = (value.get(), list(seen.get()), dict(by_day.items()), of_key)
        return found

    def fired(self):
        """All timers, in the order in which they come due."""
        found = []
        for subtask in self.subtasks:
            timers = subtask.backend.states[3]
            while (earliest := timers.earliest()) is not None:
                key, _ = timers.seek_earliest()
                timers.delete(earliest)
                found.append((*key, earliest))
        return sorted(found)

    def checkpoint(self, number, base=0, **how):
        return [s.checkpoint(number, CheckpointId(base), **how) for s in self.subtasks]

    def completed(self, number):
        for subtask in self.subtasks:
            subtask.completed(number)

    def restore(self, snapshots, old, number):
        shares = assigned(snapshots, old, self.parallelism)
        unknown = set()
        for subtask in self.subtasks:
            unknown.update(subtask.restore(shares[subtask.place.subtask], number))
        return unknown

    def close(self):
        for subtask in self.subtasks:
            subtask.backend.close()


@pytest.mark.parametrize("new", range(1, 9))
@pytest.mark.parametrize("old", [1, 2, 3, 8])
def test_restore_after_capture_is_the_identity_at_every_parallelism(
    rocksdb_backends, tmp_path, old, new
):
    """S2 S4 S11 S14: over two generations of increments; lists, maps and timers included."""
    job = Job(rocksdb_backends, tmp_path, old)
    job.fill(WORDS, 1)
    job.checkpoint(1)
    job.completed(1)
    job.fill(WORDS[::3], 7)
    snapshots = job.checkpoint(2, 1)
    content = job.content()
    assert not any(snapshot.keyed for snapshot in snapshots)

    other = Job(rocksdb_backends, tmp_path, new, attempt=2)
    assert other.restore(snapshots, old, 2) == set()
    assert other.content() == content
    other.fill(WORDS[::2], 9)
    job.fill(WORDS[::2], 9)
    content = job.content()
    again = other.checkpoint(3, 2)
    other.close()

    last = Job(rocksdb_backends, tmp_path, old, attempt=3)
    last.restore(again, new, 3)
    assert last.content() == content
    assert last.fired() == job.fired()
    job.close()
    last.close()


def test_an_increment_uploads_in_proportion_to_the_change(rocksdb_backends, tmp_path):
    """S2 S4: the files of before are referred to, and not uploaded again."""
    job = Job(rocksdb_backends, tmp_path)
    (subtask,) = job.subtasks
    words = [f"{number:020}" for number in range(20_000)]
    states = subtask.backend.states
    for at, word in enumerate(words):
        subtask.backend.seek((word,))
        states[0].update((at, word[::-1] * 4))
    (first,) = job.checkpoint(1)
    whole = subtask.written_bytes
    job.completed(1)
    job.fill(words[:20], 1)
    (second,) = job.checkpoint(2, 1)

    assert subtask.written_bytes < whole / 20
    assert immutable(first).items() <= immutable(second).items()
    job.close()


def test_nothing_is_built_on_an_aborted_checkpoint(rocksdb_backends, tmp_path):
    """S4: its files are deleted, so the next one uploads what they had once more."""
    job = Job(rocksdb_backends, tmp_path)
    (subtask,) = job.subtasks
    job.fill(WORDS, 1)
    job.checkpoint(1)
    job.completed(1)
    job.fill(WORDS, 2)
    (aborted,) = job.checkpoint(2, 1)
    subtask.aborted(2)
    (third,) = job.checkpoint(3, 1)

    lost = {f.path for f in immutable(aborted).values()} - {
        f.path for f in immutable(third).values()
    }
    assert lost
    other = Job(rocksdb_backends, tmp_path, attempt=2)
    other.restore([third], 1, 3)
    assert other.content() == job.content()
    job.close()
    other.close()


def test_a_restored_instance_does_not_mistake_new_files_for_old_ones(rocksdb_backends, tmp_path):
    """S4: names of files come again in another instance, and mean something else."""
    job = Job(rocksdb_backends, tmp_path)
    job.fill(WORDS, 1)
    (first,) = job.checkpoint(1)
    job.completed(1)
    lost = {}
    for number in range(2, 8):
        job.fill(WORDS, number)
        (snapshot,) = job.checkpoint(number, 1)
        lost.update(immutable(snapshot))
    job.close()

    other = Job(rocksdb_backends, tmp_path, attempt=2)
    other.restore([first], 1, 1)
    other.fill(WORDS, 3)
    (second,) = other.checkpoint(8, 1)
    content = other.content()
    other.close()

    same = lost.keys() & immutable(second).keys() - immutable(first).keys()
    assert same, "the same names were given out again"
    assert all(lost[name].path != immutable(second)[name].path for name in same)
    assert immutable(first).items() <= immutable(second).items()
    last = Job(rocksdb_backends, tmp_path, attempt=3)
    last.restore([second], 1, 8)
    assert last.content() == content
    last.close()


def test_a_full_checkpoint_uploads_all_files_anew(rocksdb_backends, tmp_path):
    """S4: it refers to no file of another checkpoint."""
    job = Job(rocksdb_backends, tmp_path)
    job.fill(WORDS, 1)
    (first,) = job.checkpoint(1)
    job.completed(1)
    (full,) = job.checkpoint(2, kind=CheckpointKind.FULL_CHECKPOINT)

    assert full.native
    assert not {f.path for f in first.files()} & {f.path for f in full.files()}
    job.close()


def test_a_savepoint_is_in_the_open_form_and_restores_in_the_other_backend(
    rocksdb_backends, tmp_path
):
    """S10: between two incremental checkpoints, and without one of their files."""
    from weir.state.memory.memory_backend import MemoryBackend  # noqa: PLC0415 - after a plant

    job = Job(rocksdb_backends, tmp_path)
    job.fill(WORDS, 1)
    job.checkpoint(1)
    job.completed(1)
    job.fill(WORDS[:9], 2)
    (savepoint,) = job.checkpoint(2, kind=CheckpointKind.SAVEPOINT)

    assert savepoint.keyed
    assert not savepoint.native
    assert not any(file.shared for file in savepoint.files())
    other = Job(MemoryBackend, tmp_path)
    other.restore([savepoint], 1, 2)
    assert other.content() == job.content()
    job.close()


def test_what_changes_after_the_barrier_is_not_in_the_snapshot(rocksdb_backends, tmp_path):
    """C1 S2 S3: whether the mailbox writes before the upload begins, or does not."""
    job = Job(rocksdb_backends, tmp_path)
    (subtask,) = job.subtasks
    job.fill(WORDS, 1)
    before = job.content()

    def go_on():
        job.fill(WORDS, 5)
        subtask.backend._buffer.flush()  # noqa: SLF001 - as when the memory for changes is full
        job.fill(WORDS[:5], 6)

    snapshots = job.checkpoint(1, meanwhile=go_on)
    after = job.content()

    other = Job(rocksdb_backends, tmp_path, attempt=2)
    other.restore(snapshots, 1, 1)
    assert other.content() == before
    assert after != before
    job.close()
    other.close()


def test_a_state_that_is_declared_first_does_not_take_the_place_of_another(
    rocksdb_backends, tmp_path
):
    """S12: states are found by their names, whatever their order."""
    job = Job(rocksdb_backends, tmp_path)
    job.fill(WORDS, 1)
    snapshots = job.checkpoint(1)
    other = Job(rocksdb_backends, tmp_path, attempt=2, more=True)

    assert other.restore(snapshots, 1, 1) == set()
    assert other.content() == job.content()
    job.close()
    other.close()


def test_a_changed_declaration_reads_what_was_stored(rocksdb_backends, tmp_path):
    """S12: fields are added and widened as in a file, in an opened and in a copied instance."""
    job = Job(rocksdb_backends, tmp_path, 2)
    job.fill(WORDS, 4)
    snapshots = job.checkpoint(1)
    place, storage = a_native_place(), storage_in(tmp_path)
    backend = rocksdb_backends(place, WORD)
    total = backend.value_state("total", rows_of("t string, n decimal(20,0), more long"))
    seen = backend.list_state("seen", rows_of("n long"))
    subtask = NativeSubtask(backend, place, storage, tmp_path, 2)

    unknown = subtask.restore(assigned(snapshots, 2, 1)[place.subtask], 1)

    assert set(unknown) == {"by_day", "$timers"}
    for word in WORDS:
        backend.seek((word,))
        text, number, more = total.get()
        assert (text, int(number), more) == ("text 4", 4, None)
        assert list(seen.get()) == [(4,)]
    job.close()
    backend.close()


def test_a_declaration_that_does_not_fit_is_refused(rocksdb_backends, tmp_path):
    """S12: with what was stored and what is declared."""
    job = Job(rocksdb_backends, tmp_path)
    job.fill(WORDS, 4)
    snapshots = job.checkpoint(1)
    place = a_native_place()
    backend = rocksdb_backends(place, WORD)
    backend.value_state("total", rows_of("n int, t string"))
    subtask = NativeSubtask(backend, place, storage_in(tmp_path), tmp_path, 2)

    with pytest.raises(JobRejected, match="cannot be read as it is declared now"):
        subtask.restore(assigned(snapshots, 1, 1)[place.subtask], 1)
    job.close()
    backend.close()


def test_times_to_live_go_on(rocksdb_backends, tmp_path):
    """S14: what was put in before the checkpoint expires at its time after the restore."""
    job = Job(rocksdb_backends, tmp_path, ttl_ms=100)
    job.fill(WORDS, 1)
    snapshots = job.checkpoint(1)
    other = Job(rocksdb_backends, tmp_path, 3, attempt=2, ttl_ms=100)
    other.restore(snapshots, 1, 1)

    assert other.content() == job.content()
    for subtask in other.subtasks:
        subtask.backend.cursor.now = Millis(100)
    assert {found[:3] for found in map(tuple_of, other.content().values())} == {(None, (), ())}
    job.close()
    other.close()


@pytest.mark.timeout(300)
def test_many_checkpoints_lose_no_file_and_leave_none(rocksdb_backends, tmp_path):
    """S4: three hundred, some aborted, with restores at other parallelisms in between."""
    show(f"seed {SEED}")
    rng, registry, kept = dice("native checkpoints"), SharedStateRegistry(), []
    job, number, base, content = Job(rocksdb_backends, tmp_path), 0, 0, None
    old = job.parallelism
    for _ in range(300):
        number += 1
        fate = rng.random()
        if fate < 0.1 and kept:
            job.close()
            job = Job(rocksdb_backends, tmp_path, rng.randint(1, 3), attempt=number)
            job.restore(kept, old, base)
            assert job.content() == content
            continue
        job.fill(rng.sample(WORDS, 3), number)
        then = job.content()
        snapshots = job.checkpoint(number, base)
        if fate < 0.3:
            for subtask in job.subtasks:
                subtask.aborted(number)
            continue
        registry = registry.take(shared_paths(snapshots))
        job.completed(number)
        registry, freed = registry.release(shared_paths(kept))
        job.subtasks[0].storage.delete(
            [*freed, *(f.path for s in kept for f in s.files() if not f.shared)]
        )
        kept, base, content, old = snapshots, number, then, job.parallelism
        there = {f"file://{path}" for path in (tmp_path / "chk").rglob("*") if path.is_file()}
        assert there == {file.path for snapshot in kept for file in snapshot.files()}
    job.close()


def shared_paths(snapshots):
    return [file.path for snapshot in snapshots for file in snapshot.files() if file.shared]


def tuple_of(content):
    value, seen, by_day, _ = content
    return value, tuple(seen), tuple(by_day)


def test_layers_are_laid_over_what_is_native(rocksdb_backends, tmp_path):
    """S4: a key of a layer has the rows of the layer, or none if it was removed."""
    from weir.state.memory.memory_backend import MemoryBackend  # noqa: PLC0415 - after a plant

    job = Job(rocksdb_backends, tmp_path)
    job.fill(WORDS, 1)
    (native,) = job.checkpoint(1)
    changed = Job(MemoryBackend, tmp_path)
    (subtask,) = changed.subtasks
    subtask.backend.restore(RestoredState(checkpoint=CheckpointId(1)))
    changed.fill(WORDS[:10], 2)
    captured = subtask.backend.capture(CheckpointId(2))
    layers = [(p.groups, p.write()) for p in captured.keyed]
    captured.release()

    other = Job(rocksdb_backends, tmp_path, attempt=2)
    (restored,) = other.subtasks
    share = assigned([native], 1, 1)[restored.place.subtask]
    instances = [restored.storage.fetch_native(one) for one in share.native]
    restored.backend.restore(RestoredState(keyed=layers, native=instances))

    expected = job.content() | {word: changed.content()[word] for word in WORDS[:10]}
    assert other.content() == expected
    assert other.fired() == sorted((w, t) for w, (*_, times) in expected.items() for t in times)
    job.close()
    other.close()
