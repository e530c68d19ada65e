"""One simulated subtask in its slot: user code around a production task, and obedience to it.

The task decides; whatever it orders is carried out here at once and in order. The small promises
that no output would betray (nothing is read behind the last savepoint, nobody waits for a dead
checkpoint) are checked where they could be broken.
"""

from dataclasses import dataclass, field
from typing import Protocol

from simulation.external import External, FencedOut
from simulation.network import Network, Run
from simulation.operators import GROUPS, Input, Keyed, Operator, Source, UserCodeError
from simulation.scenario import Scenario
from simulation.store import Store
from simulation.uploads import Uploads
from simulation.world import World
from weir.core import attempt as attempts
from weir.core.alignment import Tracker
from weir.core.barriers import Barrier, CancelMarker, EndOfData, Idle, Watermark
from weir.core.coordinator import events
from weir.core.ids import AttemptId, ChannelId, CheckpointId, Epoch, SlotId, SubtaskId
from weir.core.job_master import SplitWanted
from weir.core.lifecycle import SubtaskFinished
from weir.core.reasons import Reason
from weir.core.scheduler import ProcessBatches, Scheduler
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
from weir.core.topology import EdgeKind, Topology

ROWS_A_TURN = 3


class Boss(Protocol):
    """The driver, as far as a subtask is concerned."""

    epoch: Epoch
    topology: Topology

    def hear(self, slot: SlotId, event: object, *, soft: bool = False) -> None: ...


class Surroundings(Protocol):
    """What a slot finds in its world."""

    world: World
    scenario: Scenario
    store: Store
    external: External
    network: Network

    def check_owner(self, subtask: SubtaskId, group: int, width: int) -> None: ...


class Home(Protocol):
    """The slot, as far as a subtask is concerned."""

    name: SlotId
    sim: Surroundings
    boss: Boss
    turns: Scheduler

    def wake(self) -> None: ...
    def gone(self, subtask: SubtaskId, run: Run) -> None: ...
    def pass_time(self, subtask: SubtaskId, run: Run) -> None: ...
    def rested(self, subtask: SubtaskId, run: Run) -> None: ...


@dataclass
class Hosted:
    """A subtask, its operator and its uploads."""

    home: Home
    run: Run
    task: Task
    operator: Operator
    uploads: Uploads
    ready: bool = False
    stopped: bool = False
    """Behind the barrier of a savepoint that ends the job."""
    told_aborted: set[CheckpointId] = field(default_factory=set)
    delivered: dict[CheckpointId, set[ChannelId]] = field(default_factory=dict)
    """Where each checkpoint's barrier has been reached."""

    @property
    def world(self) -> World:
        return self.home.sim.world

    @property
    def topology(self) -> Topology:
        return self.home.boss.topology

    @property
    def attempt(self) -> AttemptId:
        return AttemptId(self.run[1])

    # -- work

    def process(self, turn: ProcessBatches) -> None:
        """A bounded number of rows; the rest goes back to the head of its channel."""
        rows = [row for batch in turn.batches if isinstance(batch, tuple) for row in batch]
        budget = self.world.rng.randint(1, ROWS_A_TURN)
        now, later = rows[:budget], rows[budget:]
        for row in now:
            self._process_row(turn.channel, row)
        if later:
            self.world.saw("a turn was cut")
        self.obey(self.home.turns.processed(turn, [tuple(later)] if later else []))

    def _process_row(self, channel: ChannelId, row: Input) -> None:
        if self.world.chance(self.home.sim.scenario.chances.user_code):
            self.world.saw("fault: user code fails")
            raise UserCodeError(str(row))
        operator = self.operator
        edge = self.topology.edge_by_id[channel.edge]
        if isinstance(operator, Keyed) and edge.kind is EdgeKind.BROADCAST:
            operator.process_rule(row)
            return
        if isinstance(operator, Keyed):
            width = self.topology.by_id[edge.target].parallelism
            self.home.sim.check_owner(operator.subtask, GROUPS[row[3]], width)
        self._emit(operator.process(row))

    def poll(self) -> None:
        source, task = self.operator, self.task
        assert isinstance(source, Source)
        if self.stopped:
            self.world.violated(f"{task.subtask} reads on behind its last savepoint")
        self.home.turns.idle_sources.add(task.subtask)
        if source.current is None:
            if source.no_more:
                self.end_of_data()
            elif source.wants_split:
                source.wants_split = False
                self.say(SplitWanted(self.attempt, task.subtask))
            else:
                self._pass_idleness_on(is_idle=source.is_idle)
            return
        self._pass_idleness_on(is_idle=False)
        self._emit(source.poll(self.world.rng.randint(1, 2)))
        if source.current is not None and self.world.rng.random() < 0.5:
            time = source.low_watermark()
            if time > source.sent_watermark:
                source.sent_watermark = time
                self._to_all(Watermark(time))
        pace = self.home.sim.scenario.pace
        self.world.at(pace, self.home.rested, task.subtask, self.run)

    def advance(self, channel: ChannelId, marker: object) -> None:
        operator = self.operator
        operator.advance(channel, marker)
        if operator.time.is_over:
            self.end_of_data()
            return
        if operator.watermark > operator.sent_watermark:
            operator.sent_watermark = operator.watermark
            operator.sent_idle = False
            self._emit(operator.flush())
            self._to_all(Watermark(operator.watermark))
        self._pass_idleness_on(is_idle=operator.time.is_idle)

    def _pass_idleness_on(self, *, is_idle: bool) -> None:
        operator = self.operator
        if is_idle != operator.sent_idle:
            operator.sent_idle = is_idle
            self._emit(operator.flush())
            self._to_all(Idle() if is_idle else Watermark(operator.sent_watermark))

    def end_of_data(self) -> None:
        if self.task.at_end:
            return
        self._emit(self.operator.flush())
        if self.world.is_news(self.task.subtask.operator, self.run[0]):
            self.operator.ended()
        self.announce_end()

    def announce_end(self) -> None:
        self.task.at_end = True
        self._to_all(EndOfData())
        self.say(events.EndOfDataReached(self.attempt, self.task.subtask))

    def _emit(self, rows: list[Input]) -> None:
        for channel, row in self.operator.router.route(rows):
            self.obey(self.task.emit(channel, (row,)))

    def _to_all(self, marker: object) -> None:
        for channel in self.task.outboxes:
            self.obey(self.task.emit(channel, marker))

    # -- orders of the task

    def obey(self, orders: list[TaskAction]) -> None:
        for order in orders:
            self.world.tell(str(self.task.subtask), order)
            self._carry_out(order)

    def _carry_out(self, order: TaskAction) -> None:  # noqa: C901 - one case for each order
        network, topology = self.home.sim.network, self.topology
        match order:
            case Transmit(channel, element):
                network.send(self.run, channel, element, topology.receiver(channel))
            case Grant(channel, batches):
                network.grant(self.run, channel, batches, topology.sender(channel))
            case Drain():
                self.end_of_data()
            case Prepare():
                self._emit(self.operator.flush())
            case Broadcast(barrier):
                self.obey(self.task.broadcast(barrier))
                self._check_no_credit_needed()
            case Capture(barrier):
                self._capture(barrier)
            case PersistInFlight(checkpoint, rows):
                self.uploads.persist_in_flight(checkpoint, rows)
            case Ack() | Decline():
                self._report(order)
            case Discard(checkpoint):
                self.uploads.discard(checkpoint)
            case Complete(checkpoint, commits):
                if commits:
                    self.operator.completed(checkpoint)
            case Finish():
                self.say(SubtaskFinished(self.attempt, self.task.subtask))
                self.world.at(0, self.home.gone, self.task.subtask, self.run)

    def _capture(self, barrier: Barrier) -> None:
        self._check_capture(barrier)
        self.stopped |= barrier.kind.is_synchronous
        self.world.saw(f"snapshot: {barrier.alignment.value}")
        phase = events.Phase.UPLOADING
        subtask = self.task.subtask
        progress = events.SubtaskProgressed(self.attempt, barrier.checkpoint, subtask, phase)
        self.home.boss.hear(self.home.name, progress, soft=True)
        chances = self.home.sim.scenario.chances
        if self.world.chance(chances.sync_failure):
            self.world.saw("fault: synchronous part fails")
            self.obey(self.task.fail(barrier.checkpoint, Reason.TASK_CHECKPOINT_FAILURE))
            return
        if self.world.chance(chances.declined):
            self.world.saw("fault: snapshot declined")
            self.obey(self.task.fail(barrier.checkpoint, Reason.CHECKPOINT_DECLINED))
            return
        try:
            captured = self.operator.capture(barrier.checkpoint)
        except FencedOut:
            self.fail(attempts.FailureCause.USER_CODE)
            return
        incremental = self.home.sim.scenario.policy.incremental
        self.uploads.start(barrier, captured, incremental=incremental)
        watermarks = self.operator.time.by_edge()
        self.uploads.decorate(barrier.checkpoint, watermarks, reached_end=self.task.at_end)
        self.watch_time()

    def _report(self, order: Ack | Decline) -> None:
        subtask = self.task.subtask
        if isinstance(order, Ack):
            if order.snapshot.in_flight:
                self.world.saw("acked in-flight data")
            event: object = events.SubtaskAcked(
                self.attempt, order.checkpoint, subtask, order.snapshot
            )
        else:
            event = events.SubtaskDeclined(self.attempt, order.checkpoint, subtask, order.reason)
        self.home.boss.hear(self.home.name, event, soft=True)

    def watch_time(self) -> None:
        deadline = self.task.next_deadline()
        if deadline is not None:
            wait = max(deadline - self.world.now, 0)
            self.world.at(wait, self.home.pass_time, self.task.subtask, self.run)

    def say(self, event: object) -> None:
        """Something that must not be lost, or the link is broken."""
        self.home.boss.hear(self.home.name, event)

    def fail(self, cause: attempts.FailureCause) -> None:
        subtask, draw = self.task.subtask, self.world.rng.random()
        self.say(attempts.SubtaskFailed(self.attempt, subtask, cause, draw))
        if cause is attempts.FailureCause.USER_CODE:
            self.home.turns.remove(subtask)
            self.ready = False

    # -- small promises

    def note(self, channel: ChannelId, marker: object) -> None:
        if isinstance(marker, Barrier):
            self.delivered.setdefault(marker.checkpoint, set()).add(channel)

    def _check_capture(self, barrier: Barrier) -> None:
        subtask = self.task.subtask
        there = self.delivered.pop(barrier.checkpoint, set()) | self.task.aligner.ended
        missing = [channel for channel in self.task.inboxes if channel not in there]
        if missing and not barrier.overtakes and not barrier.may_time_out:
            self.world.violated(f"{subtask} snapshots without the barrier of {missing[0]}")
        if barrier.checkpoint in self.told_aborted:
            self.world.violated(f"{subtask} snapshots checkpoint {barrier.checkpoint}, long dead")
        if barrier.kind.drains and not self.task.at_end:
            self.world.violated(f"{subtask} was not drained before its last savepoint")

    def _check_no_credit_needed(self) -> None:
        for outbox in self.task.outboxes.values():
            if outbox.queue and isinstance(outbox.queue[0], Barrier):
                self.world.violated(f"a barrier waits for credit on {outbox.channel}")

    def check_released(self, marker: object) -> None:
        """Nobody waits for a checkpoint that was cancelled."""
        if not isinstance(marker, CancelMarker):
            return
        aligner = self.task.aligner
        if isinstance(aligner, Tracker):
            waits = marker.checkpoint in aligner.waiting
        else:
            waits = aligner.barrier is not None and aligner.barrier.checkpoint == marker.checkpoint
        if waits:
            self.world.violated(f"{self.task.subtask} waits for {marker.checkpoint}, long dead")
