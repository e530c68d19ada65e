"""One subtask in its slot: an operator around a task, and obedience to what the task orders.

The task decides, the operator knows rows; here the one is told what the other said. Orders are
carried out at once and in order, because between a barrier's broadcast and the capture not one row
may be processed (spec A9).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Protocol

import pyarrow as pa

from weir.core.attempt import FailureCause
from weir.core.barriers import Barrier, EndOfData, Idle, Watermark
from weir.core.coordinator import events
from weir.core.ids import AttemptId, ChannelId, CheckpointId, Millis, SubtaskId
from weir.core.job_master import SplitWanted
from weir.core.lifecycle import SubtaskFinished
from weir.core.reasons import Reason
from weir.core.scheduler import ProcessBatches
from weir.core.task import (
    Ack,
    Broadcast,
    Capture,
    Complete,
    Decline,
    Discard,
    Drain,
    Finish,
    Grant,
    PersistInFlight,
    Prepare,
    Task,
    TaskAction,
    Transmit,
)
from weir.exchange import Run
from weir.exchange.batch_sizes import BATCH_BYTES, size_of
from weir.exchange.routing import Router
from weir.ports.operators import Batch, Operator
from weir.ports.user_code_errors import describe_error, error_type
from weir.slot.event_time import FOREVER, EventTime
from weir.slot.pipeline import Pipeline
from weir.slot.snapshot_uploads import UNSAVED_LIMIT, SnapshotUploads, bare_snapshot
from weir.slot.source_operator import SourceOperator
from weir.slot.turn_budget import TURN_SECONDS, TurnBudget

OUTPUT_LIMIT = 2
"""With so many batches queued on an output there is no room in it."""

SMALL_ROWS = 1 << 16
"""Batches that together stay below this are merged before they are processed."""

LONGEST_UNFLUSHED_SECONDS = 1.0
"""However busy an operator is, what it has buffered does not wait longer."""


Act = Callable[[Task], list[TaskAction]]
"""What a task is to be told once an upload is over."""


class Home(Protocol):
    """The slot, as far as one of its subtasks is concerned."""

    def transmit(self, hosted: "SubtaskRunner", channel: ChannelId, element: object) -> None: ...
    def grant(self, hosted: "SubtaskRunner", channel: ChannelId, batches: int) -> None: ...
    def say(self, event: object) -> None: ...
    def settle(self, hosted: "SubtaskRunner", act: Act, words: str) -> None: ...
    def rest(self, hosted: "SubtaskRunner", millis: int) -> None: ...
    def unsaved_bytes(self, before: CheckpointId) -> int: ...
    def gone(self, hosted: "SubtaskRunner") -> None: ...
    def failed(
        self, hosted: "SubtaskRunner", cause: FailureCause, words: str, error: str = ""
    ) -> None: ...
    def now(self) -> Millis: ...


@dataclass(slots=True)
class Counts:
    """What a subtask has done since it was launched."""

    rows_in: int = 0
    rows_out: int = 0
    busy_seconds: float = 0.0


@dataclass(eq=False)
class SubtaskRunner:
    """A subtask, its operator and its uploads."""

    home: Home
    run: Run
    task: Task
    operator: Operator
    pipeline: Pipeline
    routers: tuple[Router, ...]
    uploads: SnapshotUploads
    time: EventTime
    is_ready: bool = False
    pace: TurnBudget = field(default_factory=TurnBudget)
    counts: Counts = field(default_factory=Counts)
    has_unflushed: bool = False
    flushed_at: float = field(default_factory=perf_counter)
    has_failed: bool = False
    withheld: dict[ChannelId, int] = field(default_factory=dict)
    """Credit that is not given yet, because what it would let in is in-flight data."""
    _problem: str = ""
    """What went wrong in the upload that the task hears of just now."""

    @property
    def subtask(self) -> SubtaskId:
        return self.task.subtask

    @property
    def attempt(self) -> AttemptId:
        return AttemptId(self.run[1])

    @property
    def has_room(self) -> bool:
        return self.task.has_room(OUTPUT_LIMIT)

    # -- rows

    def process(self, turn: ProcessBatches) -> list[object]:
        """As many rows as fit into a turn; the batches and the piece that did not fit."""
        batches = merged(turn.batches)
        began, budget, done, size = perf_counter(), self.pace.rows, 0, 0
        while batches and done < budget and (not done or self.has_room):
            batch = batches.pop(0)
            fits = batch.slice(0, budget - done)
            if fits.num_rows < batch.num_rows:
                batches.insert(0, batch.slice(fits.num_rows))
            self.emit(self.operator.process(turn.channel.edge, fits))
            done += fits.num_rows
            size += size_of(fits)
        self._worked(done, perf_counter() - began, size)
        self.counts.rows_in += done
        self.task.processed_bytes += size
        self.has_unflushed = True
        if began - self.flushed_at > LONGEST_UNFLUSHED_SECONDS:
            self.flush()
        return list(batches)

    def poll(self) -> None:
        """Read on, if there is anything to read."""
        source = self.operator
        assert isinstance(source, SourceOperator), "only sources are polled"
        if source.wants_split:
            source.ask()
            self.home.say(SplitWanted(self.attempt, self.subtask))
        began = perf_counter()
        batch = source.poll(self.pace.rows)
        if batch is None:
            if source.is_over:
                self.end_of_data()
            else:
                self._pass_time_on(source.low_watermark())
                self._pass_idleness_on(is_idle=source.is_idle)
                self.home.rest(self, max(source.rest_ms, 1))
            return
        self._pass_idleness_on(is_idle=False)
        self.emit((batch,))
        self._worked(batch.num_rows, perf_counter() - began, size_of(batch))
        self._pass_time_on(source.low_watermark())

    def _worked(self, rows: int, seconds: float, size: int) -> None:
        self.pace.took(rows, seconds, size)
        self.counts.busy_seconds += seconds

    def emit(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            for out in self.pipeline.through(batch):
                self.counts.rows_out += out.num_rows
                for router in self.routers:
                    for channel, part in router.route(out):
                        self.obey(self.task.emit(channel, part))

    def flush(self) -> None:
        """The input has run dry: nobody should wait for what is buffered."""
        self.has_unflushed = False
        self.flushed_at = perf_counter()
        self.emit(self.operator.flush())

    # -- time

    def advance(self, channel: ChannelId, marker: object) -> bool:
        """Whether it is done; otherwise timers are left to fire, and the marker comes again."""
        match marker:
            case Watermark(time):
                self.time.advance(channel, time)
            case Idle():
                self.time.rest(channel)
            case _:
                assert isinstance(marker, EndOfData)
                self.time.end(channel)
        self.operator.advance(self.time.now)
        if not self.fire():
            return False
        if self.time.is_over:
            self.end_of_data()
        else:
            self._pass_time_on(self.time.now)
            self._pass_idleness_on(is_idle=self.time.is_idle)
        return True

    def fire(self) -> bool:
        """Fire what is due, for one turn; whether nothing is left."""
        began = perf_counter()
        while self.operator.is_due():
            if perf_counter() - began > TURN_SECONDS or not self.has_room:
                return False
            self.emit(self.operator.fire())
        return True

    def _pass_time_on(self, watermark: Millis) -> None:
        if watermark > self.time.passed_on:
            self.time.passed_on = watermark
            self.time.is_passed_on_as_idle = False
            self.flush()
            self._to_all(Watermark(watermark))

    def _pass_idleness_on(self, *, is_idle: bool) -> None:
        """A watermark ends the idleness, though it is the same one as before."""
        if is_idle != self.time.is_passed_on_as_idle:
            self.time.is_passed_on_as_idle = is_idle
            self.flush()
            self._to_all(Idle() if is_idle else Watermark(self.time.passed_on))

    def end_of_data(self) -> None:
        if self.task.at_end:
            return
        self.operator.advance(FOREVER)
        while self.operator.is_due():
            self.emit(self.operator.fire())
        self.emit(self.operator.finish())
        self.announce_end()

    def announce_end(self) -> None:
        self.task.at_end = True
        self._to_all(EndOfData())
        self.home.say(events.EndOfDataReached(self.attempt, self.subtask))

    def _to_all(self, marker: object) -> None:
        for channel in self.task.outboxes:
            self.obey(self.task.emit(channel, marker))

    # -- orders of the task

    def obey(self, orders: list[TaskAction]) -> None:
        for order in orders:
            self._carry_out(order)
        for channel in [c for c in self.withheld if not self.task.is_recording(c)]:
            self.home.grant(self, channel, self.withheld.pop(channel))

    def _grant(self, channel: ChannelId, batches: int) -> None:
        """Not while the channel is recorded: what comes in then is in-flight data, and bounded.

        The barrier that ends the recording needs no credit (spec A11).
        """
        if self.task.is_recording(channel):
            self.withheld[channel] = self.withheld.get(channel, 0) + batches
        else:
            self.home.grant(self, channel, batches)

    def _carry_out(self, order: TaskAction) -> None:  # noqa: C901 - one case for each order
        match order:
            case Transmit(channel, element):
                self.home.transmit(self, channel, element)
            case Grant(channel, batches):
                self._grant(channel, batches)
            case Drain():
                self.end_of_data()
            case Prepare():
                self.flush()
            case Broadcast(barrier):
                self.obey(self.task.broadcast(barrier))
            case Capture(barrier):
                self._capture(barrier)
            case PersistInFlight(checkpoint, rows):
                self.uploads.persist_in_flight(checkpoint, rows, self._settle)
            case Ack() | Decline():
                self._report(order)
            case Discard(checkpoint):
                self.uploads.discard(checkpoint)
            case Complete(checkpoint, commits):
                self.uploads.keep_only(self.task.parts)
                if commits:
                    self.operator.completed(checkpoint)
            case Finish():
                self.home.say(SubtaskFinished(self.attempt, self.subtask))
                self.home.gone(self)

    def _capture(self, barrier: Barrier) -> None:
        """The synchronous part. If it fails the subtask is in no known state, so it goes."""
        checkpoint = barrier.checkpoint
        words = self._no_memory(checkpoint)
        if words:
            self.settled(lambda task: task.fail(checkpoint, Reason.CHECKPOINT_DECLINED), words)
            return
        began = perf_counter()
        try:
            captured = self.operator.capture(checkpoint)
        except BaseException as problem:  # noqa: BLE001 - connectors, user code, native code
            self.obey(self.task.fail(checkpoint, Reason.TASK_CHECKPOINT_FAILURE))
            words = f"its synchronous part failed: {describe_error(problem)}"
            self.home.failed(self, FailureCause.CHECKPOINT, words, error_type(problem))
            return
        sync_ms = int((perf_counter() - began) * 1000)
        bare = bare_snapshot(self.subtask, self.time.by_edge(), reached_end=self.task.at_end)
        self.uploads.start(barrier, captured, bare, sync_ms=sync_ms, settle=self._settle)
        phase = events.Phase.UPLOADING
        self.home.say(events.SubtaskProgressed(self.attempt, checkpoint, self.subtask, phase))

    def _no_memory(self, checkpoint: CheckpointId) -> str:
        """Why another snapshot cannot be held, if it cannot (spec R7)."""
        if self.uploads.is_full:
            return "storage is too slow: its uploads of earlier checkpoints have not ended"
        unsaved = self.home.unsaved_bytes(checkpoint)
        if unsaved <= UNSAVED_LIMIT:
            return ""
        return (
            f"storage is too slow: the slot holds about {unsaved} bytes of earlier checkpoints that"
            f" are not durable yet, above its budget of {UNSAVED_LIMIT}"
        )

    def _settle(self, act: Act, words: str) -> None:
        self.home.settle(self, act, words)

    def settled(self, act: Act, words: str) -> None:
        """An upload is over; if it came to nothing, the driver hears why."""
        self._problem = words
        self.obey(act(self.task))
        self._problem = ""

    def abandon(self) -> None:
        """The attempt is over: what was not acked never will be, so its files go (spec C9)."""
        for checkpoint, part in self.task.parts.items():
            if not part.persisting:
                self.uploads.discard(checkpoint)

    def _report(self, order: Ack | Decline) -> None:
        if isinstance(order, Decline):
            declined = events.SubtaskDeclined(
                self.attempt, order.checkpoint, self.subtask, order.reason, self._problem
            )
            self.home.say(declined)
            return
        own = self.uploads.timings(order.checkpoint)
        timings = replace(
            own,
            start_delay_ms=order.start_delay_ms,
            alignment_ms=order.alignment_ms,
            processed_bytes=order.processed_bytes,
        )
        self.home.say(
            events.SubtaskAcked(
                self.attempt, order.checkpoint, self.subtask, order.snapshot, timings
            )
        )


def merged(elements: list[object]) -> list[Batch]:
    """Small batches become one: each costs as much as a few hundred rows do."""
    batches = [element for element in elements if isinstance(element, pa.RecordBatch)]
    assert len(batches) == len(elements), "whatever is processed is a batch"
    if len(batches) > 1 and _are_small(batches):
        return [pa.concat_batches(batches)]
    return batches


def _are_small(batches: list[Batch]) -> bool:
    """What is left of them counts as one batch, so it must not be longer than one."""
    if sum(batch.num_rows for batch in batches) > SMALL_ROWS:
        return False
    return sum(size_of(batch) for batch in batches) <= BATCH_BYTES
