"""Gives tests the state backends, for what all of them must keep."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

BACKENDS = ("hashmap", "rocksdb")
MEMORY_DISK = Path("/dev/shm")  # noqa: S108 - RocksDB waits for the disk when it opens and closes


@pytest.fixture
def rocksdb_backends() -> Iterator[object]:
    """Of a slot with the least memory that is allowed."""
    from weir.api.state_config import LEAST_ROCKSDB_MEMORY, StateConfig  # noqa: PLC0415
    from weir.state.rocksdb.rocksdb_backend import RocksDBBackends  # noqa: PLC0415 - after a plant

    with TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as directory:
        yield RocksDBBackends(
            StateConfig(rocksdb_memory=LEAST_ROCKSDB_MEMORY, rocksdb_local_dir=directory)
        )


@pytest.fixture(params=BACKENDS)
def make_backend(request: pytest.FixtureRequest, rocksdb_backends: object) -> object:
    return _factory(request.param, rocksdb_backends)


@pytest.fixture(params=BACKENDS)
def make_other_backend(request: pytest.FixtureRequest, rocksdb_backends: object) -> object:
    """One to switch to."""
    return _factory(request.param, rocksdb_backends)


@pytest.fixture
def each_backend(make_backend: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the processors of a test in each backend."""
    from processor_harness import ProcessorHarness  # noqa: PLC0415 - after a plant

    monkeypatch.setattr(ProcessorHarness, "backends", staticmethod(make_backend))


def _factory(name: str, rocksdb_backends: object) -> object:
    from weir.state.memory.memory_backend import MemoryBackend  # noqa: PLC0415 - after a plant

    return MemoryBackend if name == "hashmap" else rocksdb_backends
