"""The one thread of a slot: asks the scheduler for the next turn, and takes it.

Everything that happens to subtasks happens here: mail of the driver, elements of the exchange,
results of uploads, turns of user code. Other threads only post (spec A11). The scheduler decides
the order and a subtask's runner decides what a turn does; this module performs the effects that the
runner returns, on the exchange, the driver's link and the upload threads.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import assert_never

from weir.core.attempt import FailureCause
from weir.core.barriers import Barrier
from weir.core.coordinator import events
from weir.core.coordinator.events import SubtaskAcked
from weir.core.ids import AttemptId, ChannelId, CheckpointId, Millis, SubtaskId
from weir.core.reasons import Reason
from weir.core.scheduler import (
    ControlMarker,
    Mail,
    PollSource,
    ProcessBatches,
    ScheduledWork,
    Scheduler,
    Suspend,
    TimeMarker,
)
from weir.core.task import Grant, Transmit
from weir.exchange import Arrived, Broken, Credited, Run
from weir.slot.demand import rows_of_a_batch
from weir.slot.effects import (
    DeleteUnneeded,
    DiscardUpload,
    DropLocalCopies,
    Effect,
    FailSubtask,
    Report,
    ResumePolling,
    ScheduleWakeup,
    StartInFlightUpload,
    StartUpload,
    StorageEffect,
    SubtaskDone,
    WriteSegment,
)
from weir.slot.merged_files import AckReleased
from weir.slot.slot_exchange import PeerExchange, SlotExchange
from weir.slot.snapshot_uploads import UploadEnded
from weir.slot.snapshot_writer import SnapshotWriter
from weir.slot.subtask_deployment import RestoreFailed, SubtaskDeployer, SubtaskRestored
from weir.slot.subtask_runner import OUTPUT_LIMIT, SubtaskRunner
from weir.wire.clocks import ProcessClock
from weir.wire.control_messages import (
    CancelSubtasks,
    CheckpointCompleted,
    DeploySubtasks,
    ShutDownSlot,
    SubtaskFailure,
    SubtaskMessage,
    SubtaskMetrics,
)

BATCH_LIMIT = 32
LONGEST_REST_MS = 1000
LONGEST_REASON = 16 << 10
"""Of a failure: user code may raise with a whole batch in its message."""


class Mailbox:
    """All subtasks of one slot, run by one thread."""

    def __init__(
        self,
        deployer: SubtaskDeployer,
        exchange: PeerExchange,
        report: Callable[[object], None],
        clock: ProcessClock | None = None,
        turns: Scheduler | None = None,
    ) -> None:
        self._clock = clock or ProcessClock()
        self._deployer = deployer
        deployer.connect(self.post, self._clock.now)
        self._merged = deployer.merged
        self._exchange = SlotExchange(exchange, deployer.topology)
        self._report = report
        self._runners: dict[SubtaskId, SubtaskRunner] = {}
        self._turns = turns or Scheduler(OUTPUT_LIMIT, batch_limit=BATCH_LIMIT)
        self._wakeups: dict[SubtaskId, Millis] = {}
        self._inbox: deque[object] = deque()
        self._is_over = threading.Event()
        self.turn_began = 0.0
        """When the mailbox last stopped waiting; zero while it waits."""

    # -- for other threads

    def post(self, message: object) -> None:
        """Hand something to the mailbox, from any thread."""
        self._inbox.append(message)
        self._exchange.wake()

    def gauges(self) -> tuple[SubtaskMetrics, ...]:
        """The state of the subtasks; a reader beside the mailbox may see them mid-turn."""
        return tuple(self._gauge(runner) for runner in list(self._runners.values()))

    def _gauge(self, runner: SubtaskRunner) -> SubtaskMetrics:
        return SubtaskMetrics(
            subtask=runner.subtask,
            rows_in=runner.counts.rows_in,
            rows_out=runner.counts.rows_out,
            busy_ms=int(runner.counts.busy_seconds * 1000),
            back_pressured=not runner.has_room,
            watermark=runner.time.passed_on,
            late_rows=runner.operator.late_rows,
        )

    # -- the loop

    def run(self) -> None:
        """Until the driver ends the slot."""
        while not self._is_over.is_set():
            self.step()
        self._reset(tuple(self._runners))

    def step(self) -> None:
        """What was posted, what is due, one turn, and what has arrived; waits if there is none."""
        while self._inbox:
            self._receive(self._inbox.popleft())
        self._pass_time()
        turn = self._turns.next()
        if isinstance(turn, Suspend) and self._flush_idle():
            turn = self._turns.next()
        wait = self._patience() if isinstance(turn, Suspend) else 0.0
        if not isinstance(turn, Suspend):
            self._take(self._runners[turn.subtask], turn)
        self._collect(0.0 if self._inbox or self._exchange.has_local else wait)

    def _collect(self, wait: float) -> None:
        self.turn_began = 0.0
        arrived = self._exchange.collect(wait)
        self.turn_began = time.monotonic()
        for event in arrived:
            match event:
                case Arrived(_, run, channel, element):
                    self._arrive(run, channel, element)
                case Credited():
                    self._credited(event)
                case Broken():
                    self._broken(event)

    def _patience(self) -> float:
        """Seconds until time alone makes something due."""
        now, wall = self._clock.now(), self._clock.wall()
        left = [due - now for due in self._wakeups.values()]
        write_at = self._merged.next_deadline() if self._merged is not None else None
        if write_at is not None:
            left.append(write_at - now)
        for runner in self._ready():
            deadline, timer = runner.task.next_deadline(), self._next_timer(runner)
            if deadline is not None:
                left.append(deadline - now)
            if timer is not None:
                left.append(timer - wall)
        return min(max(min(left, default=LONGEST_REST_MS), 0), LONGEST_REST_MS) / 1000

    def _ready(self) -> list[SubtaskRunner]:
        return [runner for runner in self._runners.values() if runner.is_ready]

    def _pass_time(self) -> None:
        """Wake sources, time out alignments and buffers, fire timers of the wall clock."""
        now, wall = self._clock.now(), self._clock.wall()
        for subtask in [s for s, due in self._wakeups.items() if due <= now]:
            self._resume(subtask)
        if self._merged is not None:
            self._merged.pass_time()
        for runner in self._ready():
            runner.task.ahead = wall - now
            deadline = runner.task.next_deadline()
            if deadline is not None and deadline <= now:
                self._perform(runner, runner.pass_time(now))
            timer = self._next_timer(runner)
            if timer is not None and timer <= wall:
                self._perform(runner, runner.fire())
            if runner.must_flush:
                self._perform(runner, runner.flush())

    def _next_timer(self, runner: SubtaskRunner) -> Millis | None:
        """A subtask that may not emit now waits for what changes that, not for the clock."""
        timer = runner.operator.next_timer()
        return timer if timer is not None and runner.may_emit else None

    def _flush_idle(self) -> bool:
        """Nothing waits to be processed, so what operators have buffered should not wait either."""
        unflushed = [r for r in self._ready() if r.buffer.is_buffering and r.may_emit]
        for runner in unflushed:
            self._perform(runner, runner.flush())
        return bool(unflushed)

    # -- turns

    def _take(self, runner: SubtaskRunner, turn: ScheduledWork) -> None:
        match turn:
            case Mail(_, message):
                self._perform(runner, runner.read_mail(message, self._clock.now()))
            case ControlMarker(_, channel, marker):
                self._perform(runner, runner.reach(channel, marker, self._clock.now()))
            case TimeMarker(_, channel, marker):
                self._perform(runner, runner.advance(channel, marker))
            case ProcessBatches():
                effects, rest = runner.process(turn)
                self._perform(runner, effects)
                self._perform(runner, runner.obey(self._turns.processed(turn, rest)))
                self._perform(runner, runner.log_changes(self._clock.now()))
            case PollSource():
                self._perform(runner, runner.request_split())
                self._perform(runner, runner.poll())
            case Suspend():
                pass

    # -- what other threads post

    def _receive(self, message: object) -> None:  # noqa: C901 - one case each
        match message:
            case DeploySubtasks():
                self._deploy(message)
            case SubtaskRestored():
                self._restored(message)
            case RestoreFailed():
                self._not_restored(message)
            case UploadEnded():
                self._upload_ended(message)
            case AckReleased():
                self._ack_released(message)
            case CancelSubtasks(subtasks):
                self._reset(subtasks)
            case SubtaskMessage(subtask, attempt, mail):
                self._deliver(subtask, attempt, mail)
            case ShutDownSlot():
                self._is_over.set()
            case _:
                raise AssertionError(f"the mailbox cannot receive {message}")

    def _deploy(self, deploy: DeploySubtasks) -> None:
        self._reset(
            tuple(state_assignment.subtask for state_assignment in deploy.state_assignments)
        )
        self._exchange.place(deploy)
        for state_assignment in deploy.state_assignments:
            self._deployer.deploy(deploy, state_assignment, self._clock.wall, self.post)

    def _admit(self, runner: SubtaskRunner) -> bool:
        """Whether the subtask belongs to the current deployment."""
        if not self._exchange.is_current(runner.subtask, runner.run):
            runner.close()
            return False
        self._runners[runner.subtask] = runner
        return True

    def _restored(self, restored: SubtaskRestored) -> None:
        runner = restored.runner
        if not self._admit(runner):
            return
        effects = runner.restore(restored.state)
        if runner.is_ready:
            if self._merged is not None:
                self._merged.joined(runner.run, runner.subtask, runner.uploads.referred)
            restored.fill_inboxes()
            self._turns.add(runner.task)
        self._perform(runner, effects)
        if not runner.is_ready:
            return
        if restored.was_finished:
            self._perform(runner, runner.finish_again())
        for channel, element in self._exchange.take_early(runner.subtask, runner.run):
            self._arrive(runner.run, channel, element)

    def _not_restored(self, failed: RestoreFailed) -> None:
        if self._admit(failed.runner):
            self._fail(failed.runner, failed.failure)

    def _upload_ended(self, ended: UploadEnded) -> None:
        """The subtask reads the result in its next turn; one that is reset needs it no more."""
        if self._of(ended.subtask, ended.run) is not None:
            self._turns.post(ended.subtask, ended.result)

    def _ack_released(self, released: AckReleased) -> None:
        """An ack whose checkpoint was given up meanwhile is not reported."""
        assert self._merged is not None, "only merged files hold acks back"
        is_current = self._of(released.event.subtask, released.run) is not None
        if is_current and self._merged.reported(released):
            self._report(released.event)

    def _deliver(self, subtask: SubtaskId, attempt: AttemptId, mail: object) -> None:
        """A stale message is dropped, and a trigger always gets an answer."""
        runner = self._runners.get(subtask)
        is_current = runner is not None and runner.attempt == attempt
        if is_current and runner is not None and runner.is_ready:
            if isinstance(mail, CheckpointCompleted) and not mail.kind.is_savepoint:
                self._subsume(runner, mail.checkpoint)
            self._turns.post(subtask, mail)
        elif isinstance(mail, Barrier):
            closing = Reason.CHECKPOINT_DECLINED_TASK_CLOSING
            reason = Reason.CHECKPOINT_DECLINED_TASK_NOT_READY if is_current else closing
            self._report(events.SubtaskDeclined(attempt, mail.checkpoint, subtask, reason))

    def _subsume(self, runner: SubtaskRunner, completed: CheckpointId) -> None:
        if self._merged is not None:
            self._merged.completed(runner.run, runner.subtask, completed)

    def _leave(self, runner: SubtaskRunner) -> None:
        if runner.uploads.log is not None:
            self._deployer.executors.uploading.submit(runner.writer.close_log)
        if self._merged is not None:
            self._merged.left(runner.run, runner.subtask)

    def _reset(self, subtasks: tuple[SubtaskId, ...]) -> None:
        for subtask in subtasks:
            runner = self._runners.pop(subtask, None)
            if runner is not None:
                self._turns.remove(subtask)
                self._wakeups.pop(subtask, None)
                self._perform(runner, runner.abandon())
                self._leave(runner)
                runner.close()
                if all(other.run != runner.run for other in self._runners.values()):
                    self._exchange.drop(runner.run)
            self._exchange.remove(subtask)

    # -- what the exchange brings

    def _arrive(self, run: Run, channel: ChannelId, element: object) -> None:
        runner = self._of(self._deployer.topology.receiver(channel), run)
        if runner is None:
            self._exchange.keep_early(run, channel, element)
            return
        self._perform(runner, runner.arrived(channel, element, self._clock.now()))

    def _credited(self, event: Credited) -> None:
        runner = self._of(self._deployer.topology.sender(event.channel), event.run)
        if runner is not None:
            edge = self._deployer.topology.edge_by_id[event.channel.edge]
            runner.demand.asks(event.channel, event.rows, edge.kind)
            self._perform(runner, runner.credited(event.channel, event.batches))

    def _broken(self, event: Broken) -> None:
        """Fails the subtasks that used the connection; a later attempt has another one."""
        reason = f"the connection to slot {event.peer} broke: {event.cause}"
        for runner in list(self._runners.values()):
            if runner.run in event.runs and self._exchange.connects(runner.subtask, event.peer):
                self._fail(runner, FailSubtask(FailureCause.CONNECTION, reason))

    def _of(self, subtask: SubtaskId, run: Run) -> SubtaskRunner | None:
        runner = self._runners.get(subtask)
        return runner if runner is not None and runner.run == run and runner.is_ready else None

    # -- effects

    def _perform(self, runner: SubtaskRunner, effects: list[Effect]) -> None:
        for effect in effects:
            self._perform_one(runner, effect)

    def _perform_one(self, runner: SubtaskRunner, effect: Effect) -> None:  # noqa: C901 - one case each
        match effect:
            case Transmit(channel, element):
                self._exchange.send(runner.run, channel, element)
            case Grant(channel, batches):
                in_a_turn = runner.demand.limit(runner.budget.rows)
                rows = rows_of_a_batch(runner.task.inboxes, in_a_turn)
                self._exchange.grant(runner.run, channel, batches, rows)
            case Report(SubtaskAcked() as acked) if self._merged is not None:
                self._merged.ack(runner.run, acked)
            case Report(event):
                self._report(event)
            case ScheduleWakeup(delay_ms):
                self._turns.idle_sources.add(runner.subtask)
                self._wakeups[runner.subtask] = Millis(self._clock.now() + delay_ms)
            case ResumePolling():
                self._resume(runner.subtask)
            case SubtaskDone():
                self._done(runner)
            case FailSubtask():
                self._fail(runner, effect)
            case _:
                self._submit(runner.writer, effect)

    def _submit(self, writer: SnapshotWriter, effect: StorageEffect) -> None:
        """What the upload threads do."""
        submit = self._deployer.executors.uploading.submit
        match effect:
            case StartUpload() | StartInFlightUpload():
                submit(self._upload, writer, effect)
            case DiscardUpload(upload):
                submit(writer.delete, upload)
            case DropLocalCopies(owner, referenced):
                submit(writer.storage.completed, owner, referenced)
            case WriteSegment(start) if start.since is None:
                self._deployer.executors.materializing.submit(writer.write_segment, start)
            case WriteSegment(start):
                submit(writer.write_segment, start)
            case DeleteUnneeded(paths):
                submit(writer.delete_unneeded, list(paths))
            case _:
                assert_never(effect)

    def _resume(self, subtask: SubtaskId) -> None:
        self._wakeups.pop(subtask, None)
        self._turns.idle_sources.discard(subtask)

    def _upload(self, writer: SnapshotWriter, start: StartUpload | StartInFlightUpload) -> None:
        """On an upload thread."""
        self.post(UploadEnded(writer.subtask, writer.run, writer.write(start)))

    def _done(self, runner: SubtaskRunner) -> None:
        """The subtask has finished; a trigger that it has not read is declined."""
        unread = self._turns.remove(runner.subtask)
        self._runners.pop(runner.subtask, None)
        self._leave(runner)
        runner.close()
        for mail in unread:
            self._deliver(runner.subtask, runner.attempt, mail.message)

    def _fail(self, runner: SubtaskRunner, failure: FailSubtask) -> None:
        """Report it to the driver, once; the driver decides what becomes of the subtask."""
        if runner.has_failed:
            return
        runner.has_failed = True
        if runner.is_ready:
            self._turns.remove(runner.subtask)
            runner.is_ready = False
        reason = failure.reason[:LONGEST_REASON]
        self._report(
            SubtaskFailure(runner.attempt, runner.subtask, failure.cause, reason, failure.error)
        )
