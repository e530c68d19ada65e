"""The ``hashmap`` backend: keyed state in the memory of the slot.

Operators know it only by ``weir.ports.keyed_state``.
"""
