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
from weir.core.topology import EdgeKind
from weir.slot.subtask_counts import SubtaskCounts
from weir.slot.turn_budget import FEWEST_ROWS, FORGETTING, MOST_ROWS

NOT_SPREADING = (EdgeKind.BROADCAST, EdgeKind.GLOBAL)
"""Edges whose rows all go to the same receivers."""

MOST_HISTORY = 4
"""All earlier turns together count for so many turns like the last one at most."""


def rows_of_a_batch(inputs: Collection[ChannelId], rows_of_a_turn: int) -> int:
    """How long a batch should be for a subtask with these inputs."""
    senders = sum(channel.sender != RECOVERED for channel in inputs)
    return max(rows_of_a_turn // max(senders, 1), FEWEST_ROWS)


@dataclass(slots=True)
class Demand:
    """What the receivers of one subtask's outputs ask for."""

    counts: SubtaskCounts
    _most_rows: int = MOST_ROWS
    """To emit in one turn."""
    _asked: dict[EdgeId, dict[ChannelId, int]] = field(default_factory=dict)
    _most_rows_of: dict[EdgeId, int] = field(default_factory=dict)
    _seen_in: int = 0
    _seen_out: int = 0
    """Up to these counts, turns are part of the two that follow."""
    _taken: float = 0.0
    _emitted: float = 0.0
    """By the last turns, of which older ones count for less."""

    def asks(self, channel: ChannelId, rows: int, kind: EdgeKind) -> None:
        """The receiver of this channel, on an edge of that kind, asks for batches of such size."""
        asked = self._asked.setdefault(channel.edge, {})
        if asked.get(channel) == rows:
            return
        asked[channel] = rows
        shares = 1 if kind in NOT_SPREADING else len(asked)
        self._most_rows_of[channel.edge] = min(asked.values()) * shares
        self._most_rows = min(self._most_rows_of.values())

    def limit(self, rows: int) -> int:
        """How many of these rows a turn of the sender may take, if it emits as many as lately."""
        self._learn()
        rows_of_one = max(self._taken / max(self._emitted, 1.0), 1.0)
        return min(rows, int(self._most_rows * rows_of_one))

    def _learn(self) -> None:
        """A flush takes no rows: what it emits belongs to the turns before it.

        A turn that is much smaller than those before it counts as much as each of them: an operator
        that begins to emit more is noticed at once, and not after as many rows as it saw before.
        """
        taken, emitted = self.counts.rows_in - self._seen_in, self.counts.rows_out - self._seen_out
        self._seen_in, self._seen_out = self.counts.rows_in, self.counts.rows_out
        if taken:
            kept = min(FORGETTING, MOST_HISTORY * taken / self._taken) if self._taken else 0.0
            self._taken = self._taken * kept + taken
            self._emitted *= kept
        self._emitted += emitted
