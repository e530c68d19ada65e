"""Writes the pieces of a snapshot to storage, and verifies them when it reads them.

The handle of a piece has its length and checksum, so a file that was truncated, changed or
exchanged is detected before anything is restored from it (spec C18). Small pieces do not become
files: their handle holds them (spec S7). Several pieces may share one file, each as a segment of
its own, and only that segment is read (spec S6).
"""

from mmap import ACCESS_READ, mmap
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import pyarrow as pa
import xxhash

from weir.core.snapshots import StateFile
from weir.errors import JobRejected, Unavailable
from weir.storage.object_store import Data, NotFound, ObjectStore

INLINE_BYTES = 20 << 10
PART_BYTES = 16 << 20
RETRY_AFTER = 10.0


class DamagedState(JobRejected):
    """A piece of a checkpoint's state is not what was put there."""

    def __init__(self, file: StateFile, why: str) -> None:
        name = file.path or "inline state"
        super().__init__(
            f"{name} cannot be restored from",
            why,
            "bring the file back from a copy, or restore an older checkpoint or a savepoint by "
            "its path",
        )


def small(data: Data, threshold: int = INLINE_BYTES) -> StateFile | None:
    """The handle that holds the state itself; None when it is too large for that."""
    content = memoryview(data)
    if content.nbytes > threshold:
        return None
    return StateFile(
        path="", bytes=content.nbytes, checksum=_checksum(data), content=content.tobytes()
    )


def inline(content: bytes) -> StateFile:
    """The handle that holds this, whatever its size."""
    return StateFile(path="", bytes=len(content), checksum=_checksum(content), content=content)


def mapped(path: str) -> pa.Buffer:
    """The content of a local file, of which memory holds what is being read."""
    with pa.memory_map(path) as file:
        return file.read_buffer()


def put(store: ObjectStore, path: str, data: Data, *, shared: bool = False) -> StateFile:
    """The handle of a file that is durable."""
    file = described(path, data, shared=shared)
    store.write(path, data)
    return file


def described(path: str, data: Data, *, shared: bool = False) -> StateFile:
    """The handle of a file that is still to be written."""
    size = memoryview(data).nbytes
    return StateFile(path=path, bytes=size, shared=shared, checksum=_checksum(data))


def fetch(store: ObjectStore, file: StateFile) -> pa.Buffer:
    """What was put there, or an error that names the file."""
    data = _content(store, file)
    if len(data) != file.bytes:
        raise DamagedState(file, f"it has {len(data)} bytes, and {file.bytes} were written")
    if file.checksum and _checksum(data) != file.checksum:
        raise DamagedState(file, "its bytes are not those that were written")
    return pa.py_buffer(data)


def fetch_to_disk(store: ObjectStore, file: StateFile, directory: str) -> pa.Buffer:
    """The same, by way of a local file that leaves with the result: memory holds a part at a time.

    The file has no name, so nothing is left of it if the process dies. An empty directory is the
    system's own for temporary files.
    """
    if directory:
        Path(directory).mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=directory or None, prefix="weir-restore-") as local:
        _copy_verified(store, file, local)
        local.flush()
        return pa.py_buffer(mmap(local.fileno(), 0, access=ACCESS_READ))


def fetch_into(store: ObjectStore, file: StateFile, place: Path) -> None:
    """Write what was put there to a local file, a part of it at a time."""
    try:
        if not file.path:
            place.write_bytes(fetch(store, file))
            return
        with place.open("wb") as local:
            _copy_verified(store, file, local)
    except OSError as problem:
        raise Unavailable(
            f"state cannot be restored to {place.parent}",
            str(problem),
            "make room on that disk, or set state.rocksdbLocalDir to a directory on a larger one",
            retry_after=RETRY_AFTER,
        ) from problem


def _copy_verified(store: ObjectStore, file: StateFile, local: IO[bytes]) -> None:
    digest = xxhash.xxh3_64()
    try:
        end = file.offset + file.bytes
        for start in range(file.offset, end, PART_BYTES):
            part = store.read_range(file.path, start, min(start + PART_BYTES, end))
            digest.update(part)
            local.write(part)
    except NotFound:
        raise DamagedState(file, "it does not exist") from None
    if (size := local.tell()) != file.bytes:
        raise DamagedState(file, f"it has {size} bytes, and {file.bytes} were written")
    if file.checksum and digest.hexdigest() != file.checksum:
        raise DamagedState(file, "its bytes are not those that were written")


def _content(store: ObjectStore, file: StateFile) -> bytes:
    if not file.path:
        return file.content
    try:
        return store.read_range(file.path, file.offset, file.offset + file.bytes)
    except NotFound:
        raise DamagedState(file, "it does not exist") from None


def read_start(store: ObjectStore, file: StateFile, size: int) -> bytes:
    """The first bytes of a piece, or all of them if there are fewer; they are not verified."""
    if not file.path:
        return file.content[:size]
    return store.read_range(file.path, file.offset, file.offset + min(size, file.bytes))


def _checksum(data: Data) -> str:
    return xxhash.xxh3_64_hexdigest(memoryview(data))
