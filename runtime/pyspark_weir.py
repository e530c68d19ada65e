"""Where Spark itself finds the format ``weir-state``: it looks for modules with such a name.

It does so when a Python data source is used for the first time. So a session can read state
without a word, and one that never does so does not pay for a registration.
"""

from weir.spark.state_reader import StateSource as DefaultSource

__all__ = ["DefaultSource"]
