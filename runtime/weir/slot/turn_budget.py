"""Keeps a turn of user code short, by learning how many rows fit into it.

A barrier waits at most for the turn under way, so a turn lasts about twenty milliseconds whatever
the user's function costs (spec A11). That cost is not known beforehand; the last turns show it. A
call costs something by itself and something for each row: a line through the last turns gives both.
Where the call alone takes longer than a turn (such as a request to a service), fewer rows would
only mean more calls, so then a turn takes as many rows as cost about as much again.

However cheap rows are, long ones are taken a few at a time: what a turn emits waits in the outputs
(spec R7), and is seldom much longer than what the turn took in.
"""

from dataclasses import dataclass, field

TURN_SECONDS = 0.02
FEWEST_ROWS = 16
MOST_ROWS = 1 << 17
"""More than this gains nothing, and a turn that suddenly becomes slow would last too long."""

TURN_BYTES = 4 << 20
"""A turn takes about this many bytes at most, going by the rows of the turn before."""

FORGETTING = 0.8
"""What a turn counts for when one more has passed: the last few matter."""

LEAST_SPREAD = 1e-3
"""Scheduler must differ by so much, as the variance of their rows over the square of the mean."""

MOST_GROWTH = 4
"""A turn is at most so many times as long as the one before, for costs are never quite linear."""


@dataclass(slots=True)
class Line:
    """Least squares over the last turns: seconds by rows."""

    weight: float = 0.0
    rows: float = 0.0
    seconds: float = 0.0
    squares: float = 0.0
    products: float = 0.0
    share_of_rows: float = 1.0
    """Of all that the turns cost; what is left is the share of the calls."""

    def add(self, rows: int, seconds: float) -> None:
        self.weight = self.weight * FORGETTING + 1
        self.rows = self.rows * FORGETTING + rows
        self.seconds = self.seconds * FORGETTING + seconds
        self.squares = self.squares * FORGETTING + rows * rows
        self.products = self.products * FORGETTING + rows * seconds

    def costs(self) -> tuple[float, float]:
        """Of a call and of a row. Scheduler that are all alike show only the sum of the two."""
        spread = self.weight * self.squares - self.rows * self.rows
        if spread > LEAST_SPREAD * self.rows * self.rows:
            slope = (self.weight * self.products - self.rows * self.seconds) / spread
            by_rows = slope * self.rows / self.seconds
            self.share_of_rows = min(max(by_rows, 0.0), 1.0)
        rest = self.seconds * (1 - self.share_of_rows)
        return rest / self.weight, self.seconds * self.share_of_rows / self.rows


@dataclass(slots=True)
class TurnBudget:
    """How many rows the next turn may take."""

    rows: int = 4096
    _line: Line = field(default_factory=Line)

    def record(self, rows: int, seconds: float, size: int = 0) -> None:
        """A turn of so many rows, with so many bytes, took so long."""
        if not rows:
            return
        self._line.add(rows, max(seconds, 1e-6))
        call, row = self._line.costs()
        room = max(TURN_SECONDS - call, min(call, TURN_SECONDS))
        fitting = max(room / max(row, 1e-12), FEWEST_ROWS)
        holding = max(TURN_BYTES * rows // size, 1) if size else MOST_ROWS
        self.rows = int(min(fitting, MOST_GROWTH * self.rows, MOST_ROWS, holding))
