"""The state backends by the names that a job's configuration has for them."""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from weir.api.state_config import StateBackend, StateConfig
from weir.ports.keyed_state import BackendFactory, KeyedBackend
from weir.ports.operators import TaskInfo
from weir.state.logged_backend import LoggedBackend
from weir.state.memory.memory_backend import MemoryBackend
from weir.state.rocksdb.rocksdb_backend import RocksDBBackends


def _hashmap(config: StateConfig) -> BackendFactory:
    """Its memory is that of the process."""
    del config
    return MemoryBackend


BACKENDS: Mapping[StateBackend, Callable[[StateConfig], BackendFactory]] = {
    StateBackend.HASHMAP: _hashmap,
    StateBackend.ROCKSDB: RocksDBBackends,
}


def backends_of(config: StateConfig) -> BackendFactory:
    """What makes the backends of a slot; all of them share what the slot has for state."""
    make = BACKENDS[config.backend](config)

    def backend(place: TaskInfo, keys: Sequence[pa.Field]) -> KeyedBackend:
        return LoggedBackend(make(place, keys)) if place.is_logged else make(place, keys)

    return backend
