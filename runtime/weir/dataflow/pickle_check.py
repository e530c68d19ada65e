"""Checks, before a job starts, that all stages of its graph can be pickled.

A stage that cannot be pickled would otherwise fail when the slots start, far from the user's code,
so each stage is pickled once here. The caller passes the pickler that later sends the graph.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import assert_never

from weir.dataflow.physical import (
    AggregateHead,
    FunctionHead,
    JobGraph,
    ProcessorHead,
    RelayHead,
    SinkHead,
    SourceHead,
    Stage,
)
from weir.dataflow.stateless_steps import MapInArrow, MapInPandas
from weir.errors import JobRejected

Dumps = Callable[[object], bytes]


def check_picklable(graph: JobGraph, dumps: Dumps) -> None:
    """Refuse a graph with a piece that cannot be pickled, naming the operator and the object."""
    for stage in graph.stages:
        for what, piece in _pieces(stage):
            error = _obstacle(piece, dumps)
            if error is not None:
                culprit = _culprit(piece, dumps)
                raise JobRejected(
                    f"operator {stage.operator!r}: {what} cannot travel to the slots, because of "
                    f"{culprit}",
                    str(error),
                    "make that object inside the function or the processor, where it is used",
                ) from error


def _pieces(stage: Stage) -> Iterator[tuple[str, object]]:
    match stage.head:
        case SourceHead(source):
            yield "its source", source
        case ProcessorHead(processor=processor):
            yield "its processor", processor
        case FunctionHead(function=function):
            yield "its function", function
        case SinkHead(sink):
            yield "its sink", sink
        case AggregateHead() | RelayHead():
            pass  # plain values, which always pickle
        case _:
            assert_never(stage.head)
    for step in stage.steps:
        yield step.label, step.function if isinstance(step, MapInArrow | MapInPandas) else step


def _culprit(piece: object, dumps: Dumps) -> str:
    """The first thing inside that cannot be pickled by itself; the piece if none is found."""
    for where, inner in _inside(piece):
        if _obstacle(inner, dumps) is not None:
            return f"{where}, a {type(inner).__name__}"
    return f"a {type(piece).__name__}"


def _inside(piece: object) -> Iterator[tuple[str, object]]:
    if inspect.isfunction(piece):
        variables = inspect.getclosurevars(piece)
        for name, value in {**variables.globals, **variables.nonlocals}.items():
            yield f"variable {name!r}", value
    for name, value in getattr(piece, "__dict__", {}).items():
        yield f"attribute {name!r}", value


def _obstacle(piece: object, dumps: Dumps) -> Exception | None:
    try:
        dumps(piece)
    except Exception as error:  # noqa: BLE001  # a pickler calls code of the user's objects
        return error
    return None
