"""Keeps a turn of user code short, by learning how many rows fit into it.

A barrier waits at most for the turn under way, so a turn lasts about twenty milliseconds whatever
the user's function costs (spec A11). Nobody can know that cost beforehand; the last turns tell.
"""

from dataclasses import dataclass

TURN_SECONDS = 0.02
FEWEST_ROWS = 16
MOST_ROWS = 1 << 17
"""More than this gains nothing, and a turn that suddenly becomes slow would last too long."""


@dataclass(slots=True)
class Pace:
    """How many rows the next turn may take."""

    rows: int = 4096

    def took(self, rows: int, seconds: float) -> None:
        """Half of what was learnt now, half of what was known before."""
        if rows:
            fitting = rows * TURN_SECONDS / max(seconds, 1e-6)
            learnt = (self.rows + min(fitting, 4 * self.rows)) / 2
            self.rows = int(min(max(learnt, FEWEST_ROWS), MOST_ROWS))
