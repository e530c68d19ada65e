"""The sink's part of a subtask: rows go into a transaction that is sealed at each barrier.

A sealed transaction stays in the subtask's state until a committing checkpoint at or behind it is
complete. So an aborted checkpoint loses nothing: what it had sealed travels on and is committed
with the next one (spec C9, R5).
"""

from collections.abc import Iterable
from threading import Lock

from weir.core.ids import CheckpointId, EdgeId
from weir.core.snapshots import Transaction
from weir.ports.operators import Batch, Captured, RestoredState, TaskInfo
from weir.ports.sinks import SealedTransaction, Sink
from weir.slot.relay import Stateless


class Held:
    """A sealed transaction that waits for its commit. It is made durable once."""

    def __init__(self, transaction: Transaction, sealed: SealedTransaction) -> None:
        self.transaction = transaction
        self._sealed = sealed
        self._lock = Lock()
        self._is_durable = False

    def make_durable(self) -> None:
        with self._lock:
            if not self._is_durable:
                self._sealed.make_durable()
                self._is_durable = True


class SinkOperator(Stateless):
    """Writes all it is given."""

    def __init__(self, sink: Sink, place: TaskInfo) -> None:
        self._place = place
        self._writer = sink.open(place)
        self._waiting: list[Held] = []

    def process(self, edge: EdgeId, batch: Batch) -> Iterable[Batch]:
        del edge
        self._writer.write(batch)
        return ()

    def capture(self, checkpoint: CheckpointId) -> Captured:
        """The checkpoint holds all that is sealed and not yet committed."""
        sealed = self._writer.seal()
        if sealed is not None:
            transaction = Transaction(self._place.subtask.operator, checkpoint, sealed.name)
            self._waiting.append(Held(transaction, sealed))
        return Captured(
            transactions=tuple(held.transaction for held in self._waiting),
            before_ack=tuple(held.make_durable for held in self._waiting),
        )

    def restore(self, restored_state: RestoredState) -> None:
        """The driver commits or aborts what an earlier attempt has sealed."""
        assert not restored_state.keyed, "a sink has left no keyed state"

    def completed(self, checkpoint: CheckpointId) -> None:
        self._waiting = [held for held in self._waiting if held.transaction.checkpoint > checkpoint]

    def close(self) -> None:
        self._writer.close()
