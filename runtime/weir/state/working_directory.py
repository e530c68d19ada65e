"""A slot's directory for its RocksDB instances, and the removal of what dead processes left.

State on this disk is a working copy: after a failure it is restored from a checkpoint, never from
here. So a process removes its directory when it ends, and the next one removes the directories of
processes that could not. A lock on a file beside each directory tells the two apart, for the
operating system drops it with the process, however that ended.
"""

import fcntl
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from threading import Lock
from uuid import uuid4

from weir.errors import JobRejected

NAME = "weir-rocksdb"
SPARK_LOCAL_DIRS = "SPARK_LOCAL_DIRS"
"""Set by Spark for the Python workers of an executor: its directories for spilled data."""
_LOCK = ".lock"


class WorkingDirectory:
    """The directory of this process, as long as there are instances; each has its own inside it."""

    def __init__(self, parent: str) -> None:
        """In this directory, or in one that Spark or the system has for such data."""
        self._parent = Path(parent or usual_parent()) / NAME
        self._lock = Lock()
        self._instances = 0
        self._path = Path()
        self._held = -1

    def new_instance(self) -> Path:
        with self._lock:
            if not self._instances:
                self._path, self._held = self._made()
            self._instances += 1
            return self._path / uuid4().hex

    def remove(self, instance: Path) -> None:
        """Any thread may call it, once for each instance."""
        rmtree(instance, ignore_errors=True)
        with self._lock:
            self._instances -= 1
            if not self._instances:
                rmtree(self._path, ignore_errors=True)
                with suppress(OSError):
                    self._path.with_suffix(_LOCK).unlink()
                os.close(self._held)

    def _made(self) -> tuple[Path, int]:
        try:
            self._parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(self._parent)
            return _locked_directory(self._parent)
        except OSError as problem:
            raise JobRejected(
                f"RocksDB cannot keep state in {self._parent}",
                str(problem),
                "set state.rocksdbLocalDir to a directory on local disk that the executors can "
                "write to",
            ) from problem


def remove_leftovers(parent: Path) -> None:
    """Remove the directories whose process has ended."""
    for lock in parent.glob(f"*{_LOCK}"):
        with suppress(OSError):
            held = os.open(lock, os.O_RDWR)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                rmtree(lock.with_suffix(""), ignore_errors=True)
                lock.unlink()
            finally:
                os.close(held)


def _locked_directory(parent: Path) -> tuple[Path, int]:
    """The lock comes before the directory, so no directory is ever without one."""
    while True:
        directory = parent / f"{os.getpid()}-{uuid4().hex}"
        lock = directory.with_suffix(_LOCK)
        held = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        fcntl.flock(held, fcntl.LOCK_EX)
        if lock.exists():
            directory.mkdir()
            return directory, held
        os.close(held)  # another process took it for a leftover before it was locked


def usual_parent() -> str:
    """The disk that Spark has for such data, or the system's directory for temporary files."""
    return os.environ.get(SPARK_LOCAL_DIRS, "").split(",")[0] or tempfile.gettempdir()
