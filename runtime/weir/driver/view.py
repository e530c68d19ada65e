"""A driver as its API sees it: copies of what it knows, and orders put into its queue.

Nothing here waits for the loop, and the loop waits for nothing here. A page made of several figures
may catch them at slightly different moments.
"""

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Protocol, assert_never
from uuid import uuid4

from weir.api.checkpointing_config import Retention
from weir.api.config import JobConfig
from weir.api.report import MOST_REQUESTS, JobReport
from weir.core.coordinator.actions import RequestFailed, RequestSucceeded
from weir.core.ids import OperatorId, RequestId, SlotId, SubtaskId
from weir.core.lifecycle import JobStatus
from weir.core.policy import Policy
from weir.core.snapshots import CheckpointKind
from weir.dataflow.physical import JobGraph
from weir.driver.job_report import report_of
from weir.driver.statistics import CheckpointRecord, Fate, Statistics, SubtaskRecord
from weir.errors import JobRejected
from weir.rest import checkpoint_statistics as shown
from weir.rest import job_overview as pages
from weir.rest.commands import (
    Cancel,
    Command,
    RequestState,
    RequestStatus,
    Stop,
    TakeCheckpoint,
    TakeSavepoint,
)
from weir.wire.authenticated_sockets import Address
from weir.wire.control_messages import Heartbeat, Registered, SubtaskMetrics

NO_TIME = 1 << 62
"""A watermark this far away, in either direction, is no point in time."""

Outcome = RequestSucceeded | RequestFailed


class Described(Protocol):
    """What was submitted, as far as people see it."""

    @property
    def name(self) -> str: ...
    @property
    def graph(self) -> JobGraph: ...
    @property
    def config(self) -> JobConfig: ...
    @property
    def directory(self) -> str: ...
    @property
    def attempt(self) -> int | None: ...
    @property
    def policy(self) -> Policy: ...


class KnownSlots(Protocol):
    """The slots, with the last heartbeat of each."""

    def addresses(self) -> dict[SlotId, Address]: ...

    def heartbeats(self) -> dict[SlotId, tuple[Registered, Heartbeat]]: ...


class RunningDriver(Protocol):
    """What a view needs of a driver."""

    @property
    def statistics(self) -> Statistics: ...
    @property
    def slots(self) -> KnownSlots: ...
    @property
    def why(self) -> str: ...

    def ask(self, kind: CheckpointKind, location: str = "", key: str = "") -> RequestId: ...

    def outcome_of(self, request: str) -> Future[Outcome] | None: ...

    def cancel(self) -> None: ...


class DriverView:
    """The ``JobView`` of one driver."""

    def __init__(self, submission: Described, driver: RunningDriver) -> None:
        self._submission = submission
        self._driver = driver
        self._ordered: dict[str, Command] = {}
        self._lock = threading.Lock()

    # -- pages

    def overview(self) -> pages.Overview:
        statistics, submission = self._driver.statistics, self._submission
        status = statistics.status
        return pages.Overview(
            name=submission.name,
            status=status.name,
            is_over=status.is_terminal,
            parallelism=submission.config.parallelism,
            directory=submission.directory,
            slots=pages.Slots(
                registered=len(self._driver.slots.addresses()), missing=statistics.missing_slots
            ),
            restarts=statistics.counts.restarts,
            last_failure=statistics.last_failure,
        )

    def graph(self) -> pages.Graph:
        graph = self._submission.graph
        gauges = self._gauges()
        return pages.Graph(
            operators=tuple(
                pages.Operator(
                    id=operator.id,
                    name=graph.by_id[operator.id].name or operator.id,
                    parallelism=operator.parallelism,
                    max_parallelism=operator.max_parallelism,
                    steps=tuple(step.label for step in graph.by_id[operator.id].steps),
                    subtasks=_subtasks(operator.id, operator.parallelism, gauges),
                )
                for operator in graph.topology.operators
            ),
            edges=tuple(
                pages.Edge(id=e.id, source=e.source, target=e.target, kind=e.kind.value)
                for e in graph.topology.edges
            ),
        )

    def _gauges(self) -> dict[SubtaskId, tuple[SlotId, SubtaskMetrics]]:
        return {
            gauge.subtask: (slot, gauge)
            for slot, (_, heartbeat) in self._driver.slots.heartbeats().items()
            for gauge in heartbeat.gauges
        }

    def settings(self) -> shown.CheckpointingSettings:
        config = self._submission.config
        given = config.checkpointing
        return shown.CheckpointingSettings(
            mode=given.mode.value.lower(),
            interval=given.interval,
            timeout=given.timeout,
            min_pause=given.min_pause,
            max_concurrent=given.max_concurrent,
            externalization=shown.Externalization(
                enabled=given.retention is not Retention.NEVER_RETAIN_AFTER_TERMINATION,
                delete_on_cancellation=given.retention is not Retention.RETAIN_ON_CANCELLATION,
            ),
            state_backend=config.state.backend.value,
            checkpoint_storage=self._submission.directory,
            unaligned_checkpoints=given.unaligned,
            tolerable_failed_checkpoints=given.tolerable_failures,
            aligned_checkpoint_timeout=given.aligned_timeout,
            checkpoints_after_tasks_finish=given.after_tasks_finish,
        )

    def checkpoints(self) -> shown.CheckpointStatistics:
        statistics = self._driver.statistics
        history = [self._checkpoint(record) for record in statistics.history()]
        in_progress = sum(c.status is shown.CheckpointStatus.IN_PROGRESS for c in history)
        counts = statistics.counts
        return shown.CheckpointStatistics(
            counts=shown.Counts(
                restored=counts.restored,
                total=counts.completed + counts.failed + in_progress,
                in_progress=in_progress,
                completed=counts.completed,
                failed=counts.failed,
            ),
            summary=_summary(history),
            latest=_latest(history, statistics),
            history=tuple(history),
        )

    def checkpoint(self, checkpoint: int) -> shown.CheckpointDetails | None:
        record = self._driver.statistics.find(checkpoint)
        if record is None:
            return None
        operators = self._submission.graph.topology.operators
        tasks = {str(o.id): _share(record, _parts(record, o.id), o.parallelism) for o in operators}
        return shown.CheckpointDetails(**self._checkpoint(record).model_dump(), tasks=tasks)

    def task(self, checkpoint: int, operator: str) -> shown.TaskDetails | None:
        record = self._driver.statistics.find(checkpoint)
        known = self._submission.graph.topology.by_id.get(OperatorId(operator))
        if record is None or known is None:
            return None
        parts = _parts(record, known.id)
        subtasks = [_part(record, index, part) for index, part in sorted(parts.items())]
        return shown.TaskDetails(
            **_share(record, parts, known.parallelism).model_dump(),
            id=record.checkpoint,
            summary=_task_summary(subtasks),
            subtasks=tuple(subtasks),
        )

    def _checkpoint(self, record: CheckpointRecord) -> shown.Checkpoint:
        parts = dict(enumerate(record.subtasks.values()))
        failed = record.fate is Fate.FAILED
        return shown.Checkpoint(
            **_share(record, parts, len(self._submission.graph.topology.subtasks)).model_dump(),
            id=record.checkpoint,
            is_savepoint=record.kind.is_savepoint,
            checkpoint_type=record.kind.name,
            trigger_timestamp=record.triggered_at,
            external_path=record.location or None,
            failure_timestamp=record.ended_at if failed else None,
            failure_message=record.reason if failed else None,
        )

    def report(self) -> JobReport:
        with self._lock:
            newest = list(self._ordered)[-MOST_REQUESTS:]
        requests = [state for state in map(self.request, newest) if state is not None]
        return report_of(self._submission, self._driver, requests)

    # -- orders

    def order(self, order: Command, key: str) -> str:
        with self._lock:
            self._forget_answered()
            known = self._ordered.get(key)
            if known is not None:
                return self._same(known, order, key)
            self._refuse_if_over()
            request = key or uuid4().hex
            self._ordered[request] = order
            self._give(order, request)
        return request

    def _forget_answered(self) -> None:
        """What the driver has forgotten was answered long ago."""
        self._ordered = {
            request: order
            for request, order in self._ordered.items()
            if isinstance(order, Cancel) or self._driver.outcome_of(request) is not None
        }

    def _same(self, known: Command, order: Command, key: str) -> str:
        if known == order:
            return key
        raise JobRejected(
            f"the idempotency key {key} cannot be used for this request",
            f"it belongs to another request of job {self._submission.name}",
            "use a new key for a new request",
        )

    def _refuse_if_over(self) -> None:
        status = self._driver.statistics.status
        if status.is_terminal:
            raise JobRejected(
                f"job {self._submission.name} accepts no requests",
                f"it is {status}",
                "start it again",
            )

    def _give(self, order: Command, request: str) -> None:
        match order:
            case TakeCheckpoint():
                self._driver.ask(CheckpointKind.CHECKPOINT, key=request)
            case TakeSavepoint(directory):
                self._driver.ask(CheckpointKind.SAVEPOINT, self._new_below(directory), request)
            case Stop(directory, drain):
                kinds = CheckpointKind.SAVEPOINT_SUSPEND, CheckpointKind.SAVEPOINT_TERMINATE
                self._driver.ask(kinds[drain], self._new_below(directory), request)
            case Cancel():
                self._driver.cancel()
            case _:
                assert_never(order)

    def _new_below(self, directory: str) -> str:
        """A savepoint's directory must be new; empty leaves the choice to the coordinator."""
        place = directory or self._submission.config.checkpointing.savepoint_dir or ""
        return f"{place.rstrip('/')}/savepoint-{uuid4().hex[:12]}" if place else ""

    def request(self, request: str) -> RequestState | None:
        if isinstance(self._ordered.get(request), Cancel):
            return _cancelled(request, self._driver.statistics.status)
        future = self._driver.outcome_of(request)
        if future is None:
            return None
        if not future.done():
            return RequestState(id=request, status=RequestStatus.IN_PROGRESS)
        return _ended(request, future.result())


def _subtasks(
    operator: OperatorId,
    parallelism: int,
    gauges: Mapping[SubtaskId, tuple[SlotId, SubtaskMetrics]],
) -> tuple[pages.Subtask, ...]:
    known = [gauges.get(SubtaskId(operator, index)) for index in range(parallelism)]
    return tuple(_subtask(*found) for found in known if found is not None)


def _subtask(slot: SlotId, gauge: SubtaskMetrics) -> pages.Subtask:
    return pages.Subtask(
        index=gauge.subtask.index,
        slot=slot,
        rows_in=gauge.rows_in,
        rows_out=gauge.rows_out,
        busy_ms=gauge.busy_ms,
        is_back_pressured=gauge.back_pressured,
        watermark=gauge.watermark if abs(gauge.watermark) < NO_TIME else None,
        late_rows=gauge.late_rows,
    )


def _parts(record: CheckpointRecord, operator: OperatorId) -> dict[int, SubtaskRecord]:
    """An operator's acknowledged subtasks."""
    return {s.index: part for s, part in record.subtasks.items() if s.operator == operator}


def _share(record: CheckpointRecord, parts: Mapping[int, SubtaskRecord], width: int) -> shown.Share:
    """Subtasks without an ack for a completed checkpoint had finished before it."""
    is_complete = record.fate is Fate.COMPLETED
    latest = max((part.acked_at for part in parts.values()), default=None)
    until = record.ended_at if record.fate is Fate.FAILED else latest
    written = sum(part.timings.written_bytes for part in parts.values())
    return shown.Share(
        status=shown.CheckpointStatus(record.fate.value),
        latest_ack_timestamp=latest,
        checkpointed_size=written,
        state_size=sum(part.bytes for part in parts.values()),
        end_to_end_duration=max(until - record.triggered_at, 0) if until is not None else 0,
        processed_data=sum(part.timings.processed_bytes for part in parts.values()),
        persisted_data=sum(part.in_flight_bytes for part in parts.values()),
        num_subtasks=len(parts) if is_complete else width,
        num_acknowledged_subtasks=len(parts),
    )


def _part(record: CheckpointRecord, index: int, part: SubtaskRecord) -> shown.SubtaskPart:
    timings = part.timings
    return shown.SubtaskPart(
        index=index,
        ack_timestamp=part.acked_at,
        end_to_end_duration=max(part.acked_at - record.triggered_at, 0),
        checkpointed_size=part.timings.written_bytes,
        state_size=part.bytes,
        checkpoint=shown.Phases(sync=timings.sync_ms, async_=timings.async_ms),
        alignment=shown.Alignment(
            processed=timings.processed_bytes,
            persisted=part.in_flight_bytes,
            duration=timings.alignment_ms,
        ),
        start_delay=timings.start_delay_ms,
    )


def _task_summary(parts: list[shown.SubtaskPart]) -> shown.TaskSummary:
    return shown.TaskSummary(
        checkpointed_size=shown.Spread.of(p.checkpointed_size for p in parts),
        state_size=shown.Spread.of(p.state_size for p in parts),
        end_to_end_duration=shown.Spread.of(p.end_to_end_duration for p in parts),
        checkpoint_duration=shown.PhaseSpreads(
            sync=shown.Spread.of(p.checkpoint.sync for p in parts),
            async_=shown.Spread.of(p.checkpoint.async_ for p in parts),
        ),
        alignment=shown.AlignmentSpread(
            processed=shown.Spread.of(p.alignment.processed for p in parts),
            persisted=shown.Spread.of(p.alignment.persisted for p in parts),
            duration=shown.Spread.of(p.alignment.duration for p in parts),
        ),
        start_delay=shown.Spread.of(p.start_delay for p in parts),
    )


def _summary(history: list[shown.Checkpoint]) -> shown.Summary:
    done = [c for c in history if c.status is shown.CheckpointStatus.COMPLETED]
    return shown.Summary(
        checkpointed_size=shown.Spread.of(c.checkpointed_size for c in done),
        state_size=shown.Spread.of(c.state_size for c in done),
        end_to_end_duration=shown.Spread.of(c.end_to_end_duration for c in done),
        processed_data=shown.Spread.of(c.processed_data for c in done),
        persisted_data=shown.Spread.of(c.persisted_data for c in done),
    )


def _latest(history: list[shown.Checkpoint], statistics: Statistics) -> shown.Latest:
    done = [c for c in history if c.status is shown.CheckpointStatus.COMPLETED]
    failed = [c for c in history if c.status is shown.CheckpointStatus.FAILED]
    manifest = statistics.restored
    restored = None
    if manifest is not None:
        restored = shown.Restored(
            id=manifest.checkpoint,
            restore_timestamp=statistics.restored_at,
            is_savepoint=manifest.kind.is_savepoint,
            external_path=manifest.location,
        )
    return shown.Latest(
        completed=next((c for c in done if not c.is_savepoint), None),
        savepoint=next((c for c in done if c.is_savepoint), None),
        failed=next(iter(failed), None),
        restored=restored,
    )


def _cancelled(request: str, status: JobStatus) -> RequestState:
    if not status.is_terminal:
        return RequestState(id=request, status=RequestStatus.IN_PROGRESS)
    if status is JobStatus.CANCELED:
        return RequestState(id=request, status=RequestStatus.COMPLETED)
    return RequestState(
        id=request,
        status=RequestStatus.FAILED,
        reason=status.name,
        message=f"the job was {status} before it could be cancelled",
    )


def _ended(request: str, outcome: Outcome) -> RequestState:
    match outcome:
        case RequestSucceeded(checkpoint, location):
            return RequestState(
                id=request,
                status=RequestStatus.COMPLETED,
                location=location,
                checkpoint=checkpoint,
            )
        case RequestFailed(reason, message):
            return RequestState(
                id=request, status=RequestStatus.FAILED, reason=reason.name, message=message
            )
        case _:
            assert_never(outcome)
