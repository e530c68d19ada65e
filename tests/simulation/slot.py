"""A simulated slot: the production scheduler and tasks, with simulated user code around them.

The slot obeys. It asks ``Turns`` what to do, does it, and carries out the orders that come back;
uploads take simulated time and their results are posted to the mailbox like everything else. What
the real slot does with threads and sockets happens here through the world's heap.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from simulation.external import External, FencedOut
from simulation.network import Network, Run
from simulation.operators import (
    GROUPS,
    Input,
    Keyed,
    Map,
    Operator,
    Sink,
    Source,
    UnionMap,
    UserCodeError,
)
from simulation.restoring import Unreadable, load
from simulation.scenario import Scenario
from simulation.store import Store
from simulation.uploads import Uploads
from simulation.world import World
from weir.core import attempt as attempts
from weir.core.alignment import Aligner, Tracker
from weir.core.barriers import Barrier, CancelMarker, EndOfData, EndOfInput, Watermark
from weir.core.channels import Inbox, Outbox
from weir.core.coordinator import events
from weir.core.enumerator import AssignSplit, NoMoreSplits
from weir.core.ids import (
    RECOVERED,
    AttemptId,
    ChannelId,
    CheckpointId,
    Epoch,
    SlotId,
    SubtaskId,
)
from weir.core.job import SplitWanted
from weir.core.lifecycle import SubtaskFinished, SubtaskRunning
from weir.core.policy import Mode
from weir.core.reasons import Reason
from weir.core.rescale import Inheritance
from weir.core.snapshots import CheckpointKind
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
    Order,
    PersistInFlight,
    Prepare,
    Task,
    Transmit,
)
from weir.core.topology import EdgeKind, Topology
from weir.core.turns import Advance, Mail, Poll, Process, Reach, Rest, Turn, Turns

ROWS_A_TURN = 3


class Boss(Protocol):
    """The driver, as far as a slot is concerned."""

    epoch: Epoch
    topology: Topology

    def hear(self, slot: SlotId, event: object, *, soft: bool = False) -> None: ...


@dataclass
class Hosted:
    """One subtask in this slot."""

    run: Run
    task: Task
    operator: Operator
    ready: bool = False
    stopped: bool = False
    """Behind the barrier of a savepoint that ends the job."""
    told_aborted: set[CheckpointId] = field(default_factory=set)
    uploads: Uploads = field(init=False)


@dataclass(frozen=True)
class Abort:
    """Mail: the checkpoint is dead."""

    checkpoint: CheckpointId


@dataclass(frozen=True)
class Completed:
    """Mail: the checkpoint is complete."""

    checkpoint: CheckpointId
    kind: CheckpointKind
    leaving: bool


@dataclass(frozen=True)
class Settled:
    """Mail: an upload is over, one way or the other."""

    act: Callable[[Task], list[Order]]


class Slot:
    """One Python process of the job."""

    def __init__(self, name: SlotId, sim: "Surroundings", boss: Boss) -> None:
        self.name = name
        self.sim = sim
        self.world = sim.world
        self.boss = boss
        self.alive = True
        self.standing = False
        self.hosted: dict[SubtaskId, Hosted] = {}
        self.turns = Turns(sim.scenario.output_limit, batch_limit=2)
        self._awake = False
        self._busy = 1
        """How long the turn under way keeps the thread."""

    # -- orders of the driver

    def launch(
        self,
        attempt: AttemptId,
        restored: CheckpointId,
        placed: tuple[tuple[SubtaskId, Inheritance], ...],
    ) -> None:
        for subtask, inheritance in placed:
            run = (int(self.boss.epoch), int(attempt))
            operator = self._operator(subtask, run)
            hosted = Hosted(run, self._task(subtask), operator)
            hosted.uploads = Uploads(self.sim.store, hosted.run, subtask, self._settle)
            self.hosted[subtask] = hosted
            wait = self.world.delay(1, 8)
            self.world.at(wait, self._restored, subtask, run, inheritance, restored)

    def _task(self, subtask: SubtaskId) -> Task:
        topology, policy = self.boss.topology, self.sim.scenario.policy
        inputs = topology.inputs[subtask]
        recovered = {ChannelId(c.edge, RECOVERED, c.receiver): 0 for c in inputs}
        channels = (*recovered, *inputs)
        machine = Aligner if policy.mode is Mode.EXACTLY_ONCE else Tracker
        declines = not policy.after_tasks_finish
        return Task(
            subtask,
            machine(channels, declines_on_end=declines),
            {channel: Inbox(channel) for channel in channels},
            {c: Outbox(c, self.sim.scenario.credit) for c in topology.outputs[subtask]},
        )

    def _operator(self, subtask: SubtaskId, run: Run) -> Operator:
        topology, world = self.boss.topology, self.world
        role = dict(self.sim.scenario.shape.roles)[subtask.operator]
        match role:
            case "source":
                return Source(world, topology, subtask, self.sim.scenario.rows)
            case "map" | "union":
                kind = Map if role == "map" else UnionMap
                return kind(world, topology, subtask, f"{subtask}@{run}")
            case "sink":
                return Sink(world, topology, subtask, self.sim.external, run)
            case _:
                return Keyed(world, topology, subtask)

    def _restored(
        self, subtask: SubtaskId, run: Run, inheritance: Inheritance, restored: CheckpointId
    ) -> None:
        hosted = self._of(subtask, run)
        if hosted is None:
            return
        try:
            batches = load(hosted.operator, hosted.uploads, inheritance, restored)
        except Unreadable:
            self._fail(hosted, attempts.FailureCause.CHECKPOINT)
            return
        task = hosted.task
        for channel, inbox in task.inboxes.items():
            if channel.sender == RECOVERED:
                inbox.queue.extend(batches.get(channel.edge, ()))
                if inbox.queue:
                    self.world.saw("replayed in-flight data")
                inbox.queue.append(EndOfInput())
        self._say(hosted, SubtaskRunning(AttemptId(run[1]), subtask))
        wait = self.world.rng.choice((0, 0, 1, 3, 9))
        self.world.at(wait, self._ready, subtask, run, inheritance.finished)

    def _ready(self, subtask: SubtaskId, run: Run, finished: bool) -> None:
        hosted = self._of(subtask, run)
        if hosted is None:
            return
        hosted.ready = True
        self.turns.add(hosted.task)
        self.sim.network.attach(run, subtask, self, self.boss.topology)
        if finished:
            self._finish_again(hosted)
        self.wake()

    def _finish_again(self, hosted: Hosted) -> None:
        """It had finished before the checkpoint: say so downstream and leave."""
        self.world.saw("restored as finished")
        self._announce_end(hosted)
        hosted.task.leaving = True
        for channel in hosted.task.inboxes:
            hosted.task.aligner.ended.add(channel)
        self._obey(hosted, hosted.task.leave())

    def reset(self, subtasks: tuple[SubtaskId, ...]) -> None:
        for subtask in subtasks:
            hosted = self.hosted.pop(subtask, None)
            if hosted is not None:
                self.turns.remove(subtask)
                self.sim.network.detach(hosted.run, subtask)

    def post(self, subtask: SubtaskId, attempt: AttemptId, message: object) -> None:
        """Mail from the driver; a stale one is dropped, and a trigger always gets an answer."""
        run = (int(self.boss.epoch), int(attempt))
        hosted = self._of(subtask, run)
        if hosted is not None and hosted.ready:
            self.turns.post(subtask, message)
            self.wake()
        elif isinstance(message, Barrier):
            reason = (
                Reason.CHECKPOINT_DECLINED_TASK_CLOSING
                if hosted is None
                else Reason.CHECKPOINT_DECLINED_TASK_NOT_READY
            )
            decline = events.SubtaskDeclined(attempt, message.checkpoint, subtask, reason)
            self.boss.hear(self.name, decline, soft=True)
        elif hosted is not None and isinstance(message, AssignSplit | NoMoreSplits):
            self.world.at(1, self.post, subtask, attempt, message)

    def die(self) -> None:
        """kill -9."""
        if not self.alive:
            return
        self.alive = False
        for subtask, hosted in self.hosted.items():
            self.sim.network.lose_host(hosted.run, subtask, self.boss.topology)

    # -- what the network brings

    def arrive(self, run: Run, channel: ChannelId, element: object) -> None:
        subtask = self.boss.topology.receiver(channel)
        hosted = self._of(subtask, run)
        if hosted is not None:
            self._obey(hosted, hosted.task.receive(channel, element, self.world.millis))
            self._watch_time(hosted)
            self.wake()

    def credited(self, run: Run, channel: ChannelId, batches: int) -> None:
        hosted = self._of(self.boss.topology.sender(channel), run)
        if hosted is not None:
            self._obey(hosted, hosted.task.granted(channel, batches))
            self.wake()

    def disconnected(self, run: Run, subtask: SubtaskId) -> None:
        hosted = self._of(subtask, run)
        if hosted is not None:
            self._fail(hosted, attempts.FailureCause.CONNECTION)

    # -- turns

    def wake(self) -> None:
        if self.alive and not self._awake and not self.standing:
            self._awake = True
            self.world.at(self._busy, self._turn)

    def stand_still(self, millis: int) -> None:
        """A pause of the process: the machine swaps, a garbage collector runs, someone traces it."""
        self.standing = True
        self.world.at(millis, self._go_on)

    def _go_on(self) -> None:
        self.standing = False
        self.wake()

    def _turn(self) -> None:
        self._awake = False
        if not self.alive or self.standing:
            return
        waiting = self._waiting_control()
        turn = self.turns.next()
        if waiting and not isinstance(turn, Mail | Reach):
            self.world.violated(f"{waiting} has to wait for {turn}")
        if isinstance(turn, Rest):
            self._busy = 1
            return
        self._busy = 1 if isinstance(turn, Mail | Reach) else self.sim.scenario.turn_cost
        hosted = self.hosted[turn.subtask]
        try:
            self._take(hosted, turn)
        except (UserCodeError, FencedOut):
            self._fail(hosted, attempts.FailureCause.USER_CODE)
        self.wake()

    def _waiting_control(self) -> str:
        """A barrier or cancel marker that could be handled at once: nothing is preferred to it."""
        for task in self.turns.tasks.values():
            for channel, inbox in task.inboxes.items():
                head = inbox.queue[0] if inbox.queue else None
                if isinstance(head, Barrier | CancelMarker) and channel not in task.aligner.blocked:
                    return f"{head} on {channel}"
        return ""

    def _take(self, hosted: Hosted, turn: Turn) -> None:
        task, now = hosted.task, self.world.millis
        match turn:
            case Mail(_, message):
                self._read_mail(hosted, message)
            case Reach(_, channel, marker):
                self._obey(hosted, task.reach(channel, marker, now))
                self._check_released(task, marker)
                self._watch_time(hosted)
            case Advance(_, channel, marker):
                self._advance(hosted, channel, marker)
            case Process():
                self._process(hosted, turn)
            case Poll():
                self._poll(hosted)
            case _:
                pass

    def _check_released(self, task: Task, marker: object) -> None:
        """Nobody waits for a checkpoint that was cancelled."""
        if not isinstance(marker, CancelMarker):
            return
        aligner = task.aligner
        if isinstance(aligner, Tracker):
            waits = marker.checkpoint in aligner.waiting
        else:
            waits = aligner.barrier is not None and aligner.barrier.checkpoint == marker.checkpoint
        if waits:
            self.world.violated(f"{task.subtask} waits for {marker.checkpoint}, which is dead")

    def _read_mail(self, hosted: Hosted, message: object) -> None:
        task, now = hosted.task, self.world.millis
        match message:
            case Barrier():
                self._obey(hosted, task.trigger(message, now))
            case Abort(checkpoint):
                hosted.told_aborted.add(checkpoint)
                hosted.uploads.increments.heard_aborted(checkpoint)
                self._obey(hosted, task.abort(checkpoint, now))
            case Completed(checkpoint, kind, leaving):
                if self.world.chance(self.sim.scenario.chances.notification):
                    self.world.saw("fault: notification fails")
                    self._notification_failed(hosted, checkpoint)
                    return
                hosted.uploads.increments.heard_completed(checkpoint)
                self._obey(hosted, task.complete(checkpoint, kind, leaving=leaving))
            case Settled(act):
                self._obey(hosted, act(task))
            case AssignSplit(split):
                assert isinstance(hosted.operator, Source)
                hosted.operator.assign(int(split))
                self.turns.idle_sources.discard(task.subtask)
            case NoMoreSplits():
                assert isinstance(hosted.operator, Source)
                hosted.operator.no_more = True
                self.turns.idle_sources.discard(task.subtask)

    def _process(self, hosted: Hosted, turn: Process) -> None:
        rows = [row for batch in turn.batches if isinstance(batch, tuple) for row in batch]
        budget = self.world.rng.randint(1, ROWS_A_TURN)
        now, later = rows[:budget], rows[budget:]
        for row in now:
            self._process_row(hosted, turn.channel, row)
        rest = tuple(later) if later else None
        if rest is not None:
            self.world.saw("a turn was cut")
        self._obey(hosted, self.turns.processed(turn, rest))

    def _process_row(self, hosted: Hosted, channel: ChannelId, row: Input) -> None:
        if self.world.chance(self.sim.scenario.chances.user_code):
            self.world.saw("fault: user code fails")
            raise UserCodeError(str(row))
        operator = hosted.operator
        edge = self.boss.topology.edge_by_id[channel.edge]
        if isinstance(operator, Keyed) and edge.kind is EdgeKind.BROADCAST:
            operator.process_rule(row)
            return
        if isinstance(operator, Keyed):
            width = self.boss.topology.by_id[edge.target].parallelism
            self.sim.check_owner(operator.subtask, GROUPS[row[3]], width)
        self._emit(hosted, operator.process(row))

    def _emit(self, hosted: Hosted, rows: list[Input]) -> None:
        for channel, row in hosted.operator.router.route(rows):
            self._obey(hosted, hosted.task.emit(channel, (row,)))

    def _poll(self, hosted: Hosted) -> None:
        source, task = hosted.operator, hosted.task
        assert isinstance(source, Source)
        if hosted.stopped:
            self.world.violated(f"{task.subtask} reads on behind its last savepoint")
        if source.current is None:
            self.turns.idle_sources.add(task.subtask)
            if source.no_more:
                self._end_of_data(hosted)
            elif source.wants_split:
                source.wants_split = False
                self._say(hosted, SplitWanted(AttemptId(hosted.run[1]), task.subtask))
            return
        self._emit(hosted, source.poll(self.world.rng.randint(1, 2)))
        if source.current is not None and self.world.rng.random() < 0.5:
            time = source.low_watermark()
            if time > source.sent_watermark:
                source.sent_watermark = time
                self._to_all(hosted, Watermark(time))
        self.turns.idle_sources.add(task.subtask)
        self.world.at(self.sim.scenario.pace, self._rested, task.subtask, hosted.run)

    def _rested(self, subtask: SubtaskId, run: Run) -> None:
        if self._of(subtask, run) is not None:
            self.turns.idle_sources.discard(subtask)
            self.wake()

    def _advance(self, hosted: Hosted, channel: ChannelId, marker: object) -> None:
        operator = hosted.operator
        if isinstance(marker, Watermark):
            operator.advance(channel, marker.time)
        else:
            assert isinstance(marker, EndOfData)
            operator.at_end.add(channel)
        if all(channel in operator.at_end for channel in self.boss.topology.inputs[hosted.task.subtask]):
            self._end_of_data(hosted)
        elif operator.watermark > operator.sent_watermark:
            operator.sent_watermark = operator.watermark
            self._emit(hosted, operator.flush())
            self._to_all(hosted, Watermark(operator.watermark))

    def _end_of_data(self, hosted: Hosted) -> None:
        task = hosted.task
        if task.at_end:
            return
        self._emit(hosted, hosted.operator.flush())
        hosted.operator.ended()
        self._announce_end(hosted)

    def _announce_end(self, hosted: Hosted) -> None:
        task = hosted.task
        task.at_end = True
        self._to_all(hosted, EndOfData())
        self._say(hosted, events.EndOfDataReached(AttemptId(hosted.run[1]), task.subtask))

    def _to_all(self, hosted: Hosted, marker: object) -> None:
        for channel in hosted.task.outboxes:
            self._obey(hosted, hosted.task.emit(channel, marker))

    # -- orders of the task

    def _obey(self, hosted: Hosted, orders: list[Order]) -> None:
        for order in orders:
            self.world.tell(str(hosted.task.subtask), order)
            self._carry_out(hosted, order)

    def _carry_out(self, hosted: Hosted, order: Order) -> None:
        task, topology = hosted.task, self.boss.topology
        match order:
            case Transmit(channel, element):
                self.sim.network.send(hosted.run, channel, element, topology.receiver(channel))
            case Grant(channel, batches):
                self.sim.network.grant(hosted.run, channel, batches, topology.sender(channel))
            case Drain():
                self._end_of_data(hosted)
            case Prepare():
                self._emit(hosted, hosted.operator.flush())
            case Broadcast(barrier):
                self._obey(hosted, task.broadcast(barrier))
                self._check_no_credit_needed(task)
            case Capture(barrier):
                self._capture(hosted, barrier)
            case PersistInFlight(checkpoint, rows):
                hosted.uploads.persist_in_flight(checkpoint, rows)
            case Ack() | Decline():
                self._report(hosted, order)
            case Discard(checkpoint):
                hosted.uploads.discard(checkpoint)
            case Complete(checkpoint, commits):
                if commits:
                    hosted.operator.completed(checkpoint)
            case Finish():
                self._say(hosted, SubtaskFinished(AttemptId(hosted.run[1]), task.subtask))
                self.world.at(0, self._gone, task.subtask, hosted.run)

    def _check_no_credit_needed(self, task: Task) -> None:
        for outbox in task.outboxes.values():
            if outbox.queue and isinstance(outbox.queue[0], Barrier):
                self.world.violated(f"a barrier waits for credit on {outbox.channel}")

    def _gone(self, subtask: SubtaskId, run: Run) -> None:
        if self._of(subtask, run) is not None:
            self.reset((subtask,))

    def _capture(self, hosted: Hosted, barrier: Barrier) -> None:
        task = hosted.task
        attempt, subtask = AttemptId(hosted.run[1]), task.subtask
        if barrier.checkpoint in hosted.told_aborted:
            self.world.violated(f"{subtask} snapshots checkpoint {barrier.checkpoint}, long dead")
        hosted.stopped |= barrier.kind.is_synchronous
        if barrier.kind.drains and not task.at_end:
            self.world.violated(f"{subtask} was not drained before its last savepoint")
        progress = events.SubtaskProgressed(
            attempt, barrier.checkpoint, subtask, events.Phase.UPLOADING
        )
        self.boss.hear(self.name, progress, soft=True)
        self.world.saw(f"snapshot: {barrier.alignment.value}")
        if self.world.chance(self.sim.scenario.chances.sync_failure):
            self.world.saw("fault: synchronous part fails")
            self._obey(hosted, task.fail(barrier.checkpoint, Reason.TASK_CHECKPOINT_FAILURE))
            return
        if self.world.chance(self.sim.scenario.chances.declined):
            self.world.saw("fault: snapshot declined")
            self._obey(hosted, task.fail(barrier.checkpoint, Reason.CHECKPOINT_DECLINED))
            return
        try:
            captured = hosted.operator.capture(barrier.checkpoint)
        except FencedOut:
            self._fail(hosted, attempts.FailureCause.USER_CODE)
            return
        watermarks = hosted.operator.edge_watermarks()
        incremental = self.sim.scenario.policy.incremental
        hosted.uploads.start(barrier, captured, incremental=incremental)
        hosted.uploads.decorate(barrier.checkpoint, watermarks, reached_end=task.at_end)
        self._watch_time(hosted)

    def _settle(self, subtask: SubtaskId, run: Run, act: Callable[[Task], list[Order]]) -> None:
        """An upload ended; its subtask hears of it in its own turn."""
        if self._of(subtask, run) is not None:
            self.turns.post(subtask, Settled(act))
            self.wake()

    def _report(self, hosted: Hosted, order: Ack | Decline) -> None:
        attempt, subtask = AttemptId(hosted.run[1]), hosted.task.subtask
        if isinstance(order, Ack):
            if any(handle for handle in order.snapshot.in_flight):
                self.world.saw("acked in-flight data")
            event: object = events.SubtaskAcked(
                attempt, order.checkpoint, subtask, order.snapshot
            )
        else:
            event = events.SubtaskDeclined(attempt, order.checkpoint, subtask, order.reason)
        self.boss.hear(self.name, event, soft=True)

    def _watch_time(self, hosted: Hosted) -> None:
        deadline = hosted.task.next_deadline()
        if deadline is not None:
            wait = max(deadline - self.world.now, 0)
            self.world.at(wait, self._pass_time, hosted.task.subtask, hosted.run)

    def _pass_time(self, subtask: SubtaskId, run: Run) -> None:
        hosted = self._of(subtask, run)
        if hosted is not None and hosted.ready and not self.standing:
            orders = hosted.task.pass_time(self.world.millis)
            if orders:
                self.world.saw("a barrier turned unaligned")
            self._obey(hosted, orders)
            self.wake()

    # -- failing

    def _fail(self, hosted: Hosted, cause: attempts.FailureCause) -> None:
        subtask = hosted.task.subtask
        failed = attempts.SubtaskFailed(
            AttemptId(hosted.run[1]), subtask, cause, self.world.rng.random()
        )
        self._say(hosted, failed)
        if cause is attempts.FailureCause.USER_CODE:
            self.turns.remove(subtask)
            hosted.ready = False

    def _notification_failed(self, hosted: Hosted, checkpoint: CheckpointId) -> None:
        self._say(
            hosted,
            events.NotificationFailed(
                AttemptId(hosted.run[1]), checkpoint, hosted.task.subtask, "user code raised"
            ),
        )

    def _say(self, hosted: Hosted, event: object) -> None:
        del hosted
        self.boss.hear(self.name, event)

    def _of(self, subtask: SubtaskId, run: Run) -> Hosted | None:
        """The subtask, if it is still the one of that run."""
        hosted = self.hosted.get(subtask)
        return hosted if self.alive and hosted is not None and hosted.run == run else None


class Surroundings(Protocol):
    """What a slot finds in its world."""

    world: World
    scenario: Scenario
    store: Store
    external: External
    network: Network

    def check_owner(self, subtask: SubtaskId, group: int, width: int) -> None: ...
