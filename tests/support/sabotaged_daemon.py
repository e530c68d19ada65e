"""Weir's Python daemon for Spark, whose slots obey the faults of a test."""

from pyspark.daemon import manager

from saboteur import sabotage_slots
from weir.spark import daemon

PRELOADED = daemon.PRELOADED

if __name__ == "__main__":
    sabotage_slots()
    manager()
