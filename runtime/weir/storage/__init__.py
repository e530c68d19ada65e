"""Checkpoint storage: objects under URLs, with the job's log, manifests and state files.

This package does not decide what is kept or deleted; it reports exactly whether something is
stored, is not stored, or may be stored.
"""
