"""The settings of keyed state: its backend with its memory and disk, and local recovery.

The memory of a backend, and whether a local copy survives its pod, depend on the placement of the
slots. Local recovery stays off where a copy would not survive, and the job's status reports that.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StrictBool, StrictStr

from weir.api.bounds import Bounds
from weir.api.changelog_config import ChangelogConfig
from weir.api.model import Model
from weir.api.size import MIB, Size

LEAST_ROCKSDB_MEMORY = 16 * MIB


class StateBackend(StrEnum):
    """The kinds of keyed state."""

    HASHMAP = "hashmap"
    """In the memory of the slot."""
    ROCKSDB = "rocksdb"
    """On the local disk of the executor."""


class StateConfig(Model):
    """Where keyed state lives while the job runs."""

    backend: StateBackend = StateBackend.HASHMAP
    """Where keyed state is kept: hashmap, in memory; or rocksdb, on the executors' local disk, for
    state that is larger than memory."""

    rocksdb_memory: Annotated[
        Size,
        Bounds(
            least=LEAST_ROCKSDB_MEMORY,
            because="the write buffers and the block cache of a slot have no room in it",
            remedy="use 16 MiB or more",
        ),
    ] = 256 * MIB
    """With backend rocksdb: the memory of all its instances in a slot together, for block cache,
    write buffers and rows that are not written yet."""

    rocksdb_local_dir: StrictStr | None = None
    """With backend rocksdb: a directory on the executors' local disk for its files. If not given,
    the first of Spark's own local directories."""

    changelog: ChangelogConfig = Field(default_factory=ChangelogConfig)
    """Logged changes."""

    local_recovery: StrictBool = False
    """Keep a second copy of the state on local disk to restore from, where that disk survives."""
