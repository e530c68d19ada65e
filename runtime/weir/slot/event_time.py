"""The event time of one subtask: the least of what its inputs have promised.

Each channel promises that no older row follows on it; the subtask can promise only the least of
these. A channel at its end promises everything. What a checkpoint keeps is the least promise of
each edge, so that it can be restored at another parallelism (spec A10, D4).
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
        self.passed_on = LONG_AGO
        """What was last promised downstream."""

    def restore(self, watermarks: Mapping[EdgeId, Millis]) -> None:
        for channel in self._promised:
            self._promised[channel] = watermarks.get(channel.edge, LONG_AGO)

    def advance(self, channel: ChannelId, time: Millis) -> None:
        if channel in self._promised:
            self._promised[channel] = max(time, self._promised[channel])

    def end(self, channel: ChannelId) -> None:
        self.at_end.add(channel)

    @property
    def is_over(self) -> bool:
        return all(channel in self.at_end for channel in self._promised)

    @property
    def now(self) -> Millis:
        open_ones = [time for c, time in self._promised.items() if c not in self.at_end]
        return min(open_ones, default=FOREVER)

    def by_edge(self) -> tuple[tuple[EdgeId, Millis], ...]:
        """The least promise of each edge, for a snapshot."""
        least: dict[EdgeId, Millis] = {}
        for channel, time in self._promised.items():
            known = FOREVER if channel in self.at_end else time
            least[channel.edge] = min(least.get(channel.edge, FOREVER), known)
        return tuple(sorted(least.items()))
