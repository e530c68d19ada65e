"""Plays the slot of one subtask, so that a test only gives the input and checks the actions.

Rows travel as letters and digits: ``"a1"`` is a batch of one row, ``("a1", "a2")`` a batch of two.
The subtask passes every row it processes on to all its outputs. Nothing here decides: it takes the
work that the scheduler offers and carries out the actions of the task in order, as a slot must.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from weir.core.alignment import Aligner, Tracker
from weir.core.barriers import AlignmentType, Barrier, CancelMarker, EndOfData, Watermark
from weir.core.channels import Element, Inbox, Outbox
from weir.core.ids import RECOVERED, ChannelId, CheckpointId, EdgeId, Millis, OperatorId, SubtaskId
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
from weir.core.snapshots import CheckpointKind, InFlightHandle, Side, StateFile, SubtaskSnapshot
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

SUBTASK = SubtaskId(OperatorId("sum"), 0)
PLENTY = 1_000

Rows = tuple[object, ...]
InFlight = dict[tuple[ChannelId, Side], Rows]


def inputs(number: int) -> tuple[ChannelId, ...]:
    return tuple(ChannelId(EdgeId("in"), sender, 0) for sender in range(number))


def outputs(number: int) -> tuple[ChannelId, ...]:
    return tuple(ChannelId(EdgeId("out"), 0, receiver) for receiver in range(number))


A, B, C = inputs(3)
X, Y = outputs(2)
REPLAY = ChannelId(EdgeId("in"), RECOVERED, 0)
"""Brings back what was in flight when the restored checkpoint was taken."""


def barrier(checkpoint: int, alignment: AlignmentType = AlignmentType.ALIGNED) -> Barrier:
    return Barrier(
        CheckpointId(checkpoint),
        CheckpointKind.CHECKPOINT,
        alignment,
        triggered_at=Millis(0),
        location=f"chk-{checkpoint}",
    )


def overtaking(checkpoint: int) -> Barrier:
    return barrier(checkpoint, AlignmentType.UNALIGNED)


def impatient(checkpoint: int, timeout_ms: int) -> Barrier:
    """Aligned, until it has waited too long."""
    return replace(barrier(checkpoint), aligned_timeout_ms=timeout_ms)


def savepoint(checkpoint: int, kind: CheckpointKind = CheckpointKind.SAVEPOINT) -> Barrier:
    """As the coordinator sends it when checkpoints are unaligned, or turn so."""
    forced = barrier(checkpoint, AlignmentType.FORCED_ALIGNED)
    return replace(forced, kind=kind, aligned_timeout_ms=1)


def cancel(checkpoint: int) -> CancelMarker:
    return CancelMarker(CheckpointId(checkpoint))


def rows_of(batches: Iterable[Element]) -> Rows:
    """What is in these elements, row by row; markers have no rows."""
    return tuple(row for batch in batches for row in _rows(batch))


def _rows(element: Element) -> Rows:
    if isinstance(element, tuple):
        return element
    return (element,) if isinstance(element, str) else ()


def a_task(
    channels: tuple[ChannelId, ...] = (A, B),
    leads_to: tuple[ChannelId, ...] = (X,),
    *,
    credit: int = PLENTY,
    at_least_once: bool = False,
) -> Task:
    aligner = Tracker(channels) if at_least_once else Aligner(channels)
    return Task(
        SUBTASK,
        aligner,
        {channel: Inbox(channel) for channel in channels},
        {channel: Outbox(channel, credit) for channel in leads_to},
    )


@dataclass(slots=True)
class Slot:
    """One subtask and the slot that runs it, with a memory of all that was done."""

    task: Task = field(default_factory=a_task)
    batch_limit: int = PLENTY
    output_limit: int = PLENTY
    rows_per_turn: int = PLENTY
    """A longer turn is cut, and the rest put back."""
    buffered: list[str] = field(default_factory=list)
    """What the operator emits when it prepares for a barrier."""
    unread: list[str] = field(default_factory=list)
    """What a source has to read."""
    now: Millis = Millis(0)
    story: list[str] = field(default_factory=list)
    """All that was done, in order, as text."""
    orders: list[TaskAction] = field(default_factory=list)
    processed: dict[ChannelId, list[object]] = field(default_factory=lambda: defaultdict(list))
    sent: dict[ChannelId, list[Element]] = field(default_factory=lambda: defaultdict(list))
    captured: dict[CheckpointId, dict[ChannelId, Rows]] = field(default_factory=dict)
    """The state of the subtask at each snapshot: the rows it is made of."""
    in_flight: dict[CheckpointId, InFlight] = field(default_factory=dict)
    scheduler: Scheduler = field(init=False)

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(self.output_limit, self.batch_limit)
        self.scheduler.add(self.task)

    # -- what happens to it

    def arrive(self, channel: ChannelId, *elements: Element) -> None:
        """These come in from the wire, and nothing is processed yet."""
        for element in elements:
            self.obey(self.task.receive(channel, element, self.now))

    def feed(self, channel: ChannelId, *elements: Element) -> None:
        """These come in, and all that can be done is done."""
        self.arrive(channel, *elements)
        self.run()

    def run(self) -> None:
        while not isinstance(turn := self.scheduler.next(), Suspend):
            self.play(turn)

    def turn(self) -> None:
        self.play(self.scheduler.next())

    def pass_time(self, now: int) -> None:
        self.now = Millis(now)
        self.obey(self.task.pass_time(self.now))
        self.run()

    def trigger(self, barrier: Barrier) -> None:
        self.obey(self.task.trigger(barrier, self.now))
        self.run()

    def abort(self, checkpoint: int) -> None:
        self.obey(self.task.abort(CheckpointId(checkpoint), self.now))
        self.run()

    def complete(
        self,
        checkpoint: int,
        kind: CheckpointKind = CheckpointKind.CHECKPOINT,
        *,
        leaving: bool = False,
    ) -> None:
        self.obey(self.task.complete(CheckpointId(checkpoint), kind, leaving=leaving))

    def grant(self, channel: ChannelId, batches: int) -> None:
        self.obey(self.task.granted(channel, batches))
        self.run()

    def upload(self, checkpoint: int) -> None:
        """The captured state is durable."""
        snapshot = SubtaskSnapshot(SUBTASK)
        self.obey(self.task.captured(CheckpointId(checkpoint), snapshot))

    def upload_in_flight(self, checkpoint: int) -> None:
        """The in-flight data is durable."""
        caught = self.in_flight[CheckpointId(checkpoint)]
        handles = tuple(
            InFlightHandle(channel, side, StateFile(f"chk-{checkpoint}/{channel}", 1))
            for channel, side in caught
        )
        self.obey(self.task.persisted(CheckpointId(checkpoint), handles))

    def fail(self, checkpoint: int, reason: Reason) -> None:
        self.obey(self.task.fail(CheckpointId(checkpoint), reason))

    def end_data(self) -> None:
        """No input has rows left: the operator emits its last ones and reports it."""
        self.task.at_end = True
        for channel in self.task.outboxes:
            self.obey(self.task.emit(channel, EndOfData()))

    # -- what it does

    def play(self, turn: ScheduledWork) -> None:
        match turn:
            case ControlMarker(_, channel, marker):
                self.obey(self.task.reach(channel, marker, self.now))
            case ProcessBatches(_, channel, batches):
                self._process(turn, channel, batches)
            case TimeMarker(_, channel, marker):
                self.story.append(_words(channel, marker))
            case PollSource():
                self._poll()
            case Mail() | Suspend():
                raise AssertionError(f"{turn} is not for this slot")

    def _process(self, turn: ProcessBatches, channel: ChannelId, batches: list[Element]) -> None:
        rows = rows_of(batches)
        done, rest = rows[: self.rows_per_turn], rows[self.rows_per_turn :]
        for row in done:
            self.story.append(str(row))
            self.processed[channel].append(row)
            self.emit(row)
        self.obey(self.scheduler.processed(turn, [rest] if rest else []))

    def _poll(self) -> None:
        if not self.unread:
            self.scheduler.idle_sources.add(SUBTASK)
            return
        row = self.unread.pop(0)
        self.story.append(row)
        self.emit(row)

    def emit(self, element: Element) -> None:
        for channel in self.task.outboxes:
            self.obey(self.task.emit(channel, element))

    def obey(self, orders: Iterable[TaskAction]) -> None:
        for order in orders:
            self.orders.append(order)
            self.story.extend(_described(order))
            self._obey(order)

    def _obey(self, order: TaskAction) -> None:
        match order:
            case Drain():
                self.end_data()
            case Prepare():
                for row in self.buffered:
                    self.emit(row)
                self.buffered.clear()
            case Broadcast(barrier):
                self.obey(self.task.broadcast(barrier))
            case Capture(barrier):
                assert barrier.checkpoint not in self.captured, "one snapshot per checkpoint"
                rows = {channel: tuple(rows) for channel, rows in self.processed.items()}
                self.captured[barrier.checkpoint] = rows
            case PersistInFlight(checkpoint, rows):
                caught = {(channel, side): rows_of(batches) for channel, side, batches in rows}
                self.in_flight[checkpoint] = caught
            case Transmit(channel, element):
                self.sent[channel].append(element)
            case _:
                pass

    # -- what a test asks

    def ordered(self, *kinds: type[TaskAction]) -> list[TaskAction]:
        return [order for order in self.orders if isinstance(order, kinds)]

    @property
    def acks(self) -> list[CheckpointId]:
        return [order.checkpoint for order in self.orders if isinstance(order, Ack)]

    @property
    def declines(self) -> list[tuple[CheckpointId, Reason]]:
        return [(o.checkpoint, o.reason) for o in self.orders if isinstance(o, Decline)]

    @property
    def discards(self) -> list[CheckpointId]:
        return [order.checkpoint for order in self.orders if isinstance(order, Discard)]

    @property
    def grants(self) -> list[tuple[ChannelId, int]]:
        return [(o.channel, o.batches) for o in self.orders if isinstance(o, Grant)]

    def state_at(self, checkpoint: int) -> set[object]:
        """The rows that the snapshot has seen."""
        captured = self.captured[CheckpointId(checkpoint)]
        return {row for rows in captured.values() for row in rows}

    def caught_at(self, checkpoint: int) -> dict[ChannelId, Rows]:
        """The in-flight rows of the snapshot, by channel."""
        caught = self.in_flight.get(CheckpointId(checkpoint), {})
        return {channel: rows for (channel, _), rows in caught.items()}


def _described(order: TaskAction) -> Iterator[str]:
    verb = type(order).__name__.lower()
    match order:
        case Transmit(channel, element):
            yield _words(channel, element)
        case Capture(barrier):
            yield f"capture {barrier.checkpoint}"
        case PersistInFlight(checkpoint):
            yield f"save in-flight {checkpoint}"
        case Decline(checkpoint, reason):
            yield f"decline {checkpoint}: {reason.name}"
        case Prepare(checkpoint) | Ack(checkpoint) | Discard(checkpoint) | Complete(checkpoint):
            yield f"{verb} {checkpoint}"
        case Drain() | Finish():
            yield verb
        case _:
            pass


def _words(channel: ChannelId, element: Element) -> str:
    name = f"{channel.edge}{channel.sender if channel.edge == 'in' else channel.receiver}"
    match element:
        case Barrier(checkpoint, alignment=alignment):
            return f"{name}: barrier {checkpoint} {alignment}"
        case CancelMarker(checkpoint):
            return f"{name}: cancel {checkpoint}"
        case Watermark(time):
            return f"{name}: watermark {time}"
        case EndOfData():
            return f"{name}: end of data"
        case str() | tuple():
            return f"{name}: {' '.join(map(str, rows_of([element])))}"
        case _:
            return f"{name}: end of input"
