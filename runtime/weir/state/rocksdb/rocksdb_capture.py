"""The database as it was at a barrier, made available when it is first asked for.

The mailbox takes a capture in microseconds: it hands over what RocksDB does not have yet and goes
on with an empty buffer. The upload thread settles the capture: it writes what was handed over, then
keeps that state of the database, as a snapshot or as hard links to its files. Until then nothing
newer may be written, so a mailbox that must write settles the capture first, or waits while the
upload thread does (spec S2).

A write that fails stays to be done, and declines the checkpoint or, on the mailbox, fails the
subtask. Links that cannot be made decline the checkpoint only.
"""

from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from threading import Lock

from weir.errors import WeirError
from weir.state.rocksdb.database import Database, HeldSnapshot


class RocksDBCapture:
    """Belongs to the upload, but for ``settle``, which the mailbox calls as well."""

    def __init__(self, database: Database, write: Callable[[], None], *, keeps_files: bool) -> None:
        database.hold()
        self._database = database
        self._write: Callable[[], None] | None = write
        self.keeps_files = keeps_files
        self._lock = Lock()
        self._is_released = False
        self._snapshot: HeldSnapshot | None = None
        self._files: Path | None = None
        self._failure: WeirError | None = None

    @property
    def is_settled(self) -> bool:
        """Whether newer changes may be written."""
        return self._write is None

    def settle(self) -> None:
        """Write what was unwritten at the barrier and keep the database of that moment."""
        with self._lock:
            if self._write is None:
                return
            self._write()
            if not self._is_released:
                self._keep()
            self._write = None

    def snapshot(self) -> HeldSnapshot:
        """All entries of the barrier's moment."""
        self.settle()
        if self._snapshot is None:
            raise self._unkept()
        return self._snapshot

    def files(self) -> Path:
        """A directory with the database of the barrier's moment."""
        self.settle()
        if self._files is None:
            raise self._unkept()
        return self._files

    def release(self) -> None:
        with self._lock:
            self._is_released = True
            if self._snapshot is not None:
                self._snapshot.release()
            if self._files is not None:
                rmtree(self._files, ignore_errors=True)
        self._database.let_go()

    def _keep(self) -> None:
        """Files first: after the flush the snapshot holds no memory."""
        try:
            if self.keeps_files:
                self._files = self._database.checkpoint()
            self._snapshot = self._database.snapshot()
        except WeirError as problem:
            self._failure = problem

    def _unkept(self) -> WeirError:
        assert self._failure is not None, "a released capture has nothing to read"
        return self._failure
