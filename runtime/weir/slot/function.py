"""Runs the user's function with its operator states: batches in, batches out.

Each call is drained before it returns, so no row is ever only inside a generator (spec A12). The
operator works on a copy of the function that it was given, so that a restarted subtask begins with
the object that the user made. A call that fails is not repeated to find the guilty row, because the
state may have changed; the batch is shown by its first row.
"""

import copy
from collections.abc import Callable, Iterable

from weir.core.ids import CheckpointId, EdgeId
from weir.dataflow.function_states import Declarations
from weir.dataflow.physical import FunctionHead, StateDeclaration
from weir.dataflow.process_functions import BroadcastProcessFunction, Made
from weir.dataflow.results import ResultMismatch, first_row, fitted
from weir.errors import JobRejected
from weir.ports.operators import Batch, Captured, RestoredState, TaskInfo
from weir.ports.user_code_errors import UserCodeFailed
from weir.slot.operator_state import BroadcastMap, RowList, state_for
from weir.slot.relay import Stateless


class FunctionOperator(Stateless):
    """One subtask of a function."""

    def __init__(self, head: FunctionHead, place: TaskInfo) -> None:
        self._head = head
        self._place = place
        self._function = copy.deepcopy(head.function)
        self._name = type(head.function).__name__
        self._states: dict[str, RowList | BroadcastMap] = {}
        self._is_open = False

    def restore(self, restored_state: RestoredState) -> None:
        """Declare, fill, open, in this order."""
        assert not restored_state.keyed, "a function has left no keyed state"
        handle = Declarations(self._name, self._make, is_connected=bool(self._head.broadcast))
        self._call("init", lambda: self._function.init(handle))
        handle.seal()
        self._expect_as_described(handle)
        for name, items in restored_state.lists.items():
            if name not in handle.deleted:
                self._state(name).load(items)
        place = self._place
        self._is_open = True
        self._call("open", lambda: self._function.open(place.subtask.index, place.parallelism))

    def process(self, edge: EdgeId, batch: Batch) -> Iterable[Batch]:
        if edge not in self._head.broadcast:
            return self._made("processBatch", self._function.processBatch, batch)
        assert isinstance(self._function, BroadcastProcessFunction), "process has checked that"
        method = self._function.processBroadcastBatch
        self._open_broadcast_states(is_open=True)
        try:
            return self._made("processBroadcastBatch", method, batch)
        finally:
            self._open_broadcast_states(is_open=False)

    def finish(self) -> Iterable[Batch]:
        return self._made("finish", self._function.finish)

    def capture(self, checkpoint: CheckpointId) -> Captured:
        del checkpoint
        most_items = self._place.max_parallelism
        return Captured(lists=tuple(s.capture(most_items) for s in self._states.values()))

    def close(self) -> None:
        if self._is_open:
            self._call("close", self._function.close)

    # -- states

    def _make(self, declared: StateDeclaration) -> RowList | BroadcastMap:
        state = self._states[declared.name] = state_for(declared)
        return state

    def _state(self, name: str) -> RowList | BroadcastMap:
        if name not in self._states:
            raise JobRejected(
                f"the checkpoint has a state {name!r} that {self._name}.init does not declare",
                "its rows have no place in the job",
                "declare it, or drop it with handle.deleteIfExists in init",
            )
        return self._states[name]

    def _expect_as_described(self, handle: Declarations) -> None:
        declared = tuple(handle.declared.values())
        if declared != self._head.states:
            raise JobRejected(
                f"{self._name}.init declares other states here than where the stream was described",
                "states must not depend on where init is called",
                "declare the same ones whenever it is called",
            )

    def _open_broadcast_states(self, *, is_open: bool) -> None:
        for state in self._states.values():
            if isinstance(state, BroadcastMap):
                state.is_open = is_open

    # -- the user's code

    def _made(self, method: str, call: Callable[..., Made], *given: Batch) -> list[Batch]:
        made: list[object] = []
        self._call(method, lambda: made.extend(call(*given) or ()), *given)
        try:
            return [fitted(item, self._head.output) for item in made]
        except ResultMismatch as misfit:
            doing = f"{self._name}.{method} ({misfit})"
            raise UserCodeFailed(doing, _shown(*given)) from misfit.__cause__

    def _call(self, method: str, call: Callable[[], None], *given: Batch) -> None:
        try:
            call()
        except Exception as error:  # the user's code may raise anything
            raise UserCodeFailed(f"{self._name}.{method}", _shown(*given)) from error


def _shown(*given: Batch) -> str:
    if not given:
        return "no row"
    (batch,) = given
    if batch.num_rows == 1:
        return first_row(batch)
    return f"a batch of {batch.num_rows} rows that begins with {first_row(batch)}"
