"""The event time of one subtask: the least of what its inputs have promised.

Each channel promises that no older row follows on it; the subtask can promise only the least of
these. A channel at its end promises everything. An idle one, whose sender has nothing to read, does
not count until it sends a watermark again; where all are idle, none is left that could be behind
the latest of them. Time never turns back: a channel that goes on behind it brings late rows, as in
Flink.

What a checkpoint keeps is the least promise of each edge, so that it can be restored at another
parallelism (spec A10, D4).
"""

from collections.abc import Iterable, Mapping

from weir.core.ids import ChannelId, EdgeId, Millis

LONG_AGO = Millis(-(1 << 62))
FOREVER = Millis(1 << 62)


class EventTime:
    """The promises of one subtask's inputs."""

    def __init__(self, channels: Iterable[ChannelId]) -> None:
        self._promised: dict[ChannelId, Millis] = dict.fromkeys(channels, LONG_AGO)
        self.at_end: set[ChannelId] = set()
        self._idle: set[ChannelId] = set()
        self.now = self._least(self._promised)
        self.passed_on = LONG_AGO
        """What was last promised downstream."""
        self.is_passed_on_as_idle = False
        """Whether the last marker sent downstream was that this subtask is idle."""

    def restore(self, watermarks: Mapping[EdgeId, Millis]) -> None:
        for channel in self._promised:
            self._promised[channel] = watermarks.get(channel.edge, LONG_AGO)
        self.now = self._least(self._promised)

    def advance(self, channel: ChannelId, time: Millis) -> None:
        """A watermark came, so the channel is not idle."""
        if channel in self._promised:
            self._idle.discard(channel)
            self._promised[channel] = max(time, self._promised[channel])
            self._go_on()

    def rest(self, channel: ChannelId) -> None:
        """The channel is idle until its next watermark."""
        if channel in self._promised:
            self._idle.add(channel)
            self._go_on()

    def end(self, channel: ChannelId) -> None:
        self.at_end.add(channel)
        self._go_on()

    @property
    def is_over(self) -> bool:
        return all(channel in self.at_end for channel in self._promised)

    @property
    def is_idle(self) -> bool:
        """Whether no input is left that could send a watermark."""
        return not self.is_over and all(c in self._idle for c in self._open(self._promised))

    def by_edge(self) -> tuple[tuple[EdgeId, Millis], ...]:
        """The least promise of each edge, for a snapshot."""
        edges: dict[EdgeId, list[ChannelId]] = {}
        for channel in self._promised:
            edges.setdefault(channel.edge, []).append(channel)
        return tuple(sorted((e, max(self._least(of), self.now)) for e, of in edges.items()))

    def _go_on(self) -> None:
        self.now = max(self.now, self._least(self._promised))

    def _open(self, channels: Iterable[ChannelId]) -> list[ChannelId]:
        return [channel for channel in channels if channel not in self.at_end]

    def _least(self, channels: Iterable[ChannelId]) -> Millis:
        """How far these channels let time go."""
        still_open = self._open(channels)
        active = [self._promised[c] for c in still_open if c not in self._idle]
        if active:
            return min(active)
        return max((self._promised[c] for c in still_open), default=FOREVER)
