"""Decides what of a keyed state goes up: the whole of it, or what changed, laid over older files.

A layered snapshot is a whole file and, over it, files of changed rows, the newest last. A new layer
is laid over the layers of the newest completed checkpoint, and only of that one, if this subtask
took part in it and was notified of its completion (spec S4). Layers that have grown too many or too
large are replaced by a new whole, so that neither restoring nor storing grows without end.

Uploads of two checkpoints may ask at the same time as the mailbox learns of a third; a lock keeps
them apart.
"""

from collections.abc import Callable, Mapping
from threading import Lock

import pyarrow as pa

from weir.core.barriers import Barrier
from weir.core.ids import CheckpointId
from weir.core.incremental_snapshots import Increments
from weir.core.snapshots import StateFile
from weir.ports.operators import KeyedSnapshot

MOST_LAYERS = 20
"""A whole and its layers together."""

Put = Callable[[str, pa.Buffer], StateFile]
"""Makes a shared file of that name durable."""

Pieces = Mapping[int, StateFile]
"""The files of one state, in the order they are laid."""

Kept = frozenset[str] | None
"""The files that a checkpoint may refer to; None: all."""


class Layers:
    """The layered snapshots of one subtask, state by state."""

    def __init__(self) -> None:
        self._states: dict[str, Increments[int]] = {}
        self._lock = Lock()

    # -- on the mailbox's thread

    def restored(self, state: str, checkpoint: CheckpointId, files: list[StateFile]) -> None:
        """The subtask began from these, which its job owns."""
        with self._lock:
            self._of(state).restored(checkpoint, dict(enumerate(files)))

    def completed(self, checkpoint: CheckpointId) -> None:
        with self._lock:
            for increments in self._states.values():
                increments.on_completed(checkpoint)

    def aborted(self, checkpoint: CheckpointId) -> None:
        with self._lock:
            for increments in self._states.values():
                increments.on_aborted(checkpoint)

    # -- beside the mailbox

    def referable(self, base: CheckpointId) -> list[list[StateFile]]:
        """What a checkpoint on this base would refer to, state by state."""
        with self._lock:
            bases = [increments.base(base) for increments in self._states.values()]
        return [
            [file for file in below.values() if file.path]
            for below in bases
            if is_worth_adding_to(below)
        ]

    def paths(self) -> set[str]:
        """All files that a later checkpoint may refer to."""
        with self._lock:
            known = [
                pieces
                for increments in self._states.values()
                for pieces in (*increments.taken.values(), *increments.completed.values())
            ]
        return {file.path for pieces in known for file in pieces.values()}

    def store(
        self, barrier: Barrier, piece: KeyedSnapshot, put: Put, kept: Kept = None
    ) -> list[StateFile]:
        """Put up what is needed; all files of the state, in the order they are laid."""
        with self._lock:
            below = dict(self._of(piece.name).base(barrier.base))
        is_added_to = is_worth_adding_to(below) and _is_within(below, kept)
        changes = piece.since(barrier.base) if is_added_to else None
        if changes is None:
            layers = {0: put(f"{piece.name}-whole", piece.write())}
        else:
            layers = {**below, len(below): put(f"{piece.name}-changes", changes)}
        with self._lock:
            self._of(piece.name).took(barrier.checkpoint, layers)
        return [layers[number] for number in sorted(layers)]

    def _of(self, state: str) -> Increments[int]:
        return self._states.setdefault(state, Increments[int]())


def is_worth_adding_to(layers: Pieces) -> bool:
    """Whether one more layer is better than a new whole."""
    if not layers or len(layers) >= MOST_LAYERS:
        return False
    changes = sum(file.bytes for number, file in layers.items() if number)
    return changes <= layers[0].bytes


def _is_within(layers: Pieces, kept: Kept) -> bool:
    return kept is None or all(file.path in kept for file in layers.values() if file.path)
