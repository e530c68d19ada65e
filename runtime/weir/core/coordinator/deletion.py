"""Deletes the files that no checkpoint refers to any more, and retries when storage fails.

A deletion that fails is tried again a few times and then deferred, so that it holds nothing up; a
deferred one is tried again whenever another deletion succeeds or a checkpoint completes (spec S4).
"""

from collections.abc import Iterable
from dataclasses import replace

from weir.core.checkpoint_paths import has_unique_name, manifest_path
from weir.core.coordinator.actions import Action, DeleteFiles
from weir.core.coordinator.coordinator_state import (
    Cleanup,
    Completed,
    Coordinator,
    Deletion,
    LogClosed,
    Step,
)
from weir.core.coordinator.events import FilesDeleted, FilesNotDeleted

DELETE_TRIES = 8
"""After so many failures a deletion is deferred."""

MOST_DEFERRED = 10_000
"""Files; what is beyond that is left to the garbage collector, the oldest first."""


def delete_files(state: Coordinator, paths: Iterable[str]) -> Step:
    """Delete these files in this order, and remember it as one checkpoint being cleaned up.

    A manifest comes last: while it is there, an interrupted deletion can be taken up again.
    """
    unused = tuple(paths)
    if not unused:
        return state, ()
    operation = state.operations.count + 1
    deletions = (*state.cleanup.deletions, Deletion(operation, unused, tries=1))
    state = replace(
        state,
        operations=replace(state.operations, count=operation),
        cleanup=replace(state.cleanup, deletions=deletions),
    )
    return state, (DeleteFiles(operation, unused),)


def delete_checkpoints(state: Coordinator, subsumed: Iterable[Completed]) -> Step:
    """Delete completed checkpoints: own files, shared files of no other, and the manifest."""
    actions: tuple[Action, ...] = ()
    for completed in subsumed:
        files = tuple(completed.manifest.files())
        shared, freed = state.checkpoints.shared.release(f.path for f in files if f.shared)
        own = dict.fromkeys(file.path for file in files if not file.shared)
        manifest = manifest_path(completed.manifest.location)
        state = replace(state, checkpoints=replace(state.checkpoints, shared=shared))
        state, more = delete_files(state, (*own, *freed, manifest))
        actions += more
    return state, actions


def on_deleted(state: Coordinator, event: FilesDeleted | FilesNotDeleted) -> Step:
    """Storage that deletes again may be asked for what it refused before."""
    for deletion in state.cleanup.deletions:
        if deletion.operation != event.operation:
            continue
        others = state.cleanup.without(deletion)
        if isinstance(event, FilesDeleted):
            return retry_deferred(replace(state, cleanup=others))
        if deletion.tries < DELETE_TRIES:
            again = deletion._replace(tries=deletion.tries + 1)
            cleanup = replace(others, deletions=(*others.deletions, again))
            retry = DeleteFiles(deletion.operation, deletion.paths)
            return replace(state, cleanup=cleanup).with_retry(retry), ()
        is_last_try = isinstance(state.stage, LogClosed)
        cleanup = others if is_last_try else _defer(others, deletion, state.job.directory)
        return replace(state, cleanup=cleanup), ()
    return state, ()


def _defer(cleanup: Cleanup, deletion: Deletion, directory: str) -> Cleanup:
    """Nothing waits for this deletion any more, but it is not forgotten (spec C5, S4).

    It may come much later, so it is for files only whose names are never used again (spec C19).
    """
    paths = tuple(path for path in deletion.paths if has_unique_name(directory, path))
    deferred = (*cleanup.deferred, deletion._replace(paths=paths)) if paths else cleanup.deferred
    while sum(len(other.paths) for other in deferred) > MOST_DEFERRED:
        deferred = deferred[1:]
    return replace(cleanup, deferred=deferred)


def retry_deferred(state: Coordinator) -> Step:
    """Try the first deferred deletion once more; if that fails, it comes after the others.

    One at a time: where nothing can be deleted, that costs one request for each checkpoint.
    """
    if not state.cleanup.deferred:
        return state, ()
    first, *others = state.cleanup.deferred
    last_try = first._replace(tries=DELETE_TRIES)
    deletions = (*state.cleanup.deletions, last_try)
    state = replace(state, cleanup=Cleanup(deletions, deferred=tuple(others)))
    return state, (DeleteFiles(last_try.operation, last_try.paths),)
