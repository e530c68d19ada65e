"""Decides what one subtask does at a barrier, in which order, and when it acks.

The order is fixed (spec A9): drop what is not newer; forward a cancel marker of an aborted one;
prepare; broadcast the barrier; save overtaken output; capture the state; the rest asynchronously;
ack. The slot carries the actions out in this order, because no record may be processed between
broadcast and capture. A task knows queues and credits but no socket; time is a parameter.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from weir.core.alignment import Aligner, GiveUp, InputsDone, Snapshot, Tracker, Verdict
from weir.core.barriers import Barrier, CancelMarker, EndOfInput
from weir.core.channels import Element, Inbox, Outbox, is_batch, unaligned
from weir.core.ids import ChannelId, CheckpointId, Millis, SubtaskId
from weir.core.reasons import Reason
from weir.core.snapshots import CheckpointKind, InFlightHandle, Side, SubtaskSnapshot


@dataclass(frozen=True, slots=True)
class Drain:
    """Stop reading: emit what is left and the end of data, before the barrier."""


@dataclass(frozen=True, slots=True)
class Prepare:
    """Let the operator emit what it has buffered; it belongs before the barrier."""

    checkpoint: CheckpointId


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Call ``broadcast`` with this barrier now."""

    barrier: Barrier


@dataclass(frozen=True, slots=True)
class Capture:
    """Capture the operator's state, and start its upload."""

    barrier: Barrier


@dataclass(frozen=True, slots=True)
class PersistInFlight:
    """Upload the data that the barrier overtook, channel by channel."""

    checkpoint: CheckpointId
    rows: tuple[tuple[ChannelId, Side, tuple[Element, ...]], ...]


@dataclass(frozen=True, slots=True)
class Ack:
    """Acknowledge the checkpoint: the snapshot is durable."""

    checkpoint: CheckpointId
    snapshot: SubtaskSnapshot
    start_delay_ms: int
    """From the trigger to the first barrier here."""
    alignment_ms: int
    """From the first barrier to the last."""
    processed_bytes: int
    """What went through the operator in that time."""


@dataclass(frozen=True, slots=True)
class Decline:
    """Decline the checkpoint: there will be no snapshot."""

    checkpoint: CheckpointId
    reason: Reason


@dataclass(frozen=True, slots=True)
class Discard:
    """Stop this checkpoint's uploads and delete what they wrote."""

    checkpoint: CheckpointId


@dataclass(frozen=True, slots=True)
class Transmit:
    """Put this on the wire."""

    channel: ChannelId
    element: Element


@dataclass(frozen=True, slots=True)
class Grant:
    """Grant the sender credit for so many more batches."""

    channel: ChannelId
    batches: int


@dataclass(frozen=True, slots=True)
class Complete:
    """Notify the operator that a checkpoint is complete; ``commits`` if sinks were committed."""

    checkpoint: CheckpointId
    commits: bool


@dataclass(frozen=True, slots=True)
class Finish:
    """The subtask is done and gone."""


TaskAction = (
    Drain
    | Prepare
    | Broadcast
    | Capture
    | PersistInFlight
    | Ack
    | Decline
    | Discard
    | Transmit
    | Grant
    | Complete
    | Finish
)


@dataclass(slots=True)
class PendingSnapshot:
    """A snapshot on its way to its ack."""

    barrier: Barrier
    since: Millis
    """When its first barrier came."""
    started: Millis
    aligned: Millis
    """When its last barrier came."""
    inputs_done: bool
    processed_bytes: int = 0
    """Between the two."""
    snapshot: SubtaskSnapshot | None = None
    recording: dict[ChannelId, list[Element]] = field(default_factory=dict)
    overtaken: dict[ChannelId, list[Element]] = field(default_factory=dict)
    outputs_waiting: set[ChannelId] = field(default_factory=set)
    persisting: bool = False
    stamp: int = 0  # of the wall clock, when its first barrier came

    def ack(self, snapshot: SubtaskSnapshot) -> Ack:
        """The trigger was stamped by another machine's clock, which may be ahead of ours."""
        delay, duration = max(0, self.stamp - self.barrier.triggered_at), self.aligned - self.since
        return Ack(self.barrier.checkpoint, snapshot, delay, duration, self.processed_bytes)


@dataclass(slots=True)
class Task:
    """The queues and checkpoints of one subtask."""

    subtask: SubtaskId
    aligner: Aligner | Tracker
    inboxes: dict[ChannelId, Inbox]
    outboxes: dict[ChannelId, Outbox]
    parts: dict[CheckpointId, PendingSnapshot] = field(default_factory=dict)
    aborted: set[CheckpointId] = field(default_factory=set)
    at_end: bool = False
    holding: bool = False
    """Behind a synchronous savepoint's barrier: not a record may follow."""
    leaving: bool = False
    finished: bool = False
    processed_bytes: int = 0
    """What has gone through the operator so far, as the shell counts it."""
    ahead: int = 0  # of the wall clock, by which barriers are stamped, over the shell's time
    first_seen: dict[CheckpointId, int] = field(default_factory=dict)
    """How much that was when the first barrier of each checkpoint came."""

    # -- what comes in

    def receive(self, channel: ChannelId, element: Element, now: Millis) -> list[TaskAction]:
        """Something arrived. Only what overtakes is handled before its turn."""
        if isinstance(element, Barrier) and element.overtakes:
            return self._overtaking(channel, element, now)
        part = self._recording(channel)
        if part is not None:
            return self._record(part, channel, element, now)
        self.inboxes[channel].queue.append(element)
        return self._announce(element, now)

    def reach(self, channel: ChannelId, marker: Element, now: Millis) -> list[TaskAction]:
        """A control marker is at the head of its channel: all before it has been processed."""
        match marker:
            case Barrier():
                return self._barrier(channel, marker, now)
            case CancelMarker(checkpoint):
                reason = Reason.CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER
                return self._act_on(self.aligner.cancel(checkpoint, reason), now)
            case EndOfInput():
                return self._act_on(self.aligner.end_reached(channel), now) + self.leave()
            case _:
                raise AssertionError(f"{marker} is not control")

    def trigger(self, barrier: Barrier, now: Millis) -> list[TaskAction]:
        """The coordinator starts the barrier here."""
        if barrier.checkpoint in self.aborted:
            return self._pass_abort_on(barrier.checkpoint, now)
        self._see(barrier)
        drain: list[TaskAction] = [Drain()] if barrier.kind.drains and not self.at_end else []
        orders = self._act_on(self.aligner.begin(barrier, now), now)
        return drain + orders if orders and not self.inboxes else orders

    def abort(self, checkpoint: CheckpointId, now: Millis) -> list[TaskAction]:
        """The coordinator has aborted the checkpoint."""
        orders = self._drop_part(checkpoint)
        if self._is_aligning(checkpoint):
            return orders + self._pass_abort_on(checkpoint, now)
        if checkpoint > self.aligner.last:
            self.aborted.add(checkpoint)
        return orders

    def complete(
        self, checkpoint: CheckpointId, kind: CheckpointKind, *, leaving: bool
    ) -> list[TaskAction]:
        """The coordinator has completed the checkpoint."""
        self.parts.pop(checkpoint, None)
        self.leaving = self.leaving or leaving
        subsumed = [] if kind.is_savepoint else self._subsume(checkpoint)
        return [*subsumed, Complete(checkpoint, kind.commits), *self.leave()]

    def granted(self, channel: ChannelId, batches: int) -> list[TaskAction]:
        self.outboxes[channel].credit += batches
        return self.send(channel)

    def pass_time(self, now: Millis) -> list[TaskAction]:
        """Turn unaligned what has waited too long, at the inputs and in the outputs."""
        orders: list[TaskAction] = []
        deadline = self.aligner.deadline()
        if deadline is not None and deadline <= now:
            orders += self._act_on(self.aligner.overtake(), now)
        for checkpoint in sorted(self.parts):
            part = self.parts[checkpoint]
            if part.outputs_waiting and self._output_deadline(part) <= now:
                orders += self._promote(part)
        return orders

    def is_recording(self, channel: ChannelId) -> bool:
        """Whether what arrives there is in-flight data of a checkpoint."""
        return self._recording(channel) is not None

    def next_deadline(self) -> Millis | None:
        aligning = self.aligner.deadline()
        waiting = [self._output_deadline(p) for p in self.parts.values() if p.outputs_waiting]
        return min(waiting if aligning is None else [aligning, *waiting], default=None)

    # -- what goes out

    def emit(self, channel: ChannelId, element: Element) -> list[TaskAction]:
        self.outboxes[channel].put(element)
        return self.send(channel)

    def send(self, channel: ChannelId) -> list[TaskAction]:
        orders: list[TaskAction] = []
        for element in self.outboxes[channel].sendable():
            orders.append(Transmit(channel, element))
            if isinstance(element, Barrier):
                orders += self._output_left(element.checkpoint, channel)
        return orders + self.leave()

    def has_room(self, limit: int) -> bool:
        return all(outbox.batches < limit for outbox in self.outboxes.values())

    def broadcast(self, barrier: Barrier) -> list[TaskAction]:
        """The barrier goes to every output; one that overtakes goes first and needs no credit."""
        orders: list[TaskAction] = []
        part = self.parts[barrier.checkpoint]
        for channel, outbox in self.outboxes.items():
            if barrier.overtakes:
                part.overtaken[channel] = outbox.put_first(barrier)
            else:
                outbox.put(barrier)
                if barrier.may_time_out:
                    part.outputs_waiting.add(channel)
        for channel in self.outboxes:
            orders += self.send(channel)
        return orders

    # -- what happens to a snapshot

    def captured(self, checkpoint: CheckpointId, snapshot: SubtaskSnapshot) -> list[TaskAction]:
        """The state is durable."""
        part = self.parts.get(checkpoint)
        if part is None:
            return [Discard(checkpoint)]
        part.snapshot = snapshot
        return self._ack_when_whole(part)

    def persisted(
        self, checkpoint: CheckpointId, handles: tuple[InFlightHandle, ...]
    ) -> list[TaskAction]:
        """The in-flight data is durable."""
        part = self.parts.get(checkpoint)
        if part is None or part.snapshot is None:
            return [Discard(checkpoint)]
        return [part.ack(replace(part.snapshot, in_flight=handles))]

    def fail(self, checkpoint: CheckpointId, reason: Reason) -> list[TaskAction]:
        """The synchronous or asynchronous part of a snapshot failed."""
        if checkpoint not in self.parts:
            return [Discard(checkpoint)]
        return [*self._drop_part(checkpoint), Decline(checkpoint, reason)]

    def leave(self) -> list[TaskAction]:
        """Finish once it may, nothing more can come and nothing waits to go."""
        if not self.leaving or self.finished:
            return []
        if any(channel not in self.aligner.ended for channel in self.inboxes):
            return []
        if any(outbox.queue for outbox in self.outboxes.values()):
            return []
        self.finished = True
        return [*(Transmit(channel, EndOfInput()) for channel in self.outboxes), Finish()]

    # -- within

    def _barrier(self, channel: ChannelId, barrier: Barrier, now: Millis) -> list[TaskAction]:
        if barrier.checkpoint in self.aborted:
            return self._pass_abort_on(barrier.checkpoint, now)
        self._see(barrier)
        return self._act_on(self.aligner.barrier_reached(channel, barrier, now), now)

    def _see(self, barrier: Barrier) -> None:
        self.first_seen.setdefault(barrier.checkpoint, self.processed_bytes)

    def _processed_since(self, checkpoint: CheckpointId) -> int:
        return self.processed_bytes - self.first_seen[checkpoint]

    def _announce(self, element: Element, now: Millis) -> list[TaskAction]:
        """The waiting of a barrier that may time out counts from its arrival."""
        if not isinstance(element, Barrier) or not element.may_time_out:
            return []
        if element.checkpoint in self.aborted:
            return []
        self._see(element)
        return self._act_on(self.aligner.announced(element, now), now)

    def _overtaking(self, channel: ChannelId, barrier: Barrier, now: Millis) -> list[TaskAction]:
        """The barrier overtakes its own channel too, which is recorded before it is delivered."""
        if barrier.checkpoint in self.aborted:
            return self._pass_abort_on(barrier.checkpoint, now)
        self._see(barrier)
        orders = self._act_on(self.aligner.announced(barrier, now), now)
        if self._is_aligning(barrier.checkpoint):
            orders += self._act_on(self.aligner.marker_arrived(channel), now)
        return orders

    def _act_on(self, verdicts: Iterable[Verdict], now: Millis) -> list[TaskAction]:
        orders: list[TaskAction] = []
        for verdict in verdicts:
            match verdict:
                case Snapshot():
                    orders += self._take(verdict, now)
                case InputsDone(checkpoint):
                    orders += self._inputs_done(checkpoint, now)
                case GiveUp(checkpoint, reason):
                    orders += self._drop_part(checkpoint)
                    orders += self._cancel_downstream(checkpoint)
                    orders.append(Decline(checkpoint, reason))
        return orders

    def _take(self, verdict: Snapshot, now: Millis) -> list[TaskAction]:
        barrier, overtaking = verdict.barrier, verdict.overtaking
        checkpoint = barrier.checkpoint
        self.aborted = {other for other in self.aborted if other > checkpoint}
        outgoing = unaligned(barrier) if overtaking else barrier
        self.first_seen = {c: seen for c, seen in self.first_seen.items() if c >= checkpoint}
        part = PendingSnapshot(outgoing, verdict.since, now, now, inputs_done=not overtaking)
        part.processed_bytes = self._processed_since(checkpoint)
        self.parts[checkpoint], part.stamp = part, verdict.since + self.ahead
        if barrier.kind.is_synchronous:
            self.holding = True
        late = self._record_inputs(part) if overtaking else []
        return [
            Prepare(checkpoint),
            Broadcast(outgoing),
            Capture(barrier),
            *self._act_on(late, now),
        ]

    def _record_inputs(self, part: PendingSnapshot) -> list[Verdict]:
        """Save what is queued where the barrier has not been, and all that follows until it is."""
        closed: list[Verdict] = []
        checkpoint = part.barrier.checkpoint
        assert isinstance(self.aligner, Aligner), "only exactly-once overtakes"
        open_channels = [
            channel
            for channel in self.inboxes
            if channel not in self.aligner.delivered and channel not in self.aligner.ended
        ]
        for channel in open_channels:
            batches, is_closed = self.inboxes[channel].overtaken_by(checkpoint)
            part.recording[channel] = batches
            if is_closed:
                closed += self.aligner.marker_arrived(channel)
        return closed

    def _recording(self, channel: ChannelId) -> PendingSnapshot | None:
        """The overtaken checkpoint whose barrier this channel has not delivered yet."""
        current = self.aligner.barrier if isinstance(self.aligner, Aligner) else None
        part = self.parts.get(current.checkpoint) if current is not None else None
        if part is None or part.inputs_done or channel not in part.recording:
            return None
        assert isinstance(self.aligner, Aligner), "only exactly-once records"
        return None if channel in self.aligner.delivered else part

    def _record(
        self, part: PendingSnapshot, channel: ChannelId, element: Element, now: Millis
    ) -> list[TaskAction]:
        if isinstance(element, Barrier) and element.checkpoint == part.barrier.checkpoint:
            return self._act_on(self.aligner.marker_arrived(channel), now)
        self.inboxes[channel].queue.append(element)
        if isinstance(element, EndOfInput):
            return self._act_on(self.aligner.marker_arrived(channel), now)
        if is_batch(element):
            part.recording[channel].append(element)
        return self._announce(element, now)

    def _inputs_done(self, checkpoint: CheckpointId, now: Millis) -> list[TaskAction]:
        part = self.parts.get(checkpoint)
        if part is None:
            return []
        part.inputs_done, part.aligned = True, now
        part.processed_bytes = self._processed_since(checkpoint)
        return self._ack_when_whole(part)

    def _ack_when_whole(self, part: PendingSnapshot) -> list[TaskAction]:
        """Ack when state, overtaken input and overtaken output are all safe."""
        if part.snapshot is None or not part.inputs_done or part.outputs_waiting:
            return []
        if part.persisting:
            return []
        part.persisting = True
        checkpoint = part.barrier.checkpoint
        rows = [(c, Side.INPUT, tuple(part.recording[c])) for c in sorted(part.recording)]
        rows += [(c, Side.OUTPUT, tuple(part.overtaken[c])) for c in sorted(part.overtaken)]
        caught = tuple(row for row in rows if row[2])
        if caught:
            return [PersistInFlight(checkpoint, caught)]
        return [part.ack(part.snapshot)]

    def _output_left(self, checkpoint: CheckpointId, channel: ChannelId) -> list[TaskAction]:
        part = self.parts.get(checkpoint)
        if part is None or channel not in part.outputs_waiting:
            return []
        part.outputs_waiting.discard(channel)
        return self._ack_when_whole(part)

    def _promote(self, part: PendingSnapshot) -> list[TaskAction]:
        orders: list[TaskAction] = []
        for channel in sorted(part.outputs_waiting):
            promoted = self.outboxes[channel].promote(part.barrier.checkpoint)
            if promoted is not None:
                part.overtaken[channel] = promoted[1]
            orders += self.send(channel)
        return orders

    def _output_deadline(self, part: PendingSnapshot) -> Millis:
        return Millis(part.started + part.barrier.aligned_timeout_ms)

    def _pass_abort_on(self, checkpoint: CheckpointId, now: Millis) -> list[TaskAction]:
        """An aborted checkpoint is not begun, and those downstream must not wait for it."""
        self.aborted.discard(checkpoint)
        reason = Reason.CHECKPOINT_DECLINED_ON_CANCELLATION_BARRIER
        return self._act_on(self.aligner.cancel(checkpoint, reason), now)

    def _is_aligning(self, checkpoint: CheckpointId) -> bool:
        if isinstance(self.aligner, Tracker):
            return checkpoint in self.aligner.waiting
        return self.aligner.barrier is not None and self.aligner.barrier.checkpoint == checkpoint

    def _cancel_downstream(self, checkpoint: CheckpointId) -> list[TaskAction]:
        orders: list[TaskAction] = []
        for channel, outbox in self.outboxes.items():
            outbox.put(CancelMarker(checkpoint))
            orders += self.send(channel)
        return orders

    def _subsume(self, checkpoint: CheckpointId) -> list[TaskAction]:
        """Older checkpoints end with it, savepoints do not.

        One that was acked is not discarded: it may have completed without our notification.
        """
        orders: list[TaskAction] = []
        for older in sorted(self.parts):
            part = self.parts[older]
            if older < checkpoint and not part.barrier.kind.is_savepoint:
                dropped = self._drop_part(older)
                orders += [] if part.persisting else dropped
        return orders

    def _drop_part(self, checkpoint: CheckpointId) -> list[TaskAction]:
        if self.parts.pop(checkpoint, None) is None:
            return []
        return [Discard(checkpoint)]
