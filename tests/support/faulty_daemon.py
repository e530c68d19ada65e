"""Weir's Python daemon for Spark, with the faults of a test injected into its slots."""

from weir import daemon  # first, for it arranges where the rest is found

from fault_injector import inject_slot_faults  # isort: skip

PRELOADED = daemon.PRELOADED

if __name__ == "__main__":
    inject_slot_faults()
    daemon.start()
