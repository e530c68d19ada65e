"""One instance of RocksDB, with the operations that a backend needs, each for many keys at once.

There is no write-ahead log: after a failure the state comes from a checkpoint. The instance and its
files stay until it is closed and the last snapshot of it is released, so an upload may continue
when its subtask has ended already.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from shutil import move, rmtree
from threading import Lock
from typing import Any, TypeVar

from rocksdict import (
    AccessType,
    Checkpoint,
    DbClosedError,
    Rdict,
    RdictIter,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from weir.errors import Unavailable, WeirError
from weir.state.rocksdb.rocksdb_memory import RocksDBMemory
from weir.state.working_directory import WorkingDirectory

T = TypeVar("T")

RETRY_AFTER = 10.0
_HIGHEST = 0xFF

Entry = tuple[bytes, bytes]


class Database:
    """Entries in the order of their bytes."""

    def __init__(self, directory: WorkingDirectory, memory: RocksDBMemory) -> None:
        self.path = directory.new_instance()
        self._directory = directory
        self._writing = WriteOptions()
        self._writing.disable_wal = True  # type: ignore[method-assign,assignment]  # a property
        self._lock = Lock()
        self._holders = 1
        self._memory = memory
        self._checkpoints = count()
        self.instance = self.path.name
        """This and the name of a file identify what is in it."""
        self._db = _explained(lambda: Rdict(str(self.path), memory.options()))

    def replace(self, source: Path) -> None:
        """Go on with the instance in that directory, whose files it takes over; keeps its name."""
        self._db.close()
        rmtree(self.path)
        self.instance = source.name

        def opened() -> Rdict:
            move(source, self.path)
            return Rdict(str(self.path), self._memory.options())

        self._db = _explained(opened)

    def get(self, entry: bytes) -> bytes | None:
        value: bytes | None = _explained(lambda: self._db.get(entry))
        return value

    def multi_get(self, entries: Sequence[bytes]) -> list[bytes | None]:
        """The values in the order of the entries; read in order, each block is needed once."""
        if not entries:
            return []
        order = sorted(range(len(entries)), key=entries.__getitem__)
        wanted: Any = [entries[at] for at in order]
        found: Any = _explained(lambda: self._db.get(wanted))
        values: list[bytes | None] = [None] * len(entries)
        for at, value in zip(order, found, strict=True):
            values[at] = value
        return values

    def write(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """In one batch; None deletes."""
        batch = WriteBatch(raw_mode=True)
        for entry, value in changes:
            if value is None:
                batch.delete(entry)
            else:
                batch.put(entry, value)
        _explained(lambda: self._db.write(batch, self._writing))

    def write_pairs(self, entries: list[bytes], values: list[bytes]) -> None:
        batch = WriteBatch(raw_mode=True)
        put = batch.put
        for entry, value in zip(entries, values, strict=True):
            put(entry, value)
        _explained(lambda: self._db.write(batch, self._writing))

    def scan(self, first: bytes, stop: bytes) -> Iterator[Entry]:
        """From the first up to, not including, the last."""
        limits = ReadOptions()  # has the bytes of the bound, so it must outlive the iterator
        limits.set_iterate_upper_bound(stop)
        yield from _between(self._db.iter(limits), first, stop)

    def delete_range(self, first: bytes, stop: bytes) -> None:
        _explained(lambda: self._db.delete_range(first, stop, self._writing))

    def snapshot(self) -> "HeldSnapshot":
        self.hold()
        return HeldSnapshot(self._db, self.let_go)

    def checkpoint(self) -> Path:
        """A directory with hard links to the files of this moment; the caller removes it.

        The flush lets other threads run, and the links do not, so the flush comes first.
        """
        path = self.path.with_name(f"{self.path.name}-{next(self._checkpoints)}")

        def linked() -> None:
            self._db.flush()
            Checkpoint(self._db).create_checkpoint(str(path))

        try:
            _explained(linked)
        except WeirError:
            rmtree(path, ignore_errors=True)
            raise
        return path

    def close(self) -> None:
        self.let_go()

    def hold(self) -> None:
        """Keep the instance and its files until it is let go once more."""
        with self._lock:
            self._holders += 1

    def let_go(self) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders:
                return
        try:
            with suppress(DbClosedError):  # an instance to go on with could not be opened
                self._db.close()
        finally:  # on a full disk it cannot be closed, and its room is needed
            self._directory.remove(self.path)


class ReadOnlyDatabase:
    """An instance in a directory, of which nothing is changed."""

    def __init__(self, directory: Path, memory: RocksDBMemory) -> None:
        read_only = AccessType.read_only(error_if_log_file_exist=False)
        self._db = _explained(
            lambda: Rdict(str(directory), memory.options(), access_type=read_only)
        )

    def scan(self, first: bytes, stop: bytes) -> Iterator[Entry]:
        """From the first up to, not including, the last."""
        limits = ReadOptions()  # has the bytes of the bound, so it must outlive the iterator
        limits.set_iterate_upper_bound(stop)
        limits.fill_cache(False)  # type: ignore[call-arg]  # noqa: FBT003 - its stub lacks it
        yield from _between(self._db.iter(limits), first, stop)

    def close(self) -> None:
        self._db.close()


class HeldSnapshot:
    """The entries of one moment. Any one thread reads it at a time; it is released once.

    It is an iterator that stands still until it is read: an iterator of RocksDB shows the moment
    at which it was made, however long it lives.
    """

    def __init__(self, database: Rdict, let_go: Callable[[], None]) -> None:
        self._settings = ReadOptions()  # must outlive the iterator
        self._settings.fill_cache(False)  # type: ignore[call-arg]  # noqa: FBT003 - its stub lacks it
        self._iterator: RdictIter | None = database.iter(self._settings)
        self._let_go = let_go

    def get(self, entry: bytes) -> bytes | None:
        iterator = self._iterator
        assert iterator is not None, "a released snapshot would be taken for an empty one"
        iterator.seek(entry)
        is_there = iterator.valid() and iterator.key() == entry
        _explained(iterator.status)
        value: bytes | None = iterator.value() if is_there else None
        return value

    def scan(self, first: bytes, stop: bytes) -> Iterator[Entry]:
        """From the first up to, not including, the last."""
        assert self._iterator is not None, "a released snapshot would be taken for an empty one"
        yield from _between(self._iterator, first, stop)

    def release(self) -> None:
        if self._iterator is not None:
            self._iterator = None
            self._let_go()


def _between(iterator: RdictIter, first: bytes, stop: bytes) -> Iterator[Entry]:
    """An iterator that cannot read on becomes invalid as at the end; only its status tells."""
    iterator.seek(first)
    while iterator.valid():
        entry = iterator.key()
        if entry >= stop:
            return
        yield entry, iterator.value()
        iterator.next()
    _explained(iterator.status)


def after(prefix: bytes) -> bytes:
    """The first bytes that are behind everything with this prefix."""
    kept = prefix.rstrip(bytes([_HIGHEST]))
    assert kept, "no prefix is of the highest bytes only"
    return kept[:-1] + bytes([kept[-1] + 1])


def _explained(call: Callable[[], T]) -> T:
    try:
        return call()
    except WeirError:
        raise
    except Exception as problem:
        raise explained(problem) from problem


def explained(problem: Exception) -> Unavailable:
    """What RocksDB reports, with what can be done about it."""
    text = str(problem)
    if "No space left" in text:
        remedy = "make room on the disk of state.rocksdbLocalDir, or set it to a larger disk"
        return Unavailable("RocksDB cannot write state", text, remedy, retry_after=RETRY_AFTER)
    remedy = "check the disk of state.rocksdbLocalDir; the state is restored from a checkpoint"
    return Unavailable("RocksDB failed", text, remedy, retry_after=RETRY_AFTER)
