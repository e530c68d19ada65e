"""Keeps what waits in front of a slow operator short in time, not only in bytes.

Credit bounds how many batches are on their way, and batches have a longest size; both are made for
quick operators. In front of a slow one a quick sender would fill all credit with its longest
batches, and a barrier would wait behind seconds of work. So a receiver says with each grant how
many rows of a batch suit it: its turn, shared among its senders. A sender takes no more rows into a
turn than its receivers ask for, so credit is worth a few turns of the receiver, whatever a row
costs there. One that only passes rows on asks for as few as those behind it do. Flink calls this
buffer debloating.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from weir.core.ids import RECOVERED, ChannelId, EdgeId
from weir.slot.subtask_counts import SubtaskCounts
from weir.slot.turn_budget import FEWEST_ROWS, MOST_ROWS


def rows_of_a_batch(inputs: Collection[ChannelId], rows_of_a_turn: int) -> int:
    """How long a batch should be for a subtask with these inputs."""
    senders = sum(channel.sender != RECOVERED for channel in inputs)
    return max(rows_of_a_turn // max(senders, 1), FEWEST_ROWS)


@dataclass(slots=True)
class Demand:
    """What the receivers of one subtask's outputs ask for."""

    counts: SubtaskCounts
    _most_rows: int = MOST_ROWS
    """To emit in one turn; they spread over the channels of an edge."""
    _asked: dict[EdgeId, dict[ChannelId, int]] = field(default_factory=dict)

    def asks(self, channel: ChannelId, rows: int) -> None:
        """The receiver of this channel asks for batches of so many rows."""
        asked = self._asked.setdefault(channel.edge, {})
        if asked.get(channel) == rows:
            return
        asked[channel] = rows
        edges = self._asked.values()
        self._most_rows = min(min(channels.values()) * len(channels) for channels in edges)

    def limit(self, rows: int) -> int:
        """How many of these rows a turn of the sender may take, if it emits as many as so far."""
        taken, emitted = self.counts.rows_in, self.counts.rows_out
        if emitted and taken > emitted:
            return min(rows, self._most_rows * taken // emitted)
        return min(rows, self._most_rows)
