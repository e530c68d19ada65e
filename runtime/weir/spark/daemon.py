"""Spark's Python daemon with everything imported that a slot needs.

Spark forks its workers from a daemon. Imports take more than half a second, so they happen here,
once, and a killed slot is replaced by a fork that is ready at once. The daemon only imports: a
thread or a lock that was used before a fork would be broken after it.
"""

from pyspark.daemon import manager

from weir.slot.process import host_subtasks

PRELOADED = host_subtasks

if __name__ == "__main__":
    manager()
