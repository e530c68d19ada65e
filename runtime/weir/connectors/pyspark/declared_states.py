"""Finds the states that a processor declares, before any slot runs it.

As in PySpark the driver calls ``init`` on a copy of the processor with a handle that stores
nothing, and ``close`` after it. The result are shapes, which are compared with those of a snapshot.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from weir.connectors.pyspark.handle import Handle
from weir.connectors.pyspark.initial_rows import INITIAL_ROWS, InitialRows
from weir.dataflow.physical import ProcessorHead
from weir.errors import JobRejected
from weir.state.keyed_snapshot import Keys, state_schema_of
from weir.state.row_index import RowIndex
from weir.state.state_schema import StateSchema
from weir.state.timers import TIMERS, TimeMode, Timers


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
    slots = RowIndex()
    timers = Timers(slots, TimeMode.NONE)
    handle = Handle(slots, timers, TimeMode.NONE)
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
    keys = Keys(tuple(head.input.field(name) for name in head.keys), max_parallelism=1)
    states = {**handle.states, TIMERS: timers}
    if head.initial is not None:
        states[INITIAL_ROWS] = InitialRows(slots, head.initial, head.rows_as).state
    shapes = {name: state_schema_of(state, keys) for name, state in states.items()}
    return DeclaredStates(shapes, frozenset(handle.deleted))
