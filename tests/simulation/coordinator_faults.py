"""When the operators' parts in the driver raise: in some schedules, by dice of their own.

All other schedules are what they would be without it, so that a seed that shows a rare order of
events goes on showing it.
"""

import random

ONE_IN = 16
SHARE = 0.3


class CoordinatorFaults:
    """Drawn whenever an enumerator or a committer is asked for something."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._happens = seed % ONE_IN == ONE_IN - 1

    def is_now(self) -> bool:
        return self._happens and self._dice.random() < SHARE
