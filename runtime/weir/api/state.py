"""Where keyed state lives while the job runs.

Only the choice is made here. How large a backend's memory is, and whether a local copy would
survive its pod, is known to whoever places the slots; local recovery stays off where it would not,
and the job's status says so.
"""

from enum import StrEnum

from pydantic import StrictBool

from weir.api.model import Model


class StateBackend(StrEnum):
    """The kinds of keyed state."""

    HASHMAP = "hashmap"
    """In the memory of the slot."""
    ROCKSDB = "rocksdb"
    """On the local disk of the slot, larger than its memory."""


class StateConfig(Model):
    """Where keyed state lives while the job runs."""

    backend: StateBackend = StateBackend.HASHMAP
    """hashmap keeps keyed state in memory, rocksdb on local disk."""

    local_recovery: StrictBool = False
    """Keep a second copy of the state on local disk to restore from, where that disk survives."""
