"""A simulated slot: the production scheduler, with simulated subtasks around it.

The slot asks ``Scheduler`` what to do and does it. What the real slot does with threads and sockets
happens here through the world's heap: mail of the driver, elements of the network and the ends of
uploads arrive as calls, and a turn takes its time.
"""

from collections.abc import Callable
from dataclasses import dataclass

from simulation.external import FencedOut
from simulation.hosted import Boss, Hosted, Surroundings
from simulation.network import Run
from simulation.operators import Keyed, Map, Operator, Sink, Source, UnionMap, UserCodeError
from simulation.restoring import Unreadable, load
from simulation.uploads import Uploads
from weir.core import attempt as attempts
from weir.core.alignment import Aligner, Tracker
from weir.core.barriers import Barrier, CancelMarker, EndOfInput
from weir.core.channels import Inbox, Outbox
from weir.core.coordinator import events
from weir.core.enumerator import AssignSplit, NoMoreSplits, NoSplitsYet
from weir.core.ids import RECOVERED, AttemptId, ChannelId, CheckpointId, SlotId, SubtaskId
from weir.core.lifecycle import SubtaskRunning
from weir.core.policy import Mode
from weir.core.reasons import Reason
from weir.core.rescale import StateAssignment
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
from weir.core.snapshots import CheckpointKind
from weir.core.task import Task, TaskAction


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

    act: Callable[[Task], list[TaskAction]]


class Slot:
    """One Python process of the job."""

    def __init__(self, name: SlotId, sim: Surroundings, boss: Boss) -> None:
        self.name = name
        self.sim = sim
        self.world = sim.world
        self.boss = boss
        self.alive = True
        self.standing = False
        self.hosted: dict[SubtaskId, Hosted] = {}
        self.turns = Scheduler(sim.scenario.output_limit, batch_limit=2)
        self._awake = False
        self._busy = 1
        """How long the turn under way keeps the thread."""

    # -- orders of the driver

    def launch(
        self,
        attempt: AttemptId,
        restored: CheckpointId,
        placed: tuple[tuple[SubtaskId, StateAssignment], ...],
    ) -> None:
        for subtask, state_assignment in placed:
            run = (int(self.boss.epoch), int(attempt))
            uploads = Uploads(self.sim.store, run, subtask, self._settle)
            operator = self._operator(subtask, run)
            self.hosted[subtask] = Hosted(self, run, self._task(subtask), operator, uploads)
            wait = self.world.delay(1, 8)
            self.world.at(wait, self._restored, subtask, run, state_assignment, restored)

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
        self,
        subtask: SubtaskId,
        run: Run,
        state_assignment: StateAssignment,
        restored: CheckpointId,
    ) -> None:
        hosted = self._of(subtask, run)
        if hosted is None:
            return
        try:
            batches = load(hosted.operator, hosted.uploads, state_assignment, restored)
        except Unreadable:
            hosted.fail(attempts.FailureCause.CHECKPOINT)
            return
        for channel, inbox in hosted.task.inboxes.items():
            if channel.sender == RECOVERED:
                inbox.queue.extend(batches.get(channel.edge, ()))
                if inbox.queue:
                    self.world.saw("replayed in-flight data")
                inbox.queue.append(EndOfInput())
        hosted.say(SubtaskRunning(hosted.attempt, subtask))
        wait = self.world.rng.choice((0, 0, 1, 3, 9))
        self.world.at(wait, self._ready, subtask, run, state_assignment)

    def _ready(self, subtask: SubtaskId, run: Run, state_assignment: StateAssignment) -> None:
        hosted = self._of(subtask, run)
        if hosted is None:
            return
        hosted.ready = True
        self.turns.add(hosted.task)
        self.sim.network.attach(run, subtask, self, self.boss.topology)
        if state_assignment.finished:
            self._finish_again(hosted)
        self.wake()

    def _finish_again(self, hosted: Hosted) -> None:
        """It had finished before the checkpoint: say so downstream and leave."""
        self.world.saw("restored as finished")
        hosted.announce_end()
        hosted.task.leaving = True
        for channel in hosted.task.inboxes:
            hosted.task.aligner.ended.add(channel)
        hosted.obey(hosted.task.leave())

    def reset(self, subtasks: tuple[SubtaskId, ...]) -> None:
        for subtask in subtasks:
            hosted = self.hosted.pop(subtask, None)
            if hosted is not None:
                self.turns.remove(subtask)
                self.sim.network.detach(hosted.run, subtask)

    def gone(self, subtask: SubtaskId, run: Run) -> None:
        """The subtask has finished; a trigger that it did not read any more is declined."""
        if self._of(subtask, run) is None:
            return
        unread = self.turns.remove(subtask)
        self.reset((subtask,))
        for mail in unread:
            self.post(subtask, AttemptId(run[1]), mail.message)

    def post(self, subtask: SubtaskId, attempt: AttemptId, message: object) -> None:
        """Mail from the driver; a stale one is dropped, and a trigger always gets an answer."""
        hosted = self._of(subtask, (int(self.boss.epoch), int(attempt)))
        if hosted is not None and hosted.ready:
            self.turns.post(subtask, message)
            self.wake()
        elif isinstance(message, Barrier):
            closing = Reason.CHECKPOINT_DECLINED_TASK_CLOSING
            reason = closing if hosted is None else Reason.CHECKPOINT_DECLINED_TASK_NOT_READY
            decline = events.SubtaskDeclined(attempt, message.checkpoint, subtask, reason)
            self.boss.hear(self.name, decline, soft=True)
        elif hosted is not None and isinstance(message, AssignSplit | NoSplitsYet | NoMoreSplits):
            self.world.at(1, self.post, subtask, attempt, message)

    def die(self) -> None:
        """Kill -9."""
        if not self.alive:
            return
        self.alive = False
        for subtask, hosted in self.hosted.items():
            self.sim.network.lose_host(hosted.run, subtask, self.boss.topology)

    # -- what the network brings

    def arrive(self, run: Run, channel: ChannelId, element: object) -> None:
        hosted = self._of(self.boss.topology.receiver(channel), run)
        if hosted is not None:
            hosted.obey(hosted.task.receive(channel, element, self.world.millis))
            hosted.watch_time()
            self.wake()

    def credited(self, run: Run, channel: ChannelId, batches: int) -> None:
        hosted = self._of(self.boss.topology.sender(channel), run)
        if hosted is not None:
            hosted.obey(hosted.task.granted(channel, batches))
            self.wake()

    def disconnected(self, run: Run, subtask: SubtaskId) -> None:
        hosted = self._of(subtask, run)
        if hosted is not None:
            hosted.fail(attempts.FailureCause.CONNECTION)

    # -- time

    def wake(self) -> None:
        if self.alive and not self._awake and not self.standing:
            self._awake = True
            self.world.at(self._busy, self._turn)

    def rested(self, subtask: SubtaskId, run: Run) -> None:
        """A source has kept its pace."""
        if self._of(subtask, run) is not None:
            self.turns.idle_sources.discard(subtask)
            self.wake()

    def pass_time(self, subtask: SubtaskId, run: Run) -> None:
        hosted = self._of(subtask, run)
        if hosted is not None and hosted.ready and not self.standing:
            orders = hosted.task.pass_time(self.world.millis)
            if orders:
                self.world.saw("a barrier turned unaligned")
            hosted.obey(orders)
            self.wake()

    def stand_still(self, millis: int) -> None:
        """The process pauses: the machine swaps, or somebody traces it."""
        self.standing = True
        self.world.at(millis, self._go_on)

    def _go_on(self) -> None:
        self.standing = False
        self.wake()

    # -- turns

    def _turn(self) -> None:
        self._awake = False
        if not self.alive or self.standing:
            return
        waiting = self._waiting_control()
        turn = self.turns.next()
        if waiting and not isinstance(turn, Mail | ControlMarker):
            self.world.violated(f"{waiting} has to wait for {turn}")
        if isinstance(turn, Suspend):
            self._busy = 1
            return
        self._busy = self._cost(turn)
        hosted = self.hosted[turn.subtask]
        try:
            self._take(hosted, turn)
        except (UserCodeError, FencedOut):
            hosted.fail(attempts.FailureCause.USER_CODE)
        self.wake()

    def _cost(self, turn: Mail | ControlMarker | TimeMarker | ProcessBatches | PollSource) -> int:
        """Control costs next to nothing; user code takes its time."""
        scenario = self.sim.scenario
        if isinstance(turn, Mail | ControlMarker):
            return 1
        if isinstance(turn, ProcessBatches) and turn.subtask.operator == scenario.bottleneck:
            return scenario.bottleneck_cost
        return scenario.turn_cost

    def _waiting_control(self) -> str:
        """A barrier or cancel marker that could be handled at once: nothing is preferred to it."""
        for task in self.turns.tasks.values():
            for channel, inbox in task.inboxes.items():
                head = inbox.queue[0] if inbox.queue else None
                if isinstance(head, Barrier | CancelMarker) and channel not in task.aligner.blocked:
                    return f"{head} on {channel}"
        return ""

    def _take(self, hosted: Hosted, turn: ScheduledWork) -> None:
        match turn:
            case Mail(_, message):
                self._read_mail(hosted, message)
            case ControlMarker(_, channel, marker):
                hosted.note(channel, marker)
                hosted.obey(hosted.task.reach(channel, marker, self.world.millis))
                hosted.check_released(marker)
                hosted.watch_time()
            case TimeMarker(_, channel, marker):
                hosted.advance(channel, marker)
            case ProcessBatches():
                hosted.process(turn)
            case PollSource():
                hosted.poll()
            case Suspend():
                pass

    def _read_mail(self, hosted: Hosted, message: object) -> None:
        task, now = hosted.task, self.world.millis
        match message:
            case Barrier():
                hosted.obey(task.trigger(message, now))
            case Abort(checkpoint):
                hosted.told_aborted.add(checkpoint)
                hosted.uploads.increments.on_aborted(checkpoint)
                hosted.obey(task.abort(checkpoint, now))
            case Completed():
                self._hear_completed(hosted, message)
            case Settled(act):
                hosted.obey(act(task))
            case AssignSplit() | NoSplitsYet() | NoMoreSplits():
                assert isinstance(hosted.operator, Source)
                hosted.operator.hear(message)
                self.turns.idle_sources.discard(task.subtask)

    def _hear_completed(self, hosted: Hosted, notice: Completed) -> None:
        checkpoint = notice.checkpoint
        if self.world.chance(self.sim.scenario.chances.notification):
            self.world.saw("fault: notification fails")
            hosted.fail(attempts.FailureCause.CHECKPOINT)
            return
        hosted.uploads.increments.on_completed(checkpoint)
        hosted.obey(hosted.task.complete(checkpoint, notice.kind, leaving=notice.leaving))

    def _settle(
        self, subtask: SubtaskId, run: Run, act: Callable[[Task], list[TaskAction]]
    ) -> None:
        """An upload ended; its subtask hears of it in its own turn."""
        if self._of(subtask, run) is not None:
            self.turns.post(subtask, Settled(act))
            self.wake()

    def _of(self, subtask: SubtaskId, run: Run) -> Hosted | None:
        """The subtask, if it is still the one of that run."""
        hosted = self.hosted.get(subtask)
        return hosted if self.alive and hosted is not None and hosted.run == run else None
