"""Chooses what the one thread of a slot does next.

Control comes before data, always: mail from the driver, then barriers, cancel markers and ends at
the head of a channel, none of which needs room in an output (spec A11). Then data, in bounded
turns, round-robin over the subtasks and over the channels of each, so that none starves. This
module decides which records a turn processes; the slot processes them.

The result is a value: nothing here runs user code, waits, or reads a clock.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from weir.core.barriers import Barrier, CancelMarker, EndOfData, EndOfInput, Idle, Watermark
from weir.core.channels import Element, is_batch
from weir.core.ids import RECOVERED, ChannelId, SubtaskId
from weir.core.task import Grant, Task, TaskAction

CONTROL = (Barrier, CancelMarker, EndOfInput)
TIME = (Watermark, Idle, EndOfData)


@dataclass(frozen=True, slots=True)
class Mail:
    """A message of the driver for one subtask."""

    subtask: SubtaskId
    message: object


@dataclass(frozen=True, slots=True)
class ControlMarker:
    """A control marker at the head of its channel."""

    subtask: SubtaskId
    channel: ChannelId
    marker: Element


@dataclass(frozen=True, slots=True)
class TimeMarker:
    """Time, or the end of the data, at the head of its channel: user code may run and emit."""

    subtask: SubtaskId
    channel: ChannelId
    marker: Element


@dataclass(frozen=True, slots=True)
class ProcessBatches:
    """Some batches of one channel."""

    subtask: SubtaskId
    channel: ChannelId
    batches: list[Element]


@dataclass(frozen=True, slots=True)
class PollSource:
    """A source may read."""

    subtask: SubtaskId


@dataclass(frozen=True, slots=True)
class Suspend:
    """Nothing can be done until something arrives."""


ScheduledWork = Mail | ControlMarker | TimeMarker | ProcessBatches | PollSource | Suspend


@dataclass(slots=True)
class Scheduler:
    """The scheduler of one slot."""

    output_limit: int
    """A subtask with so many batches queued on one output gets no data."""
    batch_limit: int
    """A turn takes no more batches than this."""
    tasks: dict[SubtaskId, Task] = field(default_factory=dict)
    idle_sources: set[SubtaskId] = field(default_factory=set)
    """Sources that have nothing to read until something arrives for them."""
    mail: deque[Mail] = field(default_factory=deque)
    _round: deque[SubtaskId] = field(default_factory=deque)
    _lanes: dict[SubtaskId, deque[ChannelId]] = field(default_factory=dict)

    def add(self, task: Task) -> None:
        self.tasks[task.subtask] = task
        self._round.append(task.subtask)
        self._lanes[task.subtask] = deque(task.inboxes)

    def remove(self, subtask: SubtaskId) -> list[Mail]:
        """Remove a subtask. Returns its unread mail: a trigger needs an answer."""
        if self.tasks.pop(subtask, None) is None:
            return []
        self._round.remove(subtask)
        del self._lanes[subtask]
        self.idle_sources.discard(subtask)
        unread = [mail for mail in self.mail if mail.subtask == subtask]
        self.mail = deque(mail for mail in self.mail if mail.subtask != subtask)
        return unread

    def post(self, subtask: SubtaskId, message: object) -> None:
        """Mail for a subtask that has ended is dropped."""
        if subtask in self.tasks:
            self.mail.append(Mail(subtask, message))

    def next(self) -> ScheduledWork:
        if self.mail:
            return self.mail.popleft()
        for task in self.tasks.values():
            reached = self._control(task)
            if reached is not None:
                return reached
        for _ in range(len(self._round)):
            subtask = self._round[0]
            self._round.rotate(-1)
            turn = self._data(self.tasks[subtask])
            if turn is not None:
                return turn
        return Suspend()

    def processed(self, turn: ProcessBatches, rest: Sequence[Element] = ()) -> list[TaskAction]:
        """A turn is over; what it did not get to goes back to the head of its channel."""
        task = self.tasks.get(turn.subtask)
        if task is None:
            return []
        consumed = len(turn.batches) - len(rest)
        for batch in reversed(rest):
            task.inboxes[turn.channel].put_back(batch)
        if not consumed or turn.channel.sender == RECOVERED:
            return []
        return [Grant(turn.channel, consumed)]

    def _control(self, task: Task) -> ControlMarker | None:
        for channel, inbox in task.inboxes.items():
            if not inbox.queue or channel in task.aligner.blocked:
                continue
            if isinstance(inbox.queue[0], CONTROL):
                return ControlMarker(task.subtask, channel, inbox.queue.popleft())
        return None

    def _data(self, task: Task) -> ScheduledWork | None:
        if not task.has_room(self.output_limit) or task.finished:
            return None
        if not task.inboxes:
            idle = task.holding or task.at_end or task.subtask in self.idle_sources
            return None if idle else PollSource(task.subtask)
        lanes = self._lanes[task.subtask]
        recovering = self._is_recovering(task)
        for _ in range(len(lanes)):
            channel = lanes[0]
            lanes.rotate(-1)
            if recovering and channel.sender != RECOVERED:
                continue
            turn = self._lane(task, channel)
            if turn is not None:
                return turn
        return None

    def _lane(self, task: Task, channel: ChannelId) -> ScheduledWork | None:
        inbox = task.inboxes[channel]
        if not inbox.queue or channel in task.aligner.blocked:
            return None
        if isinstance(inbox.queue[0], TIME):
            return TimeMarker(task.subtask, channel, inbox.queue.popleft())
        if is_batch(inbox.queue[0]):
            return ProcessBatches(task.subtask, channel, inbox.take_batches(self.batch_limit))
        return None

    def _is_recovering(self, task: Task) -> bool:
        """In-flight data of the restored checkpoint goes before anything new."""
        return any(
            channel.sender == RECOVERED and channel not in task.aligner.ended
            for channel in task.inboxes
        )
