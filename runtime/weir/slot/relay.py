"""Operators that keep nothing: they pass rows on, and the steps behind them do the work."""

from collections.abc import Iterable

from weir.core.changelog import Position
from weir.core.ids import CheckpointId, EdgeId, Millis
from weir.ports.operators import Batch, Captured, RestoredState


class Stateless:
    """What an operator does that has neither state nor timers; one with state adds to it."""

    late_rows = 0

    def process(self, edge: EdgeId, batch: Batch) -> Iterable[Batch]:
        """Pass the rows on."""
        del edge
        return (batch,)

    def advance(self, watermark: Millis) -> None:
        """Time changes nothing."""

    def is_due(self) -> bool:
        return False

    def fire(self) -> Iterable[Batch]:
        return ()

    def next_timer(self) -> Millis | None:
        return None

    def flush(self) -> Iterable[Batch]:
        return ()

    def finish(self) -> Iterable[Batch]:
        return ()

    def capture(self, checkpoint: CheckpointId) -> Captured:
        del checkpoint
        return Captured()

    def cut(self) -> Captured:
        return Captured()

    def truncated(self, position: Position) -> None:
        """There is no keyed state."""

    def restore(self, restored_state: RestoredState) -> None:
        assert not restored_state.keyed, "a stateless operator has left no keyed state"
        assert not restored_state.lists, "a stateless operator has left no list state"

    def completed(self, checkpoint: CheckpointId) -> None:
        """Nothing waits for it."""

    def close(self) -> None:
        """Nothing is held."""
