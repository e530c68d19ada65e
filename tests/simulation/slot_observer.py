"""Checks, inside a production slot, the small promises that no output would show.

A task and a scheduler that observe themselves: no snapshot without its barriers or for an aborted
checkpoint, no barrier that waits for credit, no control that waits for data, no watermark that goes
back.
"""

from collections.abc import Sequence

from simulation.scenario import Scenario
from simulation.world import World
from weir.core.alignment import Aligner, Tracker
from weir.core.barriers import Barrier, CancelMarker, Idle, Watermark
from weir.core.channels import Element, Inbox, Outbox
from weir.core.ids import ChannelId, CheckpointId, Millis, SubtaskId
from weir.core.scheduler import (
    ControlMarker,
    Mail,
    ProcessBatches,
    ScheduledWork,
    Scheduler,
    Suspend,
    TimeMarker,
)
from weir.core.snapshots import CheckpointKind
from weir.core.task import Task, TaskAction
from weir.slot.turn_budget import TurnBudget

ROWS_A_TURN = 3


class ObservedTask(Task):
    """The queues and checkpoints of one subtask, observed."""

    def __init__(
        self,
        world: World,
        subtask: SubtaskId,
        aligner: Aligner | Tracker,
        inboxes: dict[ChannelId, Inbox],
        outboxes: dict[ChannelId, Outbox],
    ) -> None:
        super().__init__(subtask, aligner, inboxes, outboxes)
        self.world = world
        self.notified_aborted: set[CheckpointId] = set()
        self.delivered: dict[CheckpointId, set[ChannelId]] = {}
        """Where each checkpoint's barrier has been reached."""
        self.times: dict[ChannelId, Millis] = {}

    def reach(self, channel: ChannelId, marker: Element, now: Millis) -> list[TaskAction]:
        if isinstance(marker, Barrier):
            self.delivered.setdefault(marker.checkpoint, set()).add(channel)
        orders = self._recorded(super().reach(channel, marker, now))
        if isinstance(marker, CancelMarker):
            self._check_released(marker.checkpoint)
        return orders

    def trigger(self, barrier: Barrier, now: Millis) -> list[TaskAction]:
        return self._recorded(super().trigger(barrier, now))

    def abort(self, checkpoint: CheckpointId, now: Millis) -> list[TaskAction]:
        self.notified_aborted.add(checkpoint)
        return self._recorded(super().abort(checkpoint, now))

    def complete(
        self, checkpoint: CheckpointId, kind: CheckpointKind, *, leaving: bool
    ) -> list[TaskAction]:
        return self._recorded(super().complete(checkpoint, kind, leaving=leaving))

    def pass_time(self, now: Millis) -> list[TaskAction]:
        orders = self._recorded(super().pass_time(now))
        if orders:
            self.world.saw("a barrier turned unaligned")
        return orders

    def send(self, channel: ChannelId) -> list[TaskAction]:
        return self._recorded(super().send(channel))

    def broadcast(self, barrier: Barrier) -> list[TaskAction]:
        orders = super().broadcast(barrier)
        for outbox in self.outboxes.values():
            if outbox.queue and isinstance(outbox.queue[0], Barrier):
                self.world.violated(f"a barrier waits for credit on {outbox.channel}")
        return orders

    def _recorded(self, orders: list[TaskAction]) -> list[TaskAction]:
        if orders:
            name = str(self.subtask)
            for order in orders:
                self.world.record(name, order)
        return orders

    def check_capture(self, checkpoint: CheckpointId) -> None:
        """Called when the operator's state is captured."""
        barrier = self.parts[checkpoint].barrier
        self.world.saw(f"snapshot: {barrier.alignment.value}")
        there = self.delivered.pop(checkpoint, set()) | self.aligner.ended
        missing = [channel for channel in self.inboxes if channel not in there]
        if missing and not barrier.overtakes and not barrier.may_time_out:
            self.world.violated(f"{self.subtask} snapshots without the barrier of {missing[0]}")
        if checkpoint in self.notified_aborted:
            self.world.violated(f"{self.subtask} snapshots checkpoint {checkpoint}, long aborted")
        if barrier.kind.drains and not self.at_end:
            self.world.violated(f"{self.subtask} was not drained before its last savepoint")

    def check_time(self, channel: ChannelId, time: Millis) -> None:
        if time < self.times.get(channel, time):
            self.world.violated(f"the watermark of {channel} went back to {time}")
        self.times[channel] = time

    def _check_released(self, checkpoint: CheckpointId) -> None:
        """No alignment waits for a checkpoint that was cancelled."""
        aligner = self.aligner
        if isinstance(aligner, Tracker):
            waits = checkpoint in aligner.waiting
        else:
            waits = aligner.barrier is not None and aligner.barrier.checkpoint == checkpoint
        if waits:
            self.world.violated(f"{self.subtask} waits for {checkpoint}, long aborted")


class ObservedTurns(Scheduler):
    """The scheduler of one slot, observed; it also draws how long a turn lasts."""

    def __init__(self, world: World, scenario: Scenario) -> None:
        super().__init__(scenario.output_limit, batch_limit=2)
        self.world = world
        self.scenario = scenario
        self.cost_ms = 1

    def next(self) -> ScheduledWork:
        waiting = self._waiting_control()
        turn = super().next()
        if waiting and not isinstance(turn, Mail | ControlMarker):
            self.world.violated(f"{waiting} has to wait for {turn}")
        if isinstance(turn, TimeMarker):
            self._observe(turn)
        self.cost_ms = self._cost(turn)
        return turn

    def processed(self, turn: ProcessBatches, rest: Sequence[Element] = ()) -> list[TaskAction]:
        if rest:
            self.world.saw("a turn was cut")
        return super().processed(turn, rest)

    def _observe(self, turn: TimeMarker) -> None:
        task = self.tasks[turn.subtask]
        assert isinstance(task, ObservedTask)
        if isinstance(turn.marker, Watermark):
            task.check_time(turn.channel, turn.marker.time)
        elif isinstance(turn.marker, Idle):
            self.world.saw("an idle channel")

    def _cost(self, turn: ScheduledWork) -> int:
        """Control costs next to nothing; user code takes its time."""
        if isinstance(turn, Mail | ControlMarker | Suspend):
            return 1
        if isinstance(turn, ProcessBatches) and turn.subtask.operator == self.scenario.bottleneck:
            return self.scenario.bottleneck_cost
        return self.scenario.turn_cost

    def _waiting_control(self) -> str:
        """A barrier or cancel marker that could be handled at once: nothing is preferred to it."""
        for task in self.tasks.values():
            for channel, inbox in task.inboxes.items():
                head = inbox.queue[0] if inbox.queue else None
                if isinstance(head, Barrier | CancelMarker) and channel not in task.aligner.blocked:
                    return f"{head} on {channel}"
        return ""


class DrawnBudget(TurnBudget):
    """A turn takes a few rows, as drawn."""

    __slots__ = ("_world",)

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self.rows = world.rng.randint(1, ROWS_A_TURN)

    def record(self, rows: int, seconds: float, size: int = 0) -> None:
        del rows, seconds, size
        self.rows = self._world.rng.randint(1, ROWS_A_TURN)
