"""Remembers the files of a subtask's earlier snapshots, to upload only what changed.

The trigger names the newest completed checkpoint. A subtask builds on exactly that one, if it took
part in it and was notified of its completion; otherwise it writes a full snapshot. It never builds
on a checkpoint that was aborted or whose result it does not know (spec S4).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from weir.core.ids import CheckpointId
from weir.core.snapshots import StateFile

Piece = TypeVar("Piece", int, str)
"""What tells a file's content: the place of a layer, or the name of an immutable file."""


@dataclass(slots=True)
class Increments(Generic[Piece]):
    """What one subtask has uploaded and may refer to."""

    taken: dict[CheckpointId, Mapping[Piece, StateFile]] = field(default_factory=dict)
    completed: dict[CheckpointId, Mapping[Piece, StateFile]] = field(default_factory=dict)

    def restored(self, checkpoint: CheckpointId, pieces: Mapping[Piece, StateFile]) -> None:
        """The subtask began from this checkpoint, which its job owns."""
        self.completed[checkpoint] = dict(pieces)

    def base(self, named: CheckpointId) -> Mapping[Piece, StateFile]:
        """What an increment on that checkpoint need not upload again."""
        return self.completed.get(named, {})

    def took(self, checkpoint: CheckpointId, pieces: Mapping[Piece, StateFile]) -> None:
        self.taken[checkpoint] = dict(pieces)

    def on_completed(self, checkpoint: CheckpointId) -> None:
        """Older ones can be no base any more."""
        if checkpoint in self.taken:
            self.completed[checkpoint] = self.taken[checkpoint]
            for pieces in (self.taken, self.completed):
                for older in [c for c in pieces if c < checkpoint]:
                    del pieces[older]

    def on_aborted(self, checkpoint: CheckpointId) -> None:
        self.taken.pop(checkpoint, None)
