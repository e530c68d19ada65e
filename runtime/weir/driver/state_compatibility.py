"""Checks that the keyed state to restore is compatible with what the operators declare (spec S12).

This happens before the driver takes its epoch, so a job whose state does not fit has changed
nothing: no slot has begun, and the driver before it could still go on. Only the beginnings of files
are read, several at a time, however large the state is. All mismatches are reported together.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pyarrow as pa

from weir.connectors.pyspark.declared_states import states_declared_by
from weir.core.ids import OperatorId
from weir.core.snapshots import Manifest, StateFile
from weir.dataflow.physical import AggregateHead, JobGraph, ProcessorHead
from weir.errors import JobRejected, reject_all
from weir.state.memory.aggregate_table import AggregateTable
from weir.state.schema_evolution import incompatibilities
from weir.state.state_schema import AGGREGATES, StateSchema, distinct_schemas, state_schema_of_file
from weir.storage import state_files
from weir.storage.object_store import ObjectStore

READERS = 16


def check_state_compatibility(
    store: ObjectStore,
    manifest: Manifest,
    graph: JobGraph,
    *,
    allow_non_restored: bool,
    backend: str,
) -> None:
    """Refuse a restore that would fail or lose state, with every reason there is."""
    _check_backend(manifest, backend)
    found: list[JobRejected] = []
    for stage in graph.stages:
        match stage.head:
            case ProcessorHead():
                shapes = _shapes(store, manifest, stage.operator)
                problems = _of_processor(stage.head, shapes, drops=allow_non_restored)
            case AggregateHead():
                shapes = _shapes(store, manifest, stage.operator)
                problems = _of_aggregation(stage.head, shapes)
            case _:
                continue
        subject = f"{manifest.location}, operator {stage.operator!r}"
        found += [problem.prefixed(subject) for problem in problems]
    if found:
        distinct = {problem.parts: problem for problem in found}
        raise reject_all(f"the state at {manifest.location}", list(distinct.values()))


def _check_backend(manifest: Manifest, backend: str) -> None:
    """Files of a backend's own format are opened by that backend only."""
    kept = {native.backend for snapshot in manifest.snapshots for native in snapshot.native}
    if others := sorted(kept - {backend}):
        raise JobRejected(
            f"the state at {manifest.location} cannot be restored by the backend {backend}",
            f"it is an incremental checkpoint in the files of {', '.join(others)}",
            f"take a savepoint with state.backend {others[0]}, and restore that",
        )


def _shapes(store: ObjectStore, manifest: Manifest, operator: OperatorId) -> list[StateSchema]:
    files = [
        handle.file
        for snapshot in manifest.snapshots
        if snapshot.subtask.operator == operator
        for handle in snapshot.keyed
    ]
    files += [
        state.schema
        for snapshot in manifest.snapshots
        if snapshot.subtask.operator == operator
        for native in snapshot.native
        for state in native.states
    ]
    if not files:
        return []
    with ThreadPoolExecutor(min(READERS, len(files))) as readers:
        return distinct_schemas(readers.map(partial(_shape, store), files))


def _shape(store: ObjectStore, file: StateFile) -> StateSchema:
    return state_schema_of_file(partial(state_files.read_start, store, file))


def _of_processor(
    head: ProcessorHead, shapes: list[StateSchema], *, drops: bool
) -> Iterator[JobRejected]:
    if not shapes:
        return
    declared = states_declared_by(head)
    name = type(head.processor).__name__
    for stored in shapes:
        if stored.name in declared.shapes:
            for problem in incompatibilities(stored, declared.shapes[stored.name]):
                yield JobRejected(
                    f"state {stored.name!r} does not fit",
                    problem,
                    "declare it as it was, or give the new one another name",
                )
        elif not drops and stored.name not in declared.deleted:
            yield JobRejected(
                f"state {stored.name!r} would be lost",
                f"{name}.init does not declare it any more",
                f"declare it, drop it with handle.deleteIfExists({stored.name!r}) in init, or allow"
                " non-restored state and lose it",
            )


def _of_aggregation(head: AggregateHead, shapes: list[StateSchema]) -> Iterator[JobRejected]:
    table = AggregateTable(head.keys, head.aggregates, head.input)
    for stored in shapes:
        if stored.kind != AGGREGATES:
            yield JobRejected(
                f"state {stored.name!r} does not fit",
                "a processor kept it, and the operator is an aggregation now",
                "give the aggregation a new uid",
            )
            continue
        try:
            table.check_keys(stored.keys)
            table.places(pa.schema((*stored.keys, *stored.fields)))
        except JobRejected as refused:
            yield refused
