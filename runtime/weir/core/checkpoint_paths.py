"""Names the places of a job's checkpoints and savepoints in storage.

The coordinator, the storage layer and the tools that read snapshots build every path here, so that
they agree on the layout.
"""

from weir.core.ids import CheckpointId


def manifest_path(location: str) -> str:
    return f"{location}/_metadata"


def checkpoint_location(directory: str, checkpoint: CheckpointId) -> str:
    return f"{directory}/chk-{checkpoint}"


def savepoint_location(directory: str, checkpoint: CheckpointId) -> str:
    """Where a savepoint goes if its request names no place."""
    return f"{directory}/savepoint-{checkpoint}"


def has_unique_name(directory: str, path: str) -> bool:
    """Whether the job uses this file name once and never again (spec C19).

    Checkpoint ids and the names of shared files are unique. A user may choose the place of a
    savepoint a second time.
    """
    return path.startswith((f"{directory}/chk-", f"{directory}/shared/"))
