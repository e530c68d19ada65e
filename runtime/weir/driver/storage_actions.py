"""Carries out the coordinator's storage actions on separate threads, and reports their results.

A storage action has three results: done, certainly not done, and unknown. Each is a separate event,
because the coordinator must not mistake the third for one of the others (spec C18). An unexpected
error of a store counts as unknown. Every action gets an answer, because the coordinator waits for
it.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Executor

from weir.core.coordinator import actions, events
from weir.core.job_master import Event
from weir.errors import JobRejected
from weir.storage import manifests
from weir.storage.job_log_store import JobLog
from weir.storage.stores import ObjectStore, WriteFailed

log = logging.getLogger("weir.driver")

SURELY_NOT = (WriteFailed, JobRejected)
"""The failures that are known to have left nothing behind."""

StorageAction = (
    actions.WriteManifest
    | actions.CreateEntry
    | actions.LookForSuccessor
    | actions.TruncateLog
    | actions.DeleteFiles
    | actions.PrepareLocation
)


def entry_failed(index: int, problem: Exception) -> Event:
    """The event for an entry whose creation raised an error."""
    if isinstance(problem, SURELY_NOT):
        return events.EntryNotCreated(index, str(problem))
    return events.EntryInDoubt(index)


class StorageActions:
    """Storage as the loop sees it: orders in, events out."""

    def __init__(
        self,
        store: ObjectStore,
        journal: JobLog,
        executor: Executor,
        enqueue: Callable[[Event], None],
    ) -> None:
        self._store = store
        self._journal = journal
        self._executor = executor
        self._enqueue = enqueue

    def carry_out(self, action: StorageAction) -> None:
        self._executor.submit(self._run, action)

    def _run(self, action: StorageAction) -> None:
        match action:
            case actions.WriteManifest():
                self._enqueue(self._write_manifest(action))
            case actions.CreateEntry():
                self._enqueue(self._create_entry(action))
            case actions.LookForSuccessor():
                self._enqueue(self._look(action))
            case actions.DeleteFiles():
                self._enqueue(self._delete(action))
            case actions.PrepareLocation():
                self._enqueue(self._prepare(action))
            case actions.TruncateLog(below):
                self._truncate(below)

    def _write_manifest(self, action: actions.WriteManifest) -> Event:
        checkpoint = action.manifest.checkpoint
        try:
            manifests.write(self._store, action.manifest)
        except SURELY_NOT as problem:
            return events.ManifestNotWritten(checkpoint, str(problem))
        except Exception as problem:  # noqa: BLE001 - storage may fail in any way
            log.warning("It is unknown if the manifest of %s was written: %s", checkpoint, problem)
            return events.ManifestInDoubt(checkpoint)
        return events.ManifestWritten(checkpoint)

    def _create_entry(self, action: actions.CreateEntry) -> Event:
        try:
            is_ours = self._journal.create(action.index, action.entry)
        except Exception as problem:  # noqa: BLE001 - storage may fail in any way
            failed = entry_failed(action.index, problem)
            if isinstance(failed, events.EntryInDoubt):
                index = action.index
                log.warning("It is unknown if log entry %s was created: %s", index, problem)
            return failed
        return events.EntryCreated(action.index) if is_ours else events.EntryTaken(action.index)

    def _look(self, action: actions.LookForSuccessor) -> Event:
        try:
            is_taken = self._journal.is_taken(action.index)
        except Exception as problem:  # noqa: BLE001 - storage may fail in any way
            log.warning("The job's log could not be looked at: %s", problem)
            return events.SuccessorUnknown(action.index)
        if is_taken:
            return events.EntryTaken(action.index)
        return events.NoSuccessorSeen(action.index)

    def _delete(self, action: actions.DeleteFiles) -> Event:
        try:
            self._store.delete(action.paths)
        except Exception as problem:  # noqa: BLE001 - storage may fail in any way
            log.warning("Files could not be deleted: %s", problem)
            return events.FilesNotDeleted(action.operation)
        return events.FilesDeleted(action.operation)

    def _prepare(self, action: actions.PrepareLocation) -> Event:
        try:
            self._store.make_new(action.location)
        except Exception as problem:  # noqa: BLE001 - storage may fail in any way
            return events.LocationNotPrepared(action.checkpoint, str(problem))
        return events.LocationPrepared(action.checkpoint)

    def _truncate(self, below: int) -> None:
        """No answer is needed; the next truncation removes what is left."""
        try:
            self._journal.truncate(below)
        except Exception as problem:  # noqa: BLE001 - storage may fail in any way
            log.warning("The job's log could not be truncated: %s", problem)
