"""Weir's Python daemon for Spark, whose slots obey the faults of a test."""

from weir import daemon  # first, for it arranges where the rest is found

from saboteur import sabotage_slots  # isort: skip

PRELOADED = daemon.PRELOADED

if __name__ == "__main__":
    sabotage_slots()
    daemon.start()
