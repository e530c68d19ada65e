"""A slot's side of the simulated store: each call happens at one moment, and may fail."""

from collections.abc import Sequence

from simulation.row_values import Content
from simulation.store import OK, Store
from weir.core.ids import Epoch
from weir.core.snapshots import StateFile
from weir.storage.local_copies import Owner


class StorageFailed(Exception):
    """The store refused, or did not answer."""


class Unreadable(Exception):
    """The file was deleted, because another driver has taken the job over."""


class SlotStorage:
    """Where the slots of one driver keep the files of snapshots."""

    def __init__(self, store: Store, epoch: Epoch, *, is_incremental: bool) -> None:
        self.is_incremental = is_incremental
        self._store = store
        self._epoch = epoch

    def put(
        self, path: str, content: Content, *, owner: Owner | None = None, shared: bool = False
    ) -> StateFile:
        del owner
        outcome = self._store.put_now(path, content, self._epoch)
        if outcome != OK:
            raise StorageFailed(outcome)
        return StateFile(path, content.size, shared=shared)

    def fetch(self, file: StateFile) -> Content:
        found = self._store.files.get(file.path)
        if not isinstance(found, Content):
            if self._epoch < self._store.epoch():
                raise Unreadable(file.path)
            state = "missing" if found is None else "damaged"
            self._store.world.violated(f"{file.path} is needed for a restore and is {state}")
        return found

    def delete(self, paths: Sequence[str]) -> None:
        if paths and self._store.delete_now(tuple(paths)) != OK:
            raise StorageFailed("the files were not deleted")

    def completed(self, owner: Owner, still: frozenset[str]) -> None:
        """No local copies are simulated."""
