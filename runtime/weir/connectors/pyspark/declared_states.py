"""Finds the states that a processor declares, before any slot runs it.

As in PySpark the driver calls ``init`` on a copy of the processor with a handle that stores
nothing, and ``close`` after it. The result are shapes, which are compared with those of a snapshot.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from weir.api.state_config import StateConfig
from weir.connectors.pyspark.handle import Handle
from weir.connectors.pyspark.initial_rows import INITIAL_ROWS, InitialRows
from weir.core.ids import Millis, OperatorId, SubtaskId
from weir.dataflow.physical import ProcessorHead
from weir.errors import JobRejected
from weir.ports.keyed_state import TIMERS, State, TimeMode
from weir.ports.operators import TaskInfo
from weir.state.backends import backends_of
from weir.state.state_schema import StateSchema

_NOWHERE = TaskInfo(SubtaskId(OperatorId(""), 0), 1, 1, 0, 0, lambda: Millis(0))


@dataclass(frozen=True, slots=True)
class DeclaredStates:
    """The states that ``init`` declared."""

    shapes: Mapping[str, StateSchema]
    deleted: frozenset[str]
    """Names of states that the processor has deleted."""


def states_declared_by(head: ProcessorHead) -> DeclaredStates:
    """The processor's own states, and those that are kept for it."""
    if not isinstance(head.processor, StatefulProcessor):
        raise JobRejected(
            f"a {type(head.processor).__name__} is no StatefulProcessor",
            "its class does not derive from pyspark's StatefulProcessor",
            "derive it from that class",
        )
    processor = copy.deepcopy(head.processor)
    keys = tuple(head.input.field(name) for name in head.keys)
    backend = backends_of(StateConfig())(_NOWHERE, keys)
    timers = backend.timers(TimeMode.NONE)
    handle = Handle(backend, timers, TimeMode.NONE)
    try:
        processor.init(handle)
        handle.seal()
        processor.close()
    except JobRejected:
        raise
    except Exception as error:  # the user's code may raise anything
        raise JobRejected(
            f"{type(processor).__name__}.init failed in the driver, where it declares its states",
            f"{type(error).__name__}: {error}",
            "open in handleInputRows what only the executors can reach",
        ) from error
    states: dict[str, State] = {**handle.states, TIMERS: timers}
    if head.initial is not None:
        states[INITIAL_ROWS] = InitialRows(backend, head.initial, head.rows_as).state
    shapes = {
        name: StateSchema(name, state.kind, keys, state.fields) for name, state in states.items()
    }
    return DeclaredStates(shapes, frozenset(handle.deleted))
