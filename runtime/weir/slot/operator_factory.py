"""Chooses the operator of a stage by the stage's head."""

from typing import assert_never

from weir.connectors.pyspark.processor import ProcessorOperator
from weir.dataflow.physical import (
    AggregateHead,
    FunctionHead,
    ProcessorHead,
    RelayHead,
    SinkHead,
    SourceHead,
    Stage,
)
from weir.ports.keyed_state import BackendFactory
from weir.ports.operators import Operator, TaskInfo
from weir.slot.aggregate import AggregateOperator
from weir.slot.function import FunctionOperator
from weir.slot.relay import Stateless
from weir.slot.sink_operator import SinkOperator
from weir.slot.source_operator import SourceOperator


def operator_for(stage: Stage, place: TaskInfo, backends: BackendFactory) -> Operator:
    match stage.head:
        case SourceHead():
            return SourceOperator(stage.head)
        case AggregateHead():
            return AggregateOperator(stage.head, place, backends)
        case ProcessorHead():
            return ProcessorOperator(stage.head, place, backends)
        case FunctionHead():
            return FunctionOperator(stage.head, place)
        case SinkHead(sink):
            return SinkOperator(sink, place)
        case RelayHead():
            return Stateless()
        case _:
            assert_never(stage.head)
