"""Asks a storage that is away until it answers, for whoever can do nothing without it.

A job that starts needs its program and its log before anything else. A process that gave up would
only be started again to ask the same, later and later, and its version might be taken for a bad
one. The pause is a plain sleep, so a signal ends the wait of the main thread as it ends any other.
"""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from weir.errors import Unavailable

log = logging.getLogger("weir.storage")

RETRY_SECONDS = 0.2

T = TypeVar("T")


def until_answered(ask: Callable[[], T | None], pause: Callable[[float], None] = time.sleep) -> T:
    """What was asked for; whoever is not sure of his answer says None, and is asked again."""
    told = ""
    while True:
        try:
            answer = ask()
        except Unavailable as problem:
            if str(problem) != told:
                log.warning("The storage is asked again until it answers: %s", problem)
            told = str(problem)
            answer = None
        if answer is not None:
            return answer
        pause(RETRY_SECONDS)
