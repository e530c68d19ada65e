"""Where a slot keeps the pieces of its snapshots: in storage, or inside the manifest if small.

With checkpoints in the driver's memory there is no storage that both could reach, so every piece
travels inside the manifest, and one that is too large for that is refused (spec S7).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from weir.api.storage_url import is_memory
from weir.core.snapshots import StateFile
from weir.errors import JobRejected
from weir.storage import state_files
from weir.storage.by_scheme import StoreByScheme


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where the job's checkpoints go."""

    storage: str
    inline_threshold: int
    memory_limit: int
    """The largest piece, where all of them live in the driver's memory."""
    is_incremental: bool = False
    """Checkpoints share files and put up only what changed."""


class StateFiles:
    """The pieces of snapshots, written and read by a slot's upload threads."""

    def __init__(self, keeping: Keeping) -> None:
        self._keeping = keeping
        self._in_memory = is_memory(keeping.storage)
        self._store = StoreByScheme()

    @property
    def is_incremental(self) -> bool:
        return self._keeping.is_incremental

    def put(self, path: str, content: pa.Buffer, *, shared: bool = False) -> StateFile:
        if self._in_memory:
            return self._put_in_manifest(path, content)
        small = state_files.small(content, self._keeping.inline_threshold)
        return small or state_files.put(self._store, path, content, shared=shared)

    def _put_in_manifest(self, path: str, content: pa.Buffer) -> StateFile:
        limit = self._keeping.memory_limit
        piece = state_files.small(content, limit)
        if piece is None:
            raise JobRejected(
                f"{path.rsplit('/', 1)[-1]} has {content.size} bytes, but checkpoints in memory "
                f"are limited to {limit} for each piece; set checkpointing.storage to a directory"
            )
        return piece

    def fetch(self, file: StateFile) -> pa.Buffer:
        return state_files.fetch(self._store, file)

    def delete(self, paths: Sequence[str]) -> None:
        if paths and not self._in_memory:
            self._store.delete(paths)
