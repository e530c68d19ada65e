"""Waits for what another process does: until it is so, or until patience ends with a reason."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 150.0
GLANCE_S = 0.03


def until(
    what: str,
    look: Callable[[], T],
    explain: Callable[[], str],
    patience_s: float = PATIENCE_S,
    glance_s: float = GLANCE_S,
) -> T:
    """What the look saw, as soon as that is anything."""
    deadline = time.monotonic() + patience_s
    while not (seen := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{patience_s:.0f} s were not enough: {what}\n{explain()}")
        time.sleep(glance_s)
    return seen
