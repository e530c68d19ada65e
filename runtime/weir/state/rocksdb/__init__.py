"""The ``rocksdb`` backend: keyed state on the executor's disk, larger than the memory of the slot.

Operators know it only by ``weir.ports.keyed_state``.
"""
