"""A disk that cannot be read or written fails a subtask; it never makes its state look smaller."""

import subprocess
import sys
from hashlib import sha256

import pyarrow as pa
import pytest

from captured_state import a_place
from weir.api.state_config import LEAST_ROCKSDB_MEMORY, StateConfig
from weir.core.ids import CheckpointId
from weir.dataflow.types import schema_of
from weir.errors import Unavailable
from weir.ports.keyed_state import TimeMode
from weir.state.rocksdb.rocksdb_backend import RocksDBBackends
from weir.state.row_types import RowType

KEYS = (pa.field("key", pa.int64()),)
MANY = 20_000
BLOCK_BYTES = 4096


def backend_in(directory):
    config = StateConfig(rocksdb_memory=LEAST_ROCKSDB_MEMORY, rocksdb_local_dir=str(directory))
    return RocksDBBackends(config)(a_place(), KEYS)


def rows_of(ddl):
    return RowType("row", schema_of(ddl))


def damage(backend, share):
    """Overwrites one block of each file, so far into it."""
    backend._buffer.flush()  # noqa: SLF001 - its files are damaged
    backend._database._db.flush()  # noqa: SLF001
    for path in backend._database.path.glob("*.sst"):  # noqa: SLF001
        with path.open("r+b") as file:
            file.seek(int(path.stat().st_size * share))
            file.write(b"\xee" * BLOCK_BYTES)


def incompressible(number):
    return (sha256(str(number).encode()).hexdigest(),)


def test_a_damaged_block_is_not_the_end_of_a_map(tmp_path):
    """S2, C18."""
    backend = backend_in(tmp_path)
    entries = backend.map_state("entries", rows_of("k long"), rows_of("v string"))
    backend.seek((1,))
    for number in range(MANY):
        entries.update((number,), incompressible(number))
    damage(backend, 0.5)
    with pytest.raises(Unavailable, match="RocksDB failed"):
        list(entries.items())


def test_a_damaged_block_is_not_the_end_of_the_timers(tmp_path):
    """S2, C18: timers behind it would never fire."""
    backend = backend_in(tmp_path)
    timers = backend.timers(TimeMode.EVENT_TIME)
    state = backend.value_state("state", rows_of("v string"))
    for key in range(MANY):
        backend.seek((key,))
        state.update(incompressible(key))
        timers.register(key)
    damage(backend, 0.95)

    def fire_all():
        while timers.earliest() is not None:
            _, time = timers.seek_earliest()
            timers.delete(time)

    with pytest.raises(Unavailable, match="RocksDB failed"):
        fire_all()


def test_a_damaged_first_block_is_not_an_empty_state(tmp_path):
    """S2, C18: a checkpoint without the state would complete."""
    backend = backend_in(tmp_path)
    state = backend.value_state("state", rows_of("v string"))
    for key in range(MANY):
        backend.seek((key,))
        state.update(incompressible(key))
    damage(backend, 0.0)
    with pytest.raises(Unavailable, match="RocksDB failed"):
        backend.capture(CheckpointId(1))


CLOSE_ON_A_FULL_DISK = """
import resource, signal, sys
from test_rocksdb_disk_faults import *

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
config = StateConfig(rocksdb_memory=LEAST_ROCKSDB_MEMORY, rocksdb_local_dir=sys.argv[1])
backends = RocksDBBackends(config)
neighbour, backend = backends(a_place(1, 2), KEYS), backends(a_place(0, 2), KEYS)
state = backend.value_state("state", rows_of("v string"))
for key in range(5_000):
    backend.seek((key,))
    state.update(incompressible(key))
backend._buffer.flush()
path = backend._database.path
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    backend.close()
except Unavailable:
    pass
except Exception as problem:
    print(type(problem).__name__)
print("left over" if path.exists() else "removed")
"""


def test_an_instance_on_a_full_disk_gives_its_room_back(tmp_path, monkeypatch):
    """R7: or each restart in this slot would fail on the same full disk."""
    monkeypatch.setenv("PYTHONPATH", ":".join([*sys.path, str(__file__).rpartition("/")[0]]))
    command = [sys.executable, "-c", CLOSE_ON_A_FULL_DISK, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.stdout.splitlines()[-1:] == ["removed"], ended.stderr


def test_firing_timers_keep_the_unwritten_bytes_bounded(tmp_path):
    """R7: a timer that registers the next one may change state without end between two rows."""
    backend = backend_in(tmp_path)
    timers = backend.timers(TimeMode.PROCESSING_TIME)
    state = backend.value_state("state", rows_of("v string"))
    keys, large = 500, ("x" * 20_000,)
    for key in range(keys):
        backend.seek((key,))
        timers.register(key)
    most = 0
    for _ in range(4 * keys):
        _, time = timers.seek_earliest()
        state.update(large)
        timers.register(time + keys)
        timers.delete(time)
        most = max(most, backend._buffer.unwritten_bytes)  # noqa: SLF001 - what is bounded
    assert most <= backend._memory.unwritten_bytes + 2 * len(large[0])  # noqa: SLF001


def test_dropping_a_state_leaves_no_trace_in_groups_without_it(tmp_path):
    """S2: each deleted range would slow every later read down."""
    backend = backend_in(tmp_path)
    state = backend.value_state("state", rows_of("v string"))
    backend.seek((1,))
    state.update(("here",))
    backend._buffer.flush()  # noqa: SLF001 - so that the database has it
    deleted = []
    delete = backend._database.delete_range  # noqa: SLF001
    backend._database.delete_range = lambda *limits: deleted.append(limits) or delete(*limits)  # noqa: SLF001
    backend.drop("state")
    assert len(deleted) == 1
