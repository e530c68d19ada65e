"""Where a slot keeps the pieces of its snapshots: in storage, or inside the manifest if small.

With checkpoints in the driver's memory there is no storage that both could reach, so every piece
travels inside the manifest, and one that is too large for that is refused (spec S7).
"""

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from weir.api.storage_url import is_memory
from weir.core.changelog import ChangelogPolicy
from weir.core.file_pool import FileMergingPolicy
from weir.core.ids import CheckpointId
from weir.core.rescale import NativeShare
from weir.core.snapshots import NativeFile, StateFile
from weir.errors import JobRejected
from weir.ports.operators import NativeInstance
from weir.slot.file_storage import Segment
from weir.state.working_directory import WorkingDirectory, usual_parent
from weir.storage import state_files
from weir.storage.local_copies import LocalCopies, Owner
from weir.storage.store_by_scheme import StoreByScheme

DOWNLOADS = 4
"""Files of one instance at a time."""

LARGE_BYTES = 32 << 20
"""Larger files do not pass through memory as a whole, where state may be larger than memory."""


@dataclass(frozen=True, slots=True)
class SnapshotStorageSettings:
    """Where the job's checkpoints go."""

    storage: str
    inline_threshold: int
    memory_limit: int
    """The largest piece, where all of them live in the driver's memory."""
    is_incremental: bool = False
    """Checkpoints share files and put up only what changed."""
    local_directory: str = ""
    """Where second copies are kept on the machine's own disk; empty: nowhere."""
    merging: FileMergingPolicy | None = None
    """How the pieces of a slot's subtasks share files; None: each piece has a separate file."""
    changelog: ChangelogPolicy | None = None
    """How changes of keyed state are logged between checkpoints; None: not at all."""
    restore_directory: str | None = None
    """Large files to restore from are read by way of this directory on local disk, empty for the
    system's own; None: into memory."""


class SnapshotStorage:
    """The pieces of snapshots, written and read by a slot's upload threads."""

    def __init__(self, keeping: SnapshotStorageSettings) -> None:
        self._keeping = keeping
        self._in_memory = is_memory(keeping.storage)
        self._store = StoreByScheme()
        self._restoring = WorkingDirectory(keeping.restore_directory or "")
        local = keeping.local_directory
        self._copies = LocalCopies(Path(local)) if local else None

    @property
    def is_incremental(self) -> bool:
        return self._keeping.is_incremental

    @property
    def merging(self) -> FileMergingPolicy | None:
        return self._keeping.merging

    @property
    def changelog(self) -> ChangelogPolicy | None:
        return self._keeping.changelog

    def put(
        self,
        path: str,
        content: pa.Buffer,
        *,
        owner: Owner | None = None,
        shared: bool = False,
        source: str = "",
    ) -> StateFile:
        """The piece's handle; a piece with an owner gets a local copy, a link to its source."""
        file = self.described(path, content, shared=shared)
        if file.path and not (source and shared):
            self.put_merged(path, [Segment(file, content, owner)])
        elif file.path:
            self._store.write(path, memoryview(content))
            if self._copies is not None and owner is not None:
                self._copies.link(owner, file.segment, Path(source))
        return file

    def described(self, path: str, content: pa.Buffer, *, shared: bool = False) -> StateFile:
        if self._in_memory:
            return self._put_in_manifest(path, content)
        small = state_files.small(content, self._keeping.inline_threshold)
        return small or state_files.described(path, content, shared=shared)

    def put_merged(self, path: str, segments: Sequence[Segment]) -> None:
        contents = [memoryview(segment.content) for segment in segments]
        self._store.write(path, contents[0] if len(contents) == 1 else b"".join(contents))
        for file, content, owner in segments:
            if self._copies is not None and owner is not None:
                self._copies.keep(owner, file.segment, content)

    def size(self, path: str) -> int:
        return self._store.size(path)

    def _put_in_manifest(self, path: str, content: pa.Buffer) -> StateFile:
        limit = self._keeping.memory_limit
        piece = state_files.small(content, limit)
        if piece is None:
            raise JobRejected(
                f"{path.rsplit('/', 1)[-1]} has {content.size} bytes",
                f"checkpoints in memory are limited to {limit} for each piece",
                "set checkpointing.storage to a directory",
            )
        return piece

    def fetch(self, file: StateFile) -> pa.Buffer:
        """From the local copy if there is one, and from storage if there is not."""
        copy = self._copies.find(file) if self._copies is not None and file.path else None
        if copy is not None:
            return copy
        directory = self._keeping.restore_directory
        if directory is None or not file.path or file.bytes <= LARGE_BYTES:
            return state_files.fetch(self._store, file)
        return state_files.fetch_to_disk(self._store, file, directory or usual_parent())

    def fetch_native(self, share: NativeShare) -> NativeInstance:
        """In parallel, each file from its local copy if there is one."""
        directory = self._restoring.new_instance()

        def remove() -> None:
            self._restoring.remove(directory)

        try:
            directory.mkdir()
            files = share.handle.files
            with ThreadPoolExecutor(min(DOWNLOADS, max(len(files), 1))) as downloading:
                list(downloading.map(partial(self._fetch_into, directory), files))
        except BaseException:
            remove()
            raise
        return NativeInstance(share, str(directory), remove)

    def _fetch_into(self, directory: Path, native: NativeFile) -> None:
        place = directory / native.name
        shared = native.file.shared and bool(native.file.path)
        if shared and self._copies is not None and self._copies.link_to(native.file, place):
            return
        state_files.fetch_into(self._store, native.file, place)

    def delete(self, paths: Sequence[str]) -> None:
        if paths and not self._in_memory:
            self._store.delete(paths)
            if self._copies is not None:
                self._copies.forget(paths)

    def completed(self, owner: Owner, still: Collection[str]) -> None:
        """Of the owner's copies, no restore needs others than these any more."""
        if self._copies is not None:
            self._copies.completed(owner, still)

    def disk(self) -> str:
        """The name of the disk that copies are kept on; empty where none are."""
        return self._copies.disk() if self._copies is not None else ""

    def held(self) -> tuple[tuple[int, CheckpointId], ...]:
        """The indexes with copies on this machine, and the checkpoints that they are good for."""
        return self._copies.held() if self._copies is not None else ()
