"""Keeps objects as files of a mounted file system that every driver and slot sees alike.

An object appears by one rename or one link, after its bytes have reached the disk: a reader never
sees half of it, not even after a power failure. The store does not use fsspec's file system,
because that neither syncs nor creates exclusively.
"""

import errno
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from weir.errors import JobRejected, Unavailable, WeirError
from weir.storage.object_store import (
    RETRY_AFTER_S,
    Data,
    NotFound,
    OutcomeUnknown,
    WriteFailed,
    refuse_used,
)

log = logging.getLogger("weir.storage")

SCHEME = "file://"
UNFINISHED = ".weir-unfinished-"
"""Begins the name of a file that a write has not completed; no object is called so."""

_OPENINGS = 100
"""Deletions that may come in between, one after the other, while a file is opened."""

T = TypeVar("T")

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
)
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_BEFORE_THE_NAME = (
    *_FULL,
    *_FORBIDDEN,
    *_NO_LINKS,
    errno.EINVAL,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.EXDEV,
)
"""Errors of a link or a rename that come from checks before it; all others may follow it, as when
a network file system loses the reply."""


class FileStore:
    """Objects of ``file://`` URLs."""

    def read(self, url: str) -> bytes:
        return _reading(url, lambda path: path.read_bytes())

    def read_range(self, url: str, start: int, stop: int) -> bytes:
        return _reading(url, lambda path: _bytes_between(path, start, stop))

    def size(self, url: str) -> int:
        return _reading(url, lambda path: path.stat().st_size)

    def exists(self, url: str) -> bool:
        try:
            self.size(url)
        except NotFound:
            return False
        return True

    def list(self, directory: str) -> tuple[str, ...]:
        return tuple(url for url in _files_below(directory) if not _is_temporary(url))

    def list_unfinished(self, directory: str) -> tuple[str, ...]:
        return tuple(url for url in _files_below(directory) if _is_temporary(url))

    def write(self, url: str, data: Data) -> None:
        path = _path(url)
        with _unfinished(url, data) as temporary:
            try:
                temporary.replace(path)
            except OSError as problem:
                raise naming_error(url, "written", problem) from problem
        _settle(url)

    def copy(self, source: str, target: str) -> None:
        content = _reading(source, _mapped)
        self.write(target, content)

    def create_exclusive(self, url: str, data: bytes) -> bool:
        path = _path(url)
        with _unfinished(url, data) as temporary:
            try:
                os.link(temporary, path)
            except FileExistsError:
                if not self._holds(url, data):
                    return False
            except OSError as problem:
                raise link_error(url, problem) from problem
        _settle(url)
        return True

    def _holds(self, url: str, data: bytes) -> bool:
        try:
            return self.read(url) == data
        except NotFound:
            return False  # it was another's, and is gone again
        except (Unavailable, JobRejected) as problem:  # whose it is, is not known
            raise OutcomeUnknown(*problem.parts) from problem

    def delete(self, urls: Iterable[str]) -> None:
        for url in urls:
            path = _path(url)
            try:
                path.unlink(missing_ok=True)
            except OSError as problem:
                raise _explained(url, "deleted", problem) from problem
            with suppress(OSError):
                path.parent.rmdir()  # only an empty directory goes

    def make_new(self, directory: str) -> None:
        if self.list(directory):
            raise refuse_used(directory)
        try:
            _make_directory(_path(directory))
        except OSError as problem:
            raise _explained(directory, "made", problem) from problem


def _path(url: str) -> Path:
    assert url.startswith(f"{SCHEME}/"), f"{url} is not the URL of a file"
    return Path(url.removeprefix(SCHEME))


def _files_below(directory: str) -> list[str]:
    walk = os.walk(_path(directory))
    return sorted(f"{SCHEME}{folder}/{name}" for folder, _, names in walk for name in names)


def _is_temporary(url: str) -> bool:
    return url.rpartition("/")[2].startswith(UNFINISHED)


def _bytes_between(path: Path, start: int, stop: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(stop - start)


def _mapped(path: Path) -> memoryview:
    """The content, mapped into memory."""
    with path.open("rb") as file:
        is_empty = not os.fstat(file.fileno()).st_size
        return memoryview(b"" if is_empty else mmap(file.fileno(), 0, access=ACCESS_READ))


def _reading(url: str, look: Callable[[Path], T]) -> T:
    try:
        return look(_path(url))
    except FileNotFoundError:
        raise NotFound(url) from None
    except OSError as problem:
        explained = _explained(url, "read", problem)
        if isinstance(explained, Unavailable):
            raise Unavailable(*explained.parts, retry_after=RETRY_AFTER_S) from problem
        raise explained from problem


@contextmanager
def _unfinished(url: str, data: Data) -> Iterator[Path]:
    """A file beside the object that already has its bytes, safely on the disk."""
    try:
        temporary = _open_beside(_path(url))
    except FileNotFoundError as problem:
        raise JobRejected(
            f"{url} could not be written",
            "no directory can be made there",
            "choose a directory of a file system that this process may write to",
        ) from problem
    except OSError as problem:
        raise _explained(url, "written", problem) from problem
    try:
        try:
            _fill(temporary, data)
        except OSError as problem:
            raise _explained(url, "written", problem) from problem
        yield temporary
    finally:
        _remove(temporary)


def _remove(temporary: Path) -> None:
    """Whether the object is stored does not depend on it."""
    try:
        temporary.unlink(missing_ok=True)
    except OSError as problem:
        log.warning(
            "The temporary file %s could not be removed: %s; `weir gc` deletes it later.",
            temporary,
            problem.strerror,
        )


def _open_beside(path: Path) -> Path:
    """Again, when a deletion removed the directory at the moment we found it.

    Not for ever: some file systems report that every new directory does not exist.
    """
    temporary = path.parent / f"{UNFINISHED}{uuid4().hex}"
    for _ in range(_OPENINGS - 1):
        with suppress(FileNotFoundError):
            return _opened(temporary)
    return _opened(temporary)


def _opened(temporary: Path) -> Path:
    _make_directory(temporary.parent)
    temporary.touch(exist_ok=False)
    return temporary


def _fill(path: Path, data: Data) -> None:
    with path.open("wb", buffering=0) as file:
        rest = memoryview(data).cast("B")
        while rest:
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())


def _make_directory(path: Path) -> None:
    """With those above it, each of them durable."""
    if path.is_dir():
        return
    _make_directory(path.parent)
    path.mkdir(exist_ok=True)
    _sync_directory(path.parent)


def _settle(url: str) -> None:
    """Make the object's name durable. It is there, so a failure leaves a doubt."""
    try:
        _sync_directory(_path(url).parent)
    except OSError as problem:
        raise OutcomeUnknown(
            f"{url} may not be durable",
            f"{problem.strerror}",
            "check the file system; the write is repeated",
        ) from problem


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def link_error(url: str, problem: OSError) -> WeirError:
    """What an error of the link means that would have created the object."""
    if problem.errno in _NO_LINKS:
        return JobRejected(
            f"{url} could not be created exclusively",
            f"its file system has no hard links ({problem.strerror})",
            "keep checkpoints on a file system that has them, or in S3",
        )
    return naming_error(url, "created", problem)


def naming_error(url: str, done: str, problem: OSError) -> WeirError:
    """Only an error that is known to precede the new name says that the object is not stored."""
    if problem.errno in _BEFORE_THE_NAME:
        return _explained(url, done, problem)
    return OutcomeUnknown(
        f"{url} may have been {done}, the file system did not report it",
        f"{problem.strerror}",
        "check the file system; the write is repeated",
    )


def _explained(url: str, done: str, problem: OSError) -> WeirError:
    if problem.errno in _FULL:
        return WriteFailed(
            f"{url} could not be {done}",
            "the disk is full",
            "free space or enlarge it",
        )
    if problem.errno in _FORBIDDEN:
        return JobRejected(
            f"{url} could not be {done}",
            f"{problem.strerror}",
            "let the user of this process read and write there, or choose another directory",
        )
    return WriteFailed(
        f"{url} could not be {done}",
        f"{problem.strerror}",
        "check the file system; it is tried again",
    )
