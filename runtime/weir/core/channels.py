"""Queues and credits at the two ends of a channel.

A receiver grants room for so many batches; a sender without credit keeps its output queued, so a
stalled channel never stalls another and the wire never holds an unbounded backlog. Markers need no
credit. That bound is what makes overtaking worth anything: what a barrier can overtake is either in
the sender's queue or within the credit it has used up.

Batches are opaque here: everything but a marker is a batch.
"""

from collections import deque
from dataclasses import dataclass, field, replace

from weir.core.barriers import (
    AlignmentType,
    Barrier,
    CancelMarker,
    EndOfData,
    EndOfInput,
    Idle,
    Watermark,
)
from weir.core.ids import ChannelId, CheckpointId

Element = object
"""A marker or a batch."""

MARKERS = (Barrier, CancelMarker, Watermark, Idle, EndOfData, EndOfInput)


def is_batch(element: Element) -> bool:
    return not isinstance(element, MARKERS)


@dataclass(slots=True)
class Outbox:
    """The sender's end of one channel."""

    channel: ChannelId
    credit: int
    queue: deque[Element] = field(default_factory=deque)
    batches: int = 0

    def put(self, element: Element) -> None:
        tail = self.queue[-1] if self.queue else None
        if isinstance(element, Watermark) and isinstance(tail, Watermark):
            self.queue[-1] = element
            return
        self.queue.append(element)
        self.batches += is_batch(element)

    def put_first(self, barrier: Barrier) -> list[Element]:
        """The barrier overtakes everything queued; what it overtook is returned."""
        overtaken = [element for element in self.queue if is_batch(element)]
        self.queue.appendleft(barrier)
        return overtaken

    def promote(self, checkpoint: CheckpointId) -> tuple[Barrier, list[Element]] | None:
        """A barrier that waited too long jumps the queue; None if it has left already."""
        for position, element in enumerate(self.queue):
            if isinstance(element, Barrier) and element.checkpoint == checkpoint:
                overtaken = [e for e in list(self.queue)[:position] if is_batch(e)]
                del self.queue[position]
                jumping = unaligned(element)
                self.queue.appendleft(jumping)
                return jumping, overtaken
        return None

    def sendable(self) -> list[Element]:
        """What may leave now: markers freely, batches while there is credit."""
        leaving: list[Element] = []
        while self.queue:
            if is_batch(self.queue[0]):
                if not self.credit:
                    break
                self.credit -= 1
                self.batches -= 1
            leaving.append(self.queue.popleft())
        return leaving


@dataclass(slots=True)
class Inbox:
    """The receiver's end of one channel."""

    channel: ChannelId
    queue: deque[Element] = field(default_factory=deque)

    def take_batches(self, limit: int) -> list[Element]:
        """Consecutive batches at the head: a busy channel yields large turns, an idle one none."""
        taken: list[Element] = []
        while self.queue and len(taken) < limit and is_batch(self.queue[0]):
            taken.append(self.queue.popleft())
        return taken

    def put_back(self, rest: Element) -> None:
        """What a bounded turn did not get to is the first thing the next turn sees."""
        self.queue.appendleft(rest)

    def overtaken_by(self, checkpoint: CheckpointId) -> tuple[list[Element], bool]:
        """The batches before this checkpoint's barrier, and whether nothing more can come.

        A barrier that waits in the queue is pulled out: the snapshot it asked for is being taken.
        """
        batches: list[Element] = []
        for position, element in enumerate(self.queue):
            if isinstance(element, Barrier) and element.checkpoint == checkpoint:
                del self.queue[position]
                return batches, True
            if isinstance(element, EndOfInput):
                return batches, True
            if is_batch(element):
                batches.append(element)
        return batches, False


def unaligned(barrier: Barrier) -> Barrier:
    return replace(barrier, alignment=AlignmentType.UNALIGNED, aligned_timeout_ms=0)
