"""Numbers the captures of a backend by their positions in a changelog, instead of by checkpoint.

A changelog is cut at checkpoints and between them, so the changes that a segment holds begin at a
position. A backend that remembers changes since earlier captures does not mind what these are
called: this one stands before any other and names them (spec S5).
"""

from dataclasses import replace

from weir.core.changelog import START, Position
from weir.core.ids import CheckpointId
from weir.ports.keyed_state import KeyedBackend
from weir.ports.operators import Captured, RestoredState


class LoggedBackend:
    """A backend whose captures have positions; everything else is the other backend's."""

    def __init__(self, backend: KeyedBackend) -> None:
        self._backend = backend
        self._position = START
        self.cursor = backend.cursor
        self.aggregates = backend.aggregates
        self.batch_value_state = backend.batch_value_state
        self.batch_list_state = backend.batch_list_state
        self.value_state = backend.value_state
        self.list_state = backend.list_state
        self.map_state = backend.map_state
        self.timers = backend.timers
        self.drop = backend.drop
        self.prefetch = backend.prefetch
        self.seek = backend.seek
        self.settle = backend.settle
        self.keys_with = backend.keys_with
        self.expire = backend.expire
        self.needs_flush = backend.needs_flush
        self.flushed = backend.flushed
        self.close = backend.close

    def capture(self, checkpoint: CheckpointId) -> Captured:
        """At the next position, whether it is for a checkpoint or between two."""
        del checkpoint
        self._position = Position(self._position + 1)
        captured = self._backend.capture(CheckpointId(self._position))
        return replace(captured, position=self._position)

    def restore(self, restored_state: RestoredState) -> list[str]:
        return self._backend.restore(replace(restored_state, checkpoint=CheckpointId(START)))

    def completed(self, checkpoint: CheckpointId) -> None:
        """A segment may still begin before it; the changelog says how far it is truncated."""

    def truncated(self, position: Position) -> None:
        self._backend.completed(CheckpointId(position))
