"""Chooses the operator that does what a stage's head says."""

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
from weir.ports.operators import Operator, TaskInfo
from weir.slot.aggregate import AggregateOperator
from weir.slot.function import FunctionOperator
from weir.slot.reading import SourceOperator
from weir.slot.relay import Stateless
from weir.slot.writing import SinkOperator


def operator_for(stage: Stage, place: TaskInfo) -> Operator:
    match stage.head:
        case SourceHead():
            return SourceOperator(stage.head)
        case AggregateHead():
            return AggregateOperator(stage.head, place)
        case ProcessorHead():
            return ProcessorOperator(stage.head, place)
        case FunctionHead():
            return FunctionOperator(stage.head, place)
        case SinkHead(sink):
            return SinkOperator(sink, place)
        case RelayHead():
            return Stateless()
        case _:
            assert_never(stage.head)
