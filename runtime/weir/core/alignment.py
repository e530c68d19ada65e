"""Lines up the barriers of a checkpoint across the inputs of one subtask.

Two small machines answer the same questions. The Aligner is for exactly-once: it follows one
checkpoint at a time, blocks channels that have delivered its barrier, and can let the barrier
overtake. The Tracker is for at-least-once: it blocks nothing and follows every checkpoint at once.

They are objects, not functions of a state, because a subtask asks ``channel in blocked`` for every
batch; but they keep the core's promise: no clock, no queue, no output, decisions returned. They do
not know what is in a channel: *reached* means that everything before the marker was processed,
*arrived* only that the marker is here.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from weir.core.barriers import Barrier
from weir.core.ids import NO_CHECKPOINT, RECOVERED, ChannelId, CheckpointId, Millis
from weir.core.reasons import Reason


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Take the snapshot now."""

    barrier: Barrier
    overtaking: bool
    """Queued data of channels that have not delivered the barrier belongs to the snapshot."""
    since: Millis
    """When its first barrier came."""


@dataclass(frozen=True, slots=True)
class InputsDone:
    """Every channel has delivered the barrier that overtook: the in-flight data is complete."""

    checkpoint: CheckpointId


@dataclass(frozen=True, slots=True)
class GiveUp:
    """This subtask will not take that checkpoint, or not finish it."""

    checkpoint: CheckpointId
    reason: Reason


Verdict = Snapshot | InputsDone | GiveUp


@dataclass(slots=True)
class Aligner:
    """Exactly-once: one checkpoint at a time."""

    channels: tuple[ChannelId, ...]
    declines_on_end: bool = False
    """Checkpoints after tasks finish are off: a channel that ends spoils the one being aligned."""
    blocked: set[ChannelId] = field(default_factory=set)
    ended: set[ChannelId] = field(default_factory=set)
    last: CheckpointId = NO_CHECKPOINT
    """The newest checkpoint that was started or aborted; what is not newer is ignored."""
    barrier: Barrier | None = None
    delivered: set[ChannelId] = field(default_factory=set)
    overtook: bool = False
    since: Millis = Millis(0)

    def begin(self, barrier: Barrier, now: Millis) -> list[Verdict]:
        """The coordinator triggers this subtask: all its inputs have ended or are about to."""
        return self._start(barrier, now) + self._judge() if self._is_news(barrier) else []

    def announced(self, barrier: Barrier, now: Millis) -> list[Verdict]:
        """A barrier has arrived behind data: it overtakes that, or its waiting starts to count.

        Its channel has not delivered it yet: what is queued there is still before the barrier.
        """
        if self._is_news(barrier):
            return self._start(barrier, now)
        if self.barrier is None or barrier.checkpoint != self.barrier.checkpoint:
            return []
        return self.overtake() if barrier.overtakes else []

    def barrier_reached(self, channel: ChannelId, barrier: Barrier, now: Millis) -> list[Verdict]:
        """Everything before the barrier was processed."""
        verdicts = self._start(barrier, now) if self._is_news(barrier) else []
        if self.barrier is None or barrier.checkpoint != self.barrier.checkpoint:
            return verdicts
        self.delivered.add(channel)
        if not self.overtook:
            self.blocked.add(channel)
        return verdicts + self._judge()

    def overtake(self) -> list[Verdict]:
        """Stop waiting: snapshot at once, with the data still queued before the barrier."""
        if self.barrier is None or self.overtook:
            return []
        self.overtook = True
        self.blocked.clear()
        return [Snapshot(self.barrier, overtaking=True, since=self.since)]

    def is_aligning(self, checkpoint: CheckpointId) -> bool:
        """Whether the checkpoint's barrier is here and other inputs have not delivered it yet."""
        return self.barrier is not None and self.barrier.checkpoint == checkpoint

    def deadline(self) -> Millis | None:
        """When alignment has lasted long enough to turn unaligned."""
        if self.barrier is None or self.overtook or not self.barrier.may_time_out:
            return None
        return Millis(self.since + self.barrier.aligned_timeout_ms)

    def marker_arrived(self, channel: ChannelId) -> list[Verdict]:
        """While recording, a barrier or an end that has only arrived closes its channel."""
        if self.barrier is None or not self.overtook:
            return []
        self.delivered.add(channel)
        return self._judge()

    def end_reached(self, channel: ChannelId) -> list[Verdict]:
        """End of input counts as delivered."""
        self.ended.add(channel)
        if self.barrier is None:
            return []
        if self.declines_on_end and not self.overtook and channel.sender != RECOVERED:
            return self.cancel(
                self.barrier.checkpoint, Reason.CHECKPOINT_DECLINED_INPUT_END_OF_STREAM
            )
        return self._judge()

    def cancel(self, checkpoint: CheckpointId, reason: Reason) -> list[Verdict]:
        """Release the channels that wait for this checkpoint or an older one; start neither again.

        A cancel marker keeps its place, so a barrier that should have come before it is not coming.
        """
        if checkpoint < self.last or (checkpoint == self.last and self.barrier is None):
            return []
        verdicts: list[Verdict] = []
        if self.barrier is not None and self.barrier.checkpoint < checkpoint:
            verdicts.append(GiveUp(self.barrier.checkpoint, Reason.CHECKPOINT_DECLINED_SUBSUMED))
        self.last = checkpoint
        self._clear()
        return [*verdicts, GiveUp(checkpoint, reason)]

    def _is_news(self, barrier: Barrier) -> bool:
        return barrier.checkpoint > self.last

    def _start(self, barrier: Barrier, now: Millis) -> list[Verdict]:
        """A newer barrier cancels the alignment of an older checkpoint."""
        verdicts: list[Verdict] = []
        if self.barrier is not None:
            verdicts.append(GiveUp(self.barrier.checkpoint, Reason.CHECKPOINT_DECLINED_SUBSUMED))
        self._clear()
        self.barrier, self.since, self.last = barrier, now, barrier.checkpoint
        return verdicts + (self.overtake() if barrier.overtakes else [])

    def _judge(self) -> list[Verdict]:
        if self.barrier is None or not all(
            channel in self.delivered or channel in self.ended for channel in self.channels
        ):
            return []
        barrier, overtook = self.barrier, self.overtook
        self._clear()
        if overtook:
            return [InputsDone(barrier.checkpoint)]
        return [Snapshot(barrier, overtaking=False, since=self.since)]

    def _clear(self) -> None:
        self.blocked.clear()
        self.delivered.clear()
        self.barrier, self.overtook = None, False


@dataclass(slots=True)
class Tracker:
    """At-least-once: blocks nothing, follows all checkpoints in flight."""

    channels: tuple[ChannelId, ...]
    declines_on_end: bool = False
    blocked: frozenset[ChannelId] = frozenset()
    ended: set[ChannelId] = field(default_factory=set)
    last: CheckpointId = NO_CHECKPOINT
    """The newest checkpoint whose snapshot was taken or aborted."""
    waiting: dict[CheckpointId, tuple[Barrier, Millis, set[ChannelId]]] = field(
        default_factory=dict
    )
    """Each with the time of its first barrier, and where it has been delivered."""
    dead: set[CheckpointId] = field(default_factory=set)
    """Aborted, though a late barrier may still come."""

    def begin(self, barrier: Barrier, now: Millis) -> list[Verdict]:
        if self._is_news(barrier):
            self.waiting.setdefault(barrier.checkpoint, (barrier, now, set()))
        return self._judge()

    def announced(self, barrier: Barrier, now: Millis) -> list[Verdict]:
        del barrier, now
        return []

    def barrier_reached(self, channel: ChannelId, barrier: Barrier, now: Millis) -> list[Verdict]:
        if not self._is_news(barrier):
            return []
        self.waiting.setdefault(barrier.checkpoint, (barrier, now, set()))[2].add(channel)
        return self._judge()

    def overtake(self) -> list[Verdict]:
        return []

    def is_aligning(self, checkpoint: CheckpointId) -> bool:
        return checkpoint in self.waiting

    def deadline(self) -> Millis | None:
        return None

    def marker_arrived(self, channel: ChannelId) -> list[Verdict]:
        del channel
        return []

    def end_reached(self, channel: ChannelId) -> list[Verdict]:
        self.ended.add(channel)
        if self.declines_on_end and channel.sender != RECOVERED:
            reason = Reason.CHECKPOINT_DECLINED_INPUT_END_OF_STREAM
            return [v for waiting in sorted(self.waiting) for v in self.cancel(waiting, reason)]
        return self._judge()

    def cancel(self, checkpoint: CheckpointId, reason: Reason) -> list[Verdict]:
        if checkpoint <= self.last or checkpoint in self.dead:
            return []
        self.waiting.pop(checkpoint, None)
        self.dead.add(checkpoint)
        return [GiveUp(checkpoint, reason)]

    def _judge(self) -> list[Verdict]:
        verdicts: list[Verdict] = []
        for checkpoint in sorted(self.waiting):
            barrier, since, delivered = self.waiting[checkpoint]
            if self._is_complete(delivered):
                verdicts += self._give_up_older(checkpoint)
                del self.waiting[checkpoint]
                self.last = checkpoint
                self.dead = {dead for dead in self.dead if dead > checkpoint}
                verdicts.append(Snapshot(barrier, overtaking=False, since=since))
        return verdicts

    def _is_news(self, barrier: Barrier) -> bool:
        return barrier.checkpoint > self.last and barrier.checkpoint not in self.dead

    def _is_complete(self, delivered: Iterable[ChannelId]) -> bool:
        there = {*delivered, *self.ended}
        return all(channel in there for channel in self.channels)

    def _give_up_older(self, checkpoint: CheckpointId) -> list[Verdict]:
        """Barriers keep their order on a channel, so an older one that lags is not coming."""
        older = [waiting for waiting in sorted(self.waiting) if waiting < checkpoint]
        for waiting in older:
            del self.waiting[waiting]
        return [GiveUp(waiting, Reason.CHECKPOINT_DECLINED_SUBSUMED) for waiting in older]
