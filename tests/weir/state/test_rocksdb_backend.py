"""RocksDB's working copies stay within their memory and leave nothing behind on the disk."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from captured_state import a_place, written
from weir.api.state_config import LEAST_ROCKSDB_MEMORY, StateConfig
from weir.core.ids import CheckpointId, EdgeId
from weir.dataflow.physical import Aggregate, AggregateHead
from weir.dataflow.types import schema_of
from weir.errors import JobRejected
from weir.ports.operators import RestoredState
from weir.slot.aggregate import AggregateOperator
from weir.state.rocksdb.database import explained
from weir.state.rocksdb.rocksdb_backend import RocksDBBackends
from weir.state.row_types import RowType
from weir.state.working_directory import NAME

ROWS = pa.schema([("key", pa.int64()), ("n", pa.int64())])
HEAD = AggregateHead(
    ("key",),
    (Aggregate("sum", "n", "total"),),
    ROWS,
    pa.schema([("key", pa.int64()), ("total", pa.int64())]),
)
KEYS = 150_000


def backends_in(directory):
    return RocksDBBackends(
        StateConfig(rocksdb_memory=LEAST_ROCKSDB_MEMORY, rocksdb_local_dir=str(directory))
    )


def a_batch(first, count, n):
    numbers = np.arange(first, first + count)
    return pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(np.full(count, n))], schema=ROWS)


def test_more_keys_than_fit_are_written_to_disk_and_read_back(rocksdb_backends):
    """S2 R7: row numbers come back to the backend, and every sum is right."""
    operator = AggregateOperator(HEAD, a_place(), rocksdb_backends)
    held, totals = 0, {}
    for n in (1, 10, 100):
        for first in range(0, KEYS, 30_000):
            for emitted in operator.process(EdgeId("in"), a_batch(first, 30_000, n)):
                keys, sums = (column.to_pylist() for column in emitted.columns)
                totals.update(zip(keys, sums, strict=True))
            held = max(held, operator._aggregates.size)  # noqa: SLF001 - what it holds
    for emitted in operator.flush():
        keys, sums = (column.to_pylist() for column in emitted.columns)
        totals.update(zip(keys, sums, strict=True))

    assert totals == dict.fromkeys(range(KEYS), 111)
    assert held < KEYS / 2


def test_a_snapshot_has_what_is_on_disk_and_what_is_not_yet(rocksdb_backends):
    """S2 S3: each key once, by key group, though most were written long before."""
    operator = AggregateOperator(HEAD, a_place(), rocksdb_backends)
    for first in range(0, KEYS, 30_000):
        list(operator.process(EdgeId("in"), a_batch(first, 30_000, 1)))
    list(operator.process(EdgeId("in"), a_batch(10, 20, 5)))
    list(operator.flush())
    (piece,) = operator.capture(CheckpointId(1)).keyed
    table = pa.ipc.open_file(piece.write()).read_all()

    sums = dict(zip(table["key"].to_pylist(), table["sum(n)"].to_pylist(), strict=True))
    assert table.num_rows == KEYS
    assert sums == {key: 6 if 10 <= key < 30 else 1 for key in range(KEYS)}
    groups = table["key_group"].to_pylist()
    assert groups == sorted(groups)


def test_changes_are_written_when_they_are_too_many(rocksdb_backends):
    """R7: states of one key at a time collect changes only as far as their memory goes."""
    backend = rocksdb_backends(a_place(), (pa.field("key", pa.int64()),))
    state = backend.value_state("s", RowType("state 's'", schema_of("t string")))
    most = 0
    for key in range(2_000):
        backend.seek((key,))
        state.update(("x" * 10_000,))
        most = max(most, backend._buffer.unwritten_bytes)  # noqa: SLF001 - what it holds

    assert most < LEAST_ROCKSDB_MEMORY / 2
    backend.prefetch([(key,) for key in range(0, 2_000, 100)])
    for key in range(0, 2_000, 100):
        backend.seek((key,))
        assert state.get() == ("x" * 10_000,)


def test_the_disk_is_free_again_when_all_is_closed(tmp_path):
    """S2 R7: also of what a capture still needed when its subtask had ended."""
    backends = backends_in(tmp_path)
    backend = backends(a_place(), (pa.field("key", pa.int64()),))
    state = backend.value_state("s", RowType("state 's'", schema_of("n long")))
    backend.seek((1,))
    state.update((1,))
    captured = backend.capture(CheckpointId(1))
    backend.close()
    kept = list((tmp_path / NAME).iterdir())
    files = [(piece.groups, piece.write()) for piece in captured.keyed]
    captured.release()

    assert len(kept) == 2
    assert list((tmp_path / NAME).iterdir()) == []
    again = backends(a_place(), (pa.field("key", pa.int64()),))
    restored = again.value_state("s", RowType("state 's'", schema_of("n long")))
    again.restore(RestoredState(keyed=files))
    again.seek((1,))
    assert restored.get() == (1,)


def test_the_files_of_a_dead_process_are_removed_and_those_of_a_living_one_are_not(tmp_path):
    """S2: kill -9 leaves a directory behind, and no process of another life owns it."""
    script = (
        "import sys\n"
        "from weir.state.working_directory import WorkingDirectory\n"
        "WorkingDirectory(sys.argv[1]).new_instance().mkdir()\n"
        "print('made', flush=True)\n"
        "sys.stdin.read()\n"
    )
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", script, str(tmp_path)]
    dead, living = (
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PYTHONPATH": str(root / "runtime")},
        )
        for _ in range(2)
    )
    with dead, living:
        for process in (dead, living):
            assert process.stdout.readline() == b"made\n"
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        backend = backends_in(tmp_path)(a_place(), (pa.field("key", pa.int64()),))
        left = {path.name.split("-")[0] for path in (tmp_path / NAME).iterdir()}
        backend.close()
        living.communicate()

    assert str(dead.pid) not in left
    assert str(living.pid) in left


def test_a_directory_that_cannot_be_used_is_refused(tmp_path):
    """U3 S2."""
    (tmp_path / "file").write_text("")
    backends = backends_in(tmp_path / "file")

    with pytest.raises(JobRejected, match="on local disk that the executors can write to"):
        backends(a_place(), (pa.field("key", pa.int64()),))


def test_a_full_disk_is_named_with_its_remedy():
    """U3 S2."""
    problem = explained(Exception("IO error: No space left on device: /disk/000012.sst"))

    assert "No space left on device" in problem.cause
    assert "state.rocksdbLocalDir" in problem.remedy


def test_two_backends_of_a_slot_share_its_memory(tmp_path):
    """R7: the more there are, the less each may hold."""
    backends = backends_in(tmp_path)
    memory = backends._memory  # noqa: SLF001 - the slot's budget
    one = backends(a_place(), (pa.field("key", pa.int64()),))
    alone = memory.unwritten_bytes
    other = backends(a_place(1, 2), (pa.field("key", pa.int64()),))
    together = memory.unwritten_bytes
    one.close()
    other.close()

    assert together == alone // 2
    assert written(backends(a_place(), (pa.field("key", pa.int64()),))) == []
