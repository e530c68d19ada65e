"""The one thread of a slot: asks the scheduler what to do next, and does it.

Everything that happens to subtasks happens here: mail of the driver, elements of the exchange, ends
of uploads, turns of user code. Other threads only post (spec A11). The scheduler decides the order;
this module knows what each turn means and keeps the two worlds, tasks and sockets, in step.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from weir.core.attempt import FailureCause
from weir.core.barriers import Barrier
from weir.core.coordinator import events
from weir.core.enumerator import AssignSplit, NoMoreSplits, NoSplitsYet
from weir.core.ids import AttemptId, ChannelId, CheckpointId, Millis, SubtaskId
from weir.core.lifecycle import SubtaskRunning
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
from weir.core.task import Task, TaskAction
from weir.errors import WeirError
from weir.exchange import Arrived, Broken, Credited, Exchange, Run
from weir.ports.user_code_errors import UserCodeFailed, describe_error, error_type, is_of_user_code
from weir.slot.slot_exchange import SlotExchange
from weir.slot.snapshot_uploads import SnapshotUploads
from weir.slot.source_operator import SourceOperator
from weir.slot.subtask_deployment import Prepared, SubtaskDeployer
from weir.slot.subtask_runner import OUTPUT_LIMIT, SubtaskRunner
from weir.wire.clocks import ProcessClock
from weir.wire.control_messages import (
    CancelSubtasks,
    CheckpointAborted,
    CheckpointCompleted,
    DeploySubtasks,
    ShutDownSlot,
    SubtaskFailure,
    SubtaskMessage,
    SubtaskMetrics,
)

log = logging.getLogger("weir.slot")

BATCH_LIMIT = 32
LONGEST_REST_MS = 1000
LONGEST_WORDS = 16 << 10
"""Of why a subtask failed: user code may raise with a whole batch in its message."""


@dataclass(frozen=True, slots=True)
class Settled:
    """Mail: an upload is over, one way or the other."""

    act: Callable[[Task], list[TaskAction]]
    words: str
    """What went wrong, if something did."""


class Mailbox:
    """All subtasks of one slot, run by one thread."""

    def __init__(
        self,
        launcher: SubtaskDeployer,
        exchange: Exchange,
        speak: Callable[[object], None],
        clock: ProcessClock | None = None,
    ) -> None:
        self._clock = clock or ProcessClock()
        self.now = self._clock.wall
        """What operators see: processing time is the wall clock's."""
        self._launcher = launcher
        self._exchange = exchange
        self._speak = speak
        self._post = SlotExchange(exchange, launcher.topology)
        self._hosted: dict[SubtaskId, SubtaskRunner] = {}
        self._turns = Scheduler(OUTPUT_LIMIT, batch_limit=BATCH_LIMIT)
        self._alarms: dict[SubtaskId, Millis] = {}
        self._left: list[SnapshotUploads] = []
        """Of subtasks that were reset, until they have ended."""
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
        """How the subtasks are doing; a reader beside the mailbox may see them mid-turn."""
        return tuple(self._gauge(hosted) for hosted in list(self._hosted.values()))

    def _gauge(self, hosted: SubtaskRunner) -> SubtaskMetrics:
        return SubtaskMetrics(
            subtask=hosted.subtask,
            rows_in=hosted.counts.rows_in,
            rows_out=hosted.counts.rows_out,
            busy_ms=int(hosted.counts.busy_seconds * 1000),
            back_pressured=not hosted.has_room,
            watermark=hosted.time.passed_on,
            late_rows=hosted.operator.late_rows,
        )

    # -- the loop

    def run(self) -> None:
        """Until the driver sends it home."""
        while not self._is_over.is_set():
            self.step()
        self._reset(tuple(self._hosted))

    def step(self) -> None:
        """What was posted, what is due, one turn, and what has arrived; waits if there is none."""
        while self._inbox:
            self._receive(self._inbox.popleft())
        self._chores()
        turn = self._turns.next()
        if isinstance(turn, Suspend):
            self._dry()
            turn = self._turns.next()
        wait = self._patience() if isinstance(turn, Suspend) else 0.0
        if not isinstance(turn, Suspend):
            self._take_turn(self._hosted[turn.subtask], turn)
        self._exchange_news(0.0 if self._inbox or self._post.has_local else wait)

    def _exchange_news(self, wait: float) -> None:
        self.turn_began = 0.0
        arrived = self._post.collect(wait)
        self.turn_began = time.monotonic()
        for news in arrived:
            match news:
                case Arrived(_, run, channel, element):
                    self._arrive(run, channel, element)
                case Credited(run, channel, batches):
                    self._credited(run, channel, batches)
                case Broken():
                    self._broken(news)

    def _patience(self) -> float:
        """How long nothing will happen by itself."""
        deadlines = [hosted.task.next_deadline() for hosted in self._ready()]
        deadlines += list(self._alarms.values())
        timers = [self._next_timer(hosted) for hosted in self._ready()]
        now, wall = self._clock.now(), self._clock.wall()
        left = [due - now for due in deadlines if due is not None]
        left += [due - wall for due in timers if due is not None]
        return min(max(min(left, default=LONGEST_REST_MS), 0), LONGEST_REST_MS) / 1000

    def _ready(self) -> list[SubtaskRunner]:
        return [hosted for hosted in self._hosted.values() if hosted.is_ready]

    def _chores(self) -> None:
        """What time alone makes due."""
        now, wall = self._clock.now(), self._clock.wall()
        for subtask in [s for s, due in self._alarms.items() if due <= now]:
            del self._alarms[subtask]
            self._turns.idle_sources.discard(subtask)
        for hosted in self._ready():
            hosted.task.ahead = wall - now
            self._pass_time(hosted, now, wall)

    def _pass_time(self, hosted: SubtaskRunner, now: Millis, wall: Millis) -> None:
        deadline = hosted.task.next_deadline()
        if deadline is not None and deadline <= now:
            self._guarded(hosted, lambda: hosted.obey(hosted.task.pass_time(now)))
        timer = self._next_timer(hosted)
        if timer is not None and timer <= wall:
            self._guarded(hosted, hosted.fire)

    def _next_timer(self, hosted: SubtaskRunner) -> Millis | None:
        """Whoever may not emit now is woken by what changes that, not by the clock."""
        return hosted.operator.next_timer() if self._may_emit(hosted) else None

    def _may_emit(self, hosted: SubtaskRunner) -> bool:
        task = hosted.task
        is_free = hosted.is_ready and not task.holding and not task.at_end
        return is_free and hosted.has_room

    def _dry(self) -> None:
        """Nothing waits to be processed: what operators have buffered should not wait either."""
        for hosted in self._ready():
            if hosted.has_unflushed and self._may_emit(hosted):
                self._guarded(hosted, hosted.flush)

    # -- turns

    def _take_turn(self, hosted: SubtaskRunner, turn: ScheduledWork) -> None:
        self._guarded(hosted, lambda: self._take(hosted, turn))

    def _guarded(self, hosted: SubtaskRunner, act: Callable[[], object]) -> None:
        """User code and connectors may raise anything; it fails the subtask and nothing else."""
        try:
            act()
        except UserCodeFailed as failure:
            self.failed(hosted, FailureCause.USER_CODE, str(failure), error_type(failure))
        except (AssertionError, KeyboardInterrupt):
            raise
        except BaseException as problem:  # a panic of native code and sys.exit too
            if not isinstance(problem, WeirError):  # which says itself what is wrong
                log.warning("%s failed", hosted.subtask, exc_info=True)
            is_users = is_of_user_code(problem)
            cause = FailureCause.USER_CODE if is_users else FailureCause.OPERATOR
            self.failed(hosted, cause, describe_error(problem), error_type(problem))

    def _take(self, hosted: SubtaskRunner, turn: ScheduledWork) -> None:
        match turn:
            case Mail(_, message):
                self._read_mail(hosted, message)
            case ControlMarker(_, channel, marker):
                hosted.obey(hosted.task.reach(channel, marker, self._clock.now()))
            case TimeMarker(_, channel, marker):
                if not hosted.advance(channel, marker):
                    hosted.task.inboxes[channel].put_back(marker)
            case ProcessBatches():
                hosted.obey(self._turns.processed(turn, hosted.process(turn)))
            case PollSource():
                hosted.poll()
            case Suspend():
                pass

    def _read_mail(self, hosted: SubtaskRunner, message: object) -> None:
        task, now = hosted.task, self._clock.now()
        match message:
            case Barrier():
                hosted.obey(task.trigger(message, now))
            case CheckpointAborted(checkpoint):
                hosted.uploads.layers.on_aborted(checkpoint)
                hosted.obey(task.abort(checkpoint, now))
            case CheckpointCompleted(checkpoint, kind, leaving):
                hosted.uploads.on_completed(checkpoint)
                hosted.obey(task.complete(checkpoint, kind, leaving=leaving))
            case Settled(act, words):
                hosted.settled(act, words)
            case AssignSplit() | NoSplitsYet() | NoMoreSplits():
                assert isinstance(hosted.operator, SourceOperator)
                hosted.operator.hear(message)
                self._alarms.pop(task.subtask, None)
                self._turns.idle_sources.discard(task.subtask)

    # -- what other threads post

    def _receive(self, message: object) -> None:
        match message:
            case DeploySubtasks():
                self._launch(message)
            case Prepared():
                self._begin(message)
            case CancelSubtasks(subtasks):
                self._reset(subtasks)
            case SubtaskMessage(subtask, attempt, mail):
                self._deliver(subtask, attempt, mail)
            case ShutDownSlot():
                self._is_over.set()
            case _:
                assert callable(message), f"nobody posts {message}"
                message()

    def _launch(self, deploy: DeploySubtasks) -> None:
        self._reset(
            tuple(state_assignment.subtask for state_assignment in deploy.state_assignments)
        )
        self._post.seat(deploy)
        for state_assignment in deploy.state_assignments:
            self._launcher.prepare(deploy, state_assignment, self)

    def _begin(self, prepared: Prepared) -> None:
        """The state has been read: restore it, say so, and take part."""
        hosted = prepared.hosted
        subtask = hosted.subtask
        if not self._post.is_current(subtask, hosted.run):
            self._close(hosted)
            return
        self._hosted[subtask] = hosted
        if prepared.problem:
            self.failed(hosted, prepared.cause, prepared.problem, prepared.error)
            return
        self._guarded(hosted, lambda: self._restore(hosted, prepared))

    def _restore(self, hosted: SubtaskRunner, prepared: Prepared) -> None:
        hosted.operator.restore(prepared.restored_state)
        prepared.fill_inboxes()
        hosted.is_ready = True
        self._turns.add(hosted.task)
        self.say(SubtaskRunning(hosted.attempt, hosted.subtask))
        if prepared.was_finished:
            self._finish_again(hosted)
        for channel, element in self._post.early(hosted.subtask, hosted.run):
            self._arrive(hosted.run, channel, element)

    def _finish_again(self, hosted: SubtaskRunner) -> None:
        """It had finished before the checkpoint: say so downstream and leave."""
        hosted.announce_end()
        hosted.task.leaving = True
        hosted.task.aligner.ended.update(hosted.task.inboxes)
        hosted.obey(hosted.task.leave())

    def _deliver(self, subtask: SubtaskId, attempt: AttemptId, mail: object) -> None:
        """A stale message is dropped, and a trigger always gets an answer."""
        hosted = self._hosted.get(subtask)
        is_current = hosted is not None and hosted.attempt == attempt
        if is_current and hosted is not None and hosted.is_ready:
            self._turns.post(subtask, mail)
        elif isinstance(mail, Barrier):
            closing = Reason.CHECKPOINT_DECLINED_TASK_CLOSING
            reason = Reason.CHECKPOINT_DECLINED_TASK_NOT_READY if is_current else closing
            self.say(events.SubtaskDeclined(attempt, mail.checkpoint, subtask, reason))

    def _reset(self, subtasks: tuple[SubtaskId, ...]) -> None:
        for subtask in subtasks:
            hosted = self._hosted.pop(subtask, None)
            if hosted is not None:
                self._turns.remove(subtask)
                self._alarms.pop(subtask, None)
                hosted.abandon()
                self._left.append(hosted.uploads)
                self._close(hosted)
                if all(other.run != hosted.run for other in self._hosted.values()):
                    self._exchange.drop(hosted.run)
            self._post.unseat(subtask)

    def _close(self, hosted: SubtaskRunner) -> None:
        hosted.is_ready = False
        try:
            hosted.operator.close()
        except BaseException:  # a panic of native code too
            log.warning("%s did not close cleanly", hosted.subtask, exc_info=True)

    # -- what the exchange brings

    def _arrive(self, run: Run, channel: ChannelId, element: object) -> None:
        receiver = self._launcher.topology.receiver(channel)
        hosted = self._of(receiver, run)
        if hosted is None:
            self._post.keep_early(run, channel, element)
            return
        self._guarded(
            hosted, lambda: hosted.obey(hosted.task.receive(channel, element, self._clock.now()))
        )

    def _credited(self, run: Run, channel: ChannelId, batches: int) -> None:
        hosted = self._of(self._launcher.topology.sender(channel), run)
        if hosted is not None:
            self._guarded(hosted, lambda: hosted.obey(hosted.task.granted(channel, batches)))

    def _broken(self, news: Broken) -> None:
        """It fails those who used the connection; an attempt behind that has its own."""
        words = f"the connection to slot {news.peer} broke: {news.cause}"
        for hosted in list(self._hosted.values()):
            if hosted.run in news.runs and self._post.talks_to(hosted.subtask, news.peer):
                self.failed(hosted, FailureCause.CONNECTION, words)

    def _of(self, subtask: SubtaskId, run: Run) -> SubtaskRunner | None:
        hosted = self._hosted.get(subtask)
        return hosted if hosted is not None and hosted.run == run and hosted.is_ready else None

    # -- for the hosted (weir.slot.subtask_runner.Home)

    def transmit(self, hosted: SubtaskRunner, channel: ChannelId, element: object) -> None:
        self._post.send(hosted.run, channel, element)

    def grant(self, hosted: SubtaskRunner, channel: ChannelId, batches: int) -> None:
        self._post.grant(hosted.run, channel, batches)

    def say(self, event: object) -> None:
        self._speak(event)

    def settle(
        self, hosted: SubtaskRunner, act: Callable[[Task], list[TaskAction]], words: str
    ) -> None:
        """Called beside the mailbox: the subtask hears of it in its own turn."""
        self.post(lambda: self._settled(hosted, Settled(act, words)))

    def _settled(self, hosted: SubtaskRunner, settled: Settled) -> None:
        if self._of(hosted.subtask, hosted.run) is hosted:
            self._turns.post(hosted.subtask, settled)

    def rest(self, hosted: SubtaskRunner, millis: int) -> None:
        self._turns.idle_sources.add(hosted.subtask)
        self._alarms[hosted.subtask] = Millis(self._clock.now() + millis)

    def unsaved_bytes(self, before: CheckpointId) -> int:
        """What is held of older checkpoints until it is durable, for subtasks that are gone too."""
        self._left = [uploads for uploads in self._left if uploads.is_busy]
        known = [*self._left, *(hosted.uploads for hosted in self._hosted.values())]
        return sum(uploads.unsaved_bytes(before) for uploads in known)

    def gone(self, hosted: SubtaskRunner) -> None:
        """The subtask has finished; a trigger that it did not read any more is declined."""
        unread = self._turns.remove(hosted.subtask)
        self._hosted.pop(hosted.subtask, None)
        self._close(hosted)
        for mail in unread:
            self._deliver(hosted.subtask, hosted.attempt, mail.message)

    def failed(
        self, hosted: SubtaskRunner, cause: FailureCause, words: str, error: str = ""
    ) -> None:
        """Tell the driver, once; what becomes of the subtask is its decision."""
        if hosted.has_failed:
            return
        hosted.has_failed = True
        if hosted.is_ready:
            self._turns.remove(hosted.subtask)
            hosted.is_ready = False
        self._speak(
            SubtaskFailure(hosted.attempt, hosted.subtask, cause, words[:LONGEST_WORDS], error)
        )
