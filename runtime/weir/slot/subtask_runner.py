"""Runs one subtask: an operator around a task, whose orders become effects.

Each call takes what happened (a turn, mail, an arrival) and returns the effects of it as values,
which the mailbox performs in their order. Orders of the task are carried out at once and in order,
because between a barrier's broadcast and the capture not one row may be processed (spec A9). A call
lasts one turn, and what a turn emits is bounded by room and credit, so its effects are too.

User code and connectors may raise anything: that is the last effect, and fails this subtask alone.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import perf_counter

from weir.core.attempt import FailureCause
from weir.core.barriers import Barrier, EndOfData, Idle, Watermark
from weir.core.coordinator import events
from weir.core.coordinator.events import Phase
from weir.core.enumerator import AssignSplit, NoMoreSplits, NoSplitsYet
from weir.core.ids import NO_CHECKPOINT, AttemptId, ChannelId, CheckpointId, Millis, SubtaskId
from weir.core.job_master import SplitWanted
from weir.core.lifecycle import SubtaskFinished, SubtaskRunning
from weir.core.reasons import Reason
from weir.core.scheduler import ProcessBatches
from weir.core.snapshots import SubtaskSnapshot
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
from weir.errors import WeirError
from weir.exchange import Run
from weir.ports.operators import Batch, Operator, RestoredState
from weir.ports.user_code_errors import UserCodeFailed, describe_error, error_type, is_of_user_code
from weir.slot.buffer_timeout import BufferTimeout
from weir.slot.demand import Demand
from weir.slot.effects import (
    DiscardUpload,
    Effect,
    FailSubtask,
    Report,
    ResumePolling,
    ScheduleWakeup,
    StartInFlightUpload,
    StartUpload,
    SubtaskDone,
)
from weir.slot.event_time import FOREVER, EventTime
from weir.slot.log_cuts import LogCuts
from weir.slot.pipeline import Pipeline, RowRouter
from weir.slot.row_format import RowFormat
from weir.slot.snapshot_uploads import InFlightUploaded, SnapshotUploaded, UploadFailed
from weir.slot.snapshot_writer import SnapshotWriter
from weir.slot.source_operator import SourceOperator
from weir.slot.subtask_counts import SubtaskCounts, timings_of
from weir.slot.turn_budget import TURN_SECONDS, TurnBudget
from weir.wire.control_messages import CheckpointAborted, CheckpointCompleted

log = logging.getLogger("weir.slot")

OUTPUT_LIMIT = 2
"""With so many batches queued on an output there is no room in it."""


@dataclass(eq=False)
class SubtaskRunner:
    """A subtask, its operator and its uploads."""

    run: Run
    task: Task
    operator: Operator
    pipeline: Pipeline
    routers: tuple[RowRouter, ...]
    writer: SnapshotWriter
    format: RowFormat
    time: EventTime
    is_ready: bool = False
    """Restored, and neither failed nor closed."""
    output_limit: int = OUTPUT_LIMIT
    timer: Callable[[], float] = perf_counter
    budget: TurnBudget = field(default_factory=TurnBudget)
    counts: SubtaskCounts = field(default_factory=SubtaskCounts)
    buffer: BufferTimeout = field(default_factory=BufferTimeout)
    has_failed: bool = False
    withheld: dict[ChannelId, int] = field(default_factory=dict)
    """Credit that is not granted yet, because what it would let in is in-flight data."""
    _newest_aligning: CheckpointId = NO_CHECKPOINT
    _timings: dict[CheckpointId, events.Timings] = field(default_factory=dict)
    """Of uploads that have ended, until their checkpoint is acked."""
    _effects: list[Effect] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.uploads = self.writer.uploads
        self.demand = Demand(self.counts)
        self.cuts = LogCuts(self.operator, self.uploads, self.task)

    @property
    def subtask(self) -> SubtaskId:
        return self.task.subtask

    @property
    def attempt(self) -> AttemptId:
        return AttemptId(self.run[1])

    @property
    def has_room(self) -> bool:
        return self.task.has_room(self.output_limit)

    @property
    def may_emit(self) -> bool:
        """Whether rows may leave outside a turn."""
        task = self.task
        return self.is_ready and not task.holding and not task.at_end and self.has_room

    def _effects_of(self, act: Callable[[], object]) -> list[Effect]:
        """The effects of one call, with the failure of whatever was raised as the last."""
        try:
            act()
        except UserCodeFailed as failure:
            self._fail(FailureCause.USER_CODE, str(failure), failure)
        except (AssertionError, KeyboardInterrupt):
            raise
        except BaseException as problem:  # a panic of native code and sys.exit too
            if not isinstance(problem, WeirError):  # whose message is complete
                log.warning("%s failed", self.subtask, exc_info=True)
            cause = FailureCause.USER_CODE if is_of_user_code(problem) else FailureCause.OPERATOR
            self._fail(cause, describe_error(problem), problem)
        effects, self._effects = self._effects, []
        return effects

    def _fail(self, cause: FailureCause, reason: str, problem: BaseException) -> None:
        self._effects.append(FailSubtask(cause, reason, error_type(problem)))

    # -- begin and end

    def restore(self, state: RestoredState) -> list[Effect]:
        return self._effects_of(lambda: self._restore(state))

    def _restore(self, state: RestoredState) -> None:
        self.operator.restore(state)
        self.is_ready = True
        self._effects.append(Report(SubtaskRunning(self.attempt, self.subtask)))

    def finish_again(self) -> list[Effect]:
        """It had finished before the restored checkpoint: announce that downstream, and leave."""
        return self._effects_of(self._finish_again)

    def _finish_again(self) -> None:
        self._announce_end()
        self.task.leaving = True
        self.task.aligner.ended.update(self.task.inboxes)
        self._obey(self.task.leave())

    def abandon(self) -> list[Effect]:
        """The attempt is over: files of checkpoints that it has not acked are deleted (spec C9)."""
        for checkpoint, part in self.task.parts.items():
            if not part.persisting:
                self._discard(checkpoint)
        return self._effects_of(lambda: None)

    def close(self) -> None:
        self.is_ready = False
        self.uploads.is_open = False
        try:
            self.operator.close()
        except BaseException:  # a panic of native code too
            log.warning("%s did not close cleanly", self.subtask, exc_info=True)

    # -- what happens to the subtask

    def arrived(self, channel: ChannelId, element: object, now: Millis) -> list[Effect]:
        return self._effects_of(lambda: self._obey(self.task.receive(channel, element, now)))

    def credited(self, channel: ChannelId, batches: int) -> list[Effect]:
        return self._effects_of(lambda: self._obey(self.task.granted(channel, batches)))

    def reach(self, channel: ChannelId, marker: object, now: Millis) -> list[Effect]:
        return self._effects_of(lambda: self._reach(channel, marker, now))

    def _reach(self, channel: ChannelId, marker: object, now: Millis) -> None:
        self._obey(self.task.reach(channel, marker, now))
        checkpoint = marker.checkpoint if isinstance(marker, Barrier) else NO_CHECKPOINT
        if checkpoint > self._newest_aligning and self.task.aligner.is_aligning(checkpoint):
            self._newest_aligning = checkpoint
            self._report_phase(checkpoint, Phase.ALIGNING)

    def pass_time(self, now: Millis) -> list[Effect]:
        return self._effects_of(lambda: self._obey(self.task.pass_time(now)))

    def obey(self, orders: list[TaskAction]) -> list[Effect]:
        return self._effects_of(lambda: self._obey(orders))

    def read_mail(self, message: object, now: Millis) -> list[Effect]:
        return self._effects_of(lambda: self._read_mail(message, now))

    def _read_mail(self, message: object, now: Millis) -> None:
        match message:
            case Barrier():
                self._obey(self.task.trigger(message, now))
            case CheckpointAborted(checkpoint):
                self.uploads.aborted(checkpoint)
                self._obey(self.task.abort(checkpoint, now))
            case CheckpointCompleted():
                self._completed(message)
            case SnapshotUploaded(checkpoint, snapshot, timings):
                self._timings[checkpoint] = timings
                self._obey(self.task.captured(checkpoint, snapshot))
            case InFlightUploaded(checkpoint, handles, timings):
                self._timings[checkpoint] = timings
                self._obey(self.task.persisted(checkpoint, handles))
            case UploadFailed(checkpoint, reason, cause):
                self._decline(checkpoint, reason, cause)
            case AssignSplit() | NoSplitsYet() | NoMoreSplits():
                assert isinstance(self.operator, SourceOperator), f"{self.subtask} reads no splits"
                self.operator.answered(message)
                self._effects.append(ResumePolling())
            case _:
                raise AssertionError(f"{self.subtask} cannot read {message}")

    def _completed(self, notice: CheckpointCompleted) -> None:
        self._effects += self.cuts.completed(notice.checkpoint)
        self._obey(self.task.complete(notice.checkpoint, notice.kind, leaving=notice.leaving))

    # -- rows

    def process(self, turn: ProcessBatches) -> tuple[list[Effect], list[object]]:
        """As many rows as fit into a turn; the effects, and the batches that did not fit."""
        rest: list[object] = []
        return self._effects_of(lambda: rest.extend(self._process(turn))), rest

    def _process(self, turn: ProcessBatches) -> list[Batch]:
        batches = self.format.merge(turn.batches)
        began, budget, done, size = self.timer(), self.demand.limit(self.budget.rows), 0, 0
        while batches and done < budget and (not done or self.has_room):
            batch = batches.pop(0)
            fits = batch.slice(0, budget - done)
            if fits.num_rows < batch.num_rows:
                batches.insert(0, batch.slice(fits.num_rows))
            self._emit(self.operator.process(turn.channel.edge, fits))
            done += fits.num_rows
            size += self.format.size_of(fits)
        self._worked(done, self.timer() - began, size)
        self.counts.rows_in += done
        self.task.processed_bytes += size
        self.buffer.processed(began)
        return batches

    def log_changes(self, now: Millis) -> list[Effect]:
        """After a turn: write what has changed, if a segment or a whole state is due."""
        return self._effects_of(lambda: self._effects.extend(self.cuts.due(now)))

    def request_split(self) -> list[Effect]:
        """Before a poll, which may take long: ask for a split if the source wants one."""
        source = self.operator
        if not isinstance(source, SourceOperator) or not source.wants_split:
            return []
        source.ask()
        return [Report(SplitWanted(self.attempt, self.subtask))]

    def poll(self) -> list[Effect]:
        """Read on, if there is anything to read."""
        return self._effects_of(self._poll)

    def _poll(self) -> None:
        source = self.operator
        assert isinstance(source, SourceOperator), "only sources are polled"
        began = self.timer()
        batch = source.poll(self.demand.limit(self.budget.rows))
        if batch is None:
            if source.is_over:
                self._end_of_data()
            else:
                self._pass_time_on(source.low_watermark())
                self._pass_idleness_on(is_idle=source.is_idle)
                self._effects.append(ScheduleWakeup(max(source.rest_ms, 1)))
            return
        self._pass_idleness_on(is_idle=False)
        self._emit((batch,))
        self._worked(batch.num_rows, self.timer() - began, self.format.size_of(batch))
        self._pass_time_on(source.low_watermark())

    def _worked(self, rows: int, seconds: float, size: int) -> None:
        self.budget.record(rows, seconds, size)
        self.counts.busy_seconds += seconds

    def _emit(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            for out in self.pipeline.through(batch):
                self.counts.rows_out += out.num_rows
                for router in self.routers:
                    for channel, part in router.route(out):
                        self._obey(self.task.emit(channel, part))

    @property
    def must_flush(self) -> bool:
        """Whether buffered rows have waited long enough, although more input waits (spec R9)."""
        has_backlog = any(inbox.queue for inbox in self.task.inboxes.values())
        return self.may_emit and self.buffer.is_due(self.timer(), has_backlog=has_backlog)

    def flush(self) -> list[Effect]:
        """The input has run dry, or buffered rows have waited long enough: emit them."""
        return self._effects_of(self._flush)

    def _flush(self) -> None:
        began = self.timer()
        self._emit(self.operator.flush())
        self.buffer.flushed(began, self.timer())

    # -- time

    def advance(self, channel: ChannelId, marker: object) -> list[Effect]:
        """If timers are left to fire after a turn, the marker goes back to its channel."""
        return self._effects_of(lambda: self._advance(channel, marker))

    def _advance(self, channel: ChannelId, marker: object) -> None:
        match marker:
            case Watermark(time):
                self.time.advance(channel, time)
            case Idle():
                self.time.rest(channel)
            case _:
                assert isinstance(marker, EndOfData)
                self.time.end(channel)
        self.operator.advance(self.time.now)
        if not self._fire():
            self.task.inboxes[channel].put_back(marker)
        elif self.time.is_over:
            self._end_of_data()
        else:
            self._pass_time_on(self.time.now)
            self._pass_idleness_on(is_idle=self.time.is_idle)

    def fire(self) -> list[Effect]:
        """Fire timers that are due, for one turn."""
        return self._effects_of(self._fire)

    def _fire(self) -> bool:
        """Whether no timer is left that is due."""
        began = self.timer()
        while self.operator.is_due():
            if self.timer() - began > TURN_SECONDS or not self.has_room:
                return False
            self._emit(self.operator.fire())
        return True

    def _pass_time_on(self, watermark: Millis) -> None:
        if watermark > self.time.passed_on:
            self.time.passed_on = watermark
            self.time.is_passed_on_as_idle = False
            self._flush()
            self._to_all(Watermark(watermark))

    def _pass_idleness_on(self, *, is_idle: bool) -> None:
        """A watermark ends the idleness, even if it repeats the one before."""
        if is_idle != self.time.is_passed_on_as_idle:
            self.time.is_passed_on_as_idle = is_idle
            self._flush()
            self._to_all(Idle() if is_idle else Watermark(self.time.passed_on))

    def _end_of_data(self) -> None:
        if self.task.at_end:
            return
        self.operator.advance(FOREVER)
        while self.operator.is_due():
            self._emit(self.operator.fire())
        self._emit(self.operator.finish())
        self._announce_end()

    def _announce_end(self) -> None:
        self.task.at_end = True
        self._to_all(EndOfData())
        self._effects.append(Report(events.EndOfDataReached(self.attempt, self.subtask)))

    def _to_all(self, marker: object) -> None:
        for channel in self.task.outboxes:
            self._obey(self.task.emit(channel, marker))

    # -- orders of the task

    def _obey(self, orders: list[TaskAction]) -> None:
        for order in orders:
            self._carry_out(order)
        if self.withheld:
            for channel in [c for c in self.withheld if not self.task.is_recording(c)]:
                self._effects.append(Grant(channel, self.withheld.pop(channel)))

    def _carry_out(self, order: TaskAction) -> None:  # noqa: C901, PLR0912 - one case for each order
        match order:
            case Transmit():
                self._effects.append(order)
            case Grant():
                self._grant(order)
            case Drain():
                self._end_of_data()
            case Prepare():
                self._flush()
            case Broadcast(barrier):
                self._obey(self.task.broadcast(barrier))
            case Capture(barrier):
                self._capture(barrier)
            case PersistInFlight():
                self._persist_in_flight(order)
            case Ack():
                self._report_ack(order)
            case Decline():
                self._report_decline(order)
            case Discard(checkpoint):
                self._discard(checkpoint)
            case Complete(checkpoint, commits):
                self.uploads.keep_only(self.task.parts)
                if commits:
                    self.operator.completed(checkpoint)
            case Finish():
                self._effects.append(Report(SubtaskFinished(self.attempt, self.subtask)))
                self._effects.append(SubtaskDone())

    def _grant(self, grant: Grant) -> None:
        """Not while the channel is recorded: what arrives then is in-flight data, and bounded.

        The barrier that ends the recording needs no credit (spec A11).
        """
        if self.task.is_recording(grant.channel):
            self.withheld[grant.channel] = self.withheld.get(grant.channel, 0) + grant.batches
        else:
            self._effects.append(grant)

    def _capture(self, barrier: Barrier) -> None:
        """The synchronous part. If it fails the subtask is in no known state, so it fails."""
        checkpoint = barrier.checkpoint
        refusal = self.uploads.refusal(checkpoint)
        if refusal:
            self._decline(checkpoint, Reason.CHECKPOINT_DECLINED, refusal)
            return
        began = self.timer()
        try:
            captured = self.operator.capture(checkpoint)
        except BaseException as problem:  # noqa: BLE001 - connectors, user code, native code
            self._decline(checkpoint, Reason.TASK_CHECKPOINT_FAILURE, "")
            reason = f"its synchronous part failed: {describe_error(problem)}"
            self._fail(FailureCause.CHECKPOINT, reason, problem)
            return
        self.cuts.captured(barrier, captured)
        upload = self.uploads.start(barrier, int((self.timer() - began) * 1000), captured)
        snapshot = SubtaskSnapshot(
            self.subtask, watermarks=self.time.by_edge(), reached_end=self.task.at_end
        )
        self._effects.append(StartUpload(upload, captured, snapshot))
        self._report_phase(checkpoint, Phase.UPLOADING)

    def _report_phase(self, checkpoint: CheckpointId, phase: Phase) -> None:
        progress = events.SubtaskProgressed(self.attempt, checkpoint, self.subtask, phase)
        self._effects.append(Report(progress))

    def _persist_in_flight(self, order: PersistInFlight) -> None:
        batches = (batch for _, _, caught in order.rows for batch in caught)
        held_bytes = sum(self.format.size_of(batch) for batch in batches)
        upload = self.uploads.start_in_flight(order.checkpoint, held_bytes)
        self._effects.append(StartInFlightUpload(upload, order.rows))

    def _discard(self, checkpoint: CheckpointId) -> None:
        self._timings.pop(checkpoint, None)
        upload = self.uploads.discard(checkpoint)
        if upload is not None:
            self._effects.append(DiscardUpload(upload))

    def _decline(self, checkpoint: CheckpointId, reason: Reason, cause: str) -> None:
        """There will be no snapshot; the driver reports the cause, if there is one."""
        for order in self.task.fail(checkpoint, reason):
            if isinstance(order, Decline):
                self._report_decline(order, cause)
            else:
                self._obey([order])

    def _report_decline(self, order: Decline, cause: str = "") -> None:
        declined = events.SubtaskDeclined(
            self.attempt, order.checkpoint, self.subtask, order.reason, cause
        )
        self._effects.append(Report(declined))

    def _report_ack(self, order: Ack) -> None:
        self.cuts.acked(order.checkpoint)
        uploaded = self._timings.pop(order.checkpoint, events.Timings())
        timings = timings_of(order, uploaded)
        acked = events.SubtaskAcked(
            self.attempt, order.checkpoint, self.subtask, order.snapshot, timings
        )
        self._effects.append(Report(acked))
