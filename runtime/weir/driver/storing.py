"""Carries out what the coordinator wants of storage, beside the loop, and reports how it ended.

Storage has three answers, not two: done, surely not done, and nobody knows. Each is an event of its
own, because the coordinator must not take the third for either of the others (spec C18).
"""

from collections.abc import Callable
from concurrent.futures import Executor

from weir.core.coordinator import actions, events
from weir.core.job import Event
from weir.errors import WeirError
from weir.storage import manifests
from weir.storage.log import JobLog
from weir.storage.objects import InDoubt, ObjectStore

StorageAction = (
    actions.WriteManifest
    | actions.CreateEntry
    | actions.LookForSuccessor
    | actions.TruncateLog
    | actions.DeleteFiles
    | actions.PrepareLocation
)


class Storing:
    """Storage as the loop sees it: orders in, events out."""

    def __init__(
        self,
        store: ObjectStore,
        journal: JobLog,
        executor: Executor,
        tell: Callable[[Event], None],
    ) -> None:
        self._store = store
        self._journal = journal
        self._executor = executor
        self._tell = tell

    def carry_out(self, action: StorageAction) -> None:
        self._executor.submit(self._run, action)

    def _run(self, action: StorageAction) -> None:
        match action:
            case actions.WriteManifest():
                self._tell(self._write_manifest(action))
            case actions.CreateEntry():
                self._tell(self._create_entry(action))
            case actions.LookForSuccessor():
                self._tell(self._look(action))
            case actions.DeleteFiles():
                self._tell(self._delete(action))
            case actions.PrepareLocation():
                self._tell(self._prepare(action))
            case actions.TruncateLog(below):
                self._truncate(below)

    def _write_manifest(self, action: actions.WriteManifest) -> Event:
        checkpoint = action.manifest.checkpoint
        try:
            manifests.write(self._store, action.manifest)
        except InDoubt:
            return events.ManifestInDoubt(checkpoint)
        except (WeirError, OSError) as problem:
            return events.ManifestNotWritten(checkpoint, str(problem))
        return events.ManifestWritten(checkpoint)

    def _create_entry(self, action: actions.CreateEntry) -> Event:
        try:
            is_ours = self._journal.create(action.index, action.entry)
        except InDoubt:
            return events.EntryInDoubt(action.index)
        except (WeirError, OSError) as problem:
            return events.EntryNotCreated(action.index, str(problem))
        return events.EntryCreated(action.index) if is_ours else events.EntryTaken(action.index)

    def _look(self, action: actions.LookForSuccessor) -> Event:
        try:
            is_taken = self._journal.is_taken(action.index)
        except (WeirError, OSError):
            return events.SuccessorUnknown(action.index)
        if is_taken:
            return events.EntryTaken(action.index)
        return events.NoSuccessorSeen(action.index)

    def _delete(self, action: actions.DeleteFiles) -> Event:
        try:
            self._store.delete(action.paths)
        except (WeirError, OSError):
            return events.FilesNotDeleted(action.ticket)
        return events.FilesDeleted(action.ticket)

    def _prepare(self, action: actions.PrepareLocation) -> Event:
        try:
            self._store.make_new(action.location)
        except (WeirError, OSError) as problem:
            return events.LocationNotPrepared(action.checkpoint, str(problem))
        return events.LocationPrepared(action.checkpoint)

    def _truncate(self, below: int) -> None:
        """Nobody waits for it; what is left is truncated with the next."""
        try:
            self._journal.truncate(below)
        except (WeirError, OSError):
            return
