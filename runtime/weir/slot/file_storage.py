"""What a slot asks of the place where the files of its snapshots go.

The real slot has ``snapshot_storage``; the simulator has a store that fails.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa

from weir.core.changelog import ChangelogPolicy
from weir.core.file_pool import FileMergingPolicy
from weir.core.rescale import NativeShare
from weir.core.snapshots import StateFile
from weir.ports.operators import NativeInstance
from weir.storage.local_copies import Owner


class Segment(NamedTuple):
    """A piece of a snapshot that shares a file with others."""

    file: StateFile
    content: pa.Buffer
    owner: Owner | None
    """Of its local copy; None: it has none."""


class FileStorage(Protocol):
    """Where the files of snapshots go; each call returns when its work is durable, or raises."""

    @property
    def is_incremental(self) -> bool: ...
    @property
    def merging(self) -> FileMergingPolicy | None:
        """How pieces share files; None: each has a separate file."""

    @property
    def changelog(self) -> ChangelogPolicy | None:
        """How changes are logged; None: not at all."""

    def put(
        self,
        path: str,
        content: pa.Buffer,
        *,
        owner: Owner | None = None,
        shared: bool = False,
        source: str = "",
    ) -> StateFile:
        """The local file that has the content, if one has, may become the local copy."""

    def described(self, path: str, content: pa.Buffer, *, shared: bool = False) -> StateFile:
        """The handle of a piece that is still to be written; a small one holds its content."""

    def put_merged(self, path: str, segments: Sequence[Segment]) -> None:
        """Write one file of these, in this order."""

    def size(self, path: str) -> int: ...
    def fetch(self, file: StateFile) -> pa.Buffer: ...
    def fetch_native(self, share: NativeShare) -> NativeInstance:
        """All files of the instance, verified, in a directory that the caller removes."""

    def delete(self, paths: Sequence[str]) -> None: ...
    def completed(self, owner: Owner, still: frozenset[str]) -> None: ...
