"""Keeps the state of operators, in memory or in RocksDB, and writes it to Arrow files by key group.

Nothing here knows where a file is stored, why a snapshot is taken, or what a barrier is.
"""
