"""Decides which files of a native snapshot go up: those that the base checkpoint does not have.

A backend's immutable files have a name that is used once in an instance, so the instance and the
name together tell what is in a file. What is uploaded for a checkpoint that was aborted is not
referred to again: its files are deleted (spec S4). Uploads of two checkpoints may ask at the same
time as the mailbox learns of a third; a lock keeps them apart.

These files have a file of their own in storage each, also where other pieces share files: they are
few and large, and shared by many checkpoints, so a merged file would soon hold dead ones.
"""

from collections.abc import Callable, Iterable
from threading import Lock

from weir.core.barriers import Barrier
from weir.core.ids import CheckpointId
from weir.core.incremental_snapshots import Increments
from weir.core.snapshots import NativeFile, StateFile
from weir.ports.operators import LocalFile, NativeInstance

Put = Callable[[LocalFile], StateFile]
"""Makes a file durable."""


class NativeFiles:
    """What one subtask has uploaded of its backend's instances and may refer to."""

    def __init__(self) -> None:
        self._files = Increments[str]()
        self._lock = Lock()

    # -- on the mailbox's thread

    def completed(self, checkpoint: CheckpointId) -> None:
        with self._lock:
            self._files.on_completed(checkpoint)

    def aborted(self, checkpoint: CheckpointId) -> None:
        with self._lock:
            self._files.on_aborted(checkpoint)

    # -- beside the mailbox

    def restored(self, checkpoint: CheckpointId, instances: Iterable[NativeInstance]) -> None:
        """The subtask began from these; whichever is opened keeps its name and its files."""
        known = {
            _identity(instance.name, native.name): native.file
            for instance in instances
            for native in instance.share.handle.files
            if native.file.shared
        }
        with self._lock:
            self._files.restored(checkpoint, known)

    def store(
        self, barrier: Barrier, instance: str, files: Iterable[LocalFile], put: Put
    ) -> tuple[NativeFile, ...]:
        """Put up what the base does not have; all files of the instance."""
        with self._lock:
            below = dict(self._files.base(barrier.base))
        stored: list[NativeFile] = []
        shared: dict[str, StateFile] = {}
        for file in files:
            identity = _identity(instance, file.name)
            there = below.get(identity) if file.is_immutable else None
            stored.append(NativeFile(file.name, there or put(file)))
            if file.is_immutable:
                shared[identity] = stored[-1].file
        with self._lock:
            self._files.took(barrier.checkpoint, shared)
        return tuple(stored)


def _identity(instance: str, name: str) -> str:
    return f"{instance}/{name}"
