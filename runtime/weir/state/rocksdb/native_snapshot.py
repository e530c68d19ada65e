"""Describes an instance of RocksDB whose files are the snapshot, and the states inside it.

A state is described by the Arrow file that it would be in, without rows: so what reads or checks
the file of a snapshot reads and checks the description of a native state as well.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from weir.core.snapshots import KeyGroupRange
from weir.ports.operators import LocalFile, LocalState, NativeContent, NativeSnapshot
from weir.state.restored_rows import Keys
from weir.state.rocksdb.database import Database
from weir.state.rocksdb.rocksdb_capture import RocksDBCapture
from weir.state.snapshot_files import write_keyed

BACKEND = "rocksdb"
LAYOUT = 1
"""The version of the bytes of keys and values. Another one refuses what it cannot read."""

TIME_MODE = b"weir.time_mode"
"""In the metadata of a description: the time that the timers go by."""

_IMMUTABLE = (".sst", ".blob")
_NEEDED = ("CURRENT", "MANIFEST-")
"""And what names the immutable ones. Options are those of the code that opens the instance."""


def native_snapshot(
    capture: RocksDBCapture,
    database: Database,
    groups: KeyGroupRange,
    states: Sequence[LocalState],
) -> NativeSnapshot | None:
    """None if the capture keeps no files."""
    if not capture.keeps_files:
        return None

    def write() -> NativeContent:
        return NativeContent(_files_in(capture.files()), tuple(states))

    return NativeSnapshot(groups, BACKEND, LAYOUT, database.instance, write)


def file_without_rows(
    name: str, fields: Sequence[pa.Field], keys: Keys, metadata: Mapping[bytes, bytes] | None = None
) -> pa.Buffer:
    """The fields are those of the key, then the state's own."""
    empty = pa.schema(fields, metadata=metadata).empty_table()
    return write_keyed(name, empty, np.zeros(0, np.int32), keys.names, keys.max_parallelism)


def _files_in(directory: Path) -> tuple[LocalFile, ...]:
    return tuple(
        LocalFile(path.name, str(path), is_immutable=path.name.endswith(_IMMUTABLE))
        for path in sorted(directory.iterdir())
        if path.name.endswith(_IMMUTABLE) or path.name.startswith(_NEEDED)
    )
