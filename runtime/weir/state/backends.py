"""The state backends by the names that a job's configuration has for them."""

from collections.abc import Mapping

from weir.api.state_config import StateBackend
from weir.ports.keyed_state import BackendFactory
from weir.state.memory.memory_backend import MemoryBackend

BACKENDS: Mapping[StateBackend, BackendFactory] = {StateBackend.HASHMAP: MemoryBackend}
