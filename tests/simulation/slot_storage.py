"""A slot's side of the simulated store: each call happens at one moment, and may fail."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from simulation.row_values import Content
from simulation.scenario import Scenario
from simulation.store import OK, Store
from weir.core.ids import Epoch
from weir.core.snapshots import StateFile
from weir.slot.file_storage import Segment
from weir.storage.local_copies import Owner

LOGGED = re.compile(r"-p\d+-e\d+-a\d+$")
"""The names of files that go up between checkpoints."""


class StorageFailed(Exception):
    """The store refused, or did not answer."""


class Unreadable(Exception):
    """The file was deleted, because another driver has taken the job over."""


@dataclass(frozen=True)
class MergedContent:
    """A file that holds the pieces of several subtasks, each at its offset."""

    pieces: tuple[tuple[int, Content], ...]

    @property
    def size(self) -> int:
        return sum(content.size for _, content in self.pieces)


class SlotStorage:
    """Where the slots of one driver keep the files of snapshots."""

    def __init__(self, store: Store, epoch: Epoch, scenario: Scenario) -> None:
        self.is_incremental = scenario.policy.incremental
        self.merging = scenario.merging
        self.changelog = scenario.changelog
        self._store = store
        self._epoch = epoch

    def put(
        self, path: str, content: Content, *, owner: Owner | None = None, shared: bool = False
    ) -> StateFile:
        del owner
        self._write(path, content)
        if LOGGED.search(path):
            self._store.world.saw("logged between checkpoints")
        return self.described(path, content, shared=shared)

    def described(self, path: str, content: Content, *, shared: bool = False) -> StateFile:
        return StateFile(path, content.size, shared=shared)

    def put_merged(self, path: str, segments: Sequence[Segment]) -> None:
        self._store.world.saw("merged file")
        end, pieces = 0, []
        for file, content, _ in segments:
            if file.offset != end:
                self._store.world.violated(f"{path} has a piece at {file.offset}, and not at {end}")
            pieces.append((end, content))
            end += content.size
        self._write(path, MergedContent(tuple(pieces)))

    def _write(self, path: str, content: Content | MergedContent) -> None:
        outcome = self._store.put_now(path, content, self._epoch)
        if outcome != OK:
            raise StorageFailed(outcome)

    def size(self, path: str) -> int:
        found = self._found(path)
        return found.size

    def fetch(self, file: StateFile) -> Content:
        found = self._found(file.path)
        if isinstance(found, Content):
            return found
        self._store.world.saw("restored from a merged file")
        pieces = dict(found.pieces)
        if file.offset not in pieces or pieces[file.offset].size != file.bytes:
            self._store.world.violated(f"{file.segment} is not a piece of its file")
        return pieces[file.offset]

    def _found(self, path: str) -> Content | MergedContent:
        found = self._store.files.get(path)
        if not isinstance(found, Content | MergedContent):
            if self._epoch < self._store.epoch():
                raise Unreadable(path)
            state = "missing" if found is None else "damaged"
            self._store.world.violated(f"{path} is needed for a restore and is {state}")
        return found

    def delete(self, paths: Sequence[str]) -> None:
        if paths and self._store.delete_now(tuple(paths)) != OK:
            raise StorageFailed("the files were not deleted")

    def completed(self, owner: Owner, still: frozenset[str]) -> None:
        """No local copies are simulated."""
