"""Discovers new splits of each source, on separate threads, until the source has no more.

The first discovery of a new job decides what its readers get first; a restored job continues from
the position of discovery in its checkpoint (spec C4, R6).

A discovery that fails because of storage or the network is repeated. Any other error fails the
attempt: the restart strategy decides whether the job continues, and discovery with it (spec R2).
"""

import logging
import threading
from collections.abc import Callable, Mapping

from weir.core.enumerator import Pool, Splits
from weir.core.ids import OperatorId
from weir.core.job_master import (
    Event,
    OperatorCoordinatorFailed,
    OperatorCoordinatorRecovered,
    SplitsFound,
)
from weir.errors import JobRejected, Unavailable, WeirError
from weir.ports.sources import Discovery, Source
from weir.ports.user_code_errors import describe_error, error_type

log = logging.getLogger("weir.driver")

LOOK_SECONDS = 1.0
MOST_WAITING = 10_000
"""While so many splits wait for a reader, the driver looks for no more (spec R7)."""


class SplitDiscovery:
    """The discovery of all sources."""

    def __init__(
        self,
        sources: Mapping[OperatorId, Source],
        enqueue: Callable[[Event], None],
        fail: Callable[[WeirError], None],
        backlog: Callable[[OperatorId], int] = lambda _: 0,
    ) -> None:
        self._backlog = backlog
        self._sources = sources
        self._enqueue = enqueue
        self._fail = fail
        self._is_over = threading.Event()
        self._threads: list[threading.Thread] = []

    def pools(self, restored: Mapping[OperatorId, Pool]) -> dict[OperatorId, Splits]:
        """What each enumerator starts with, before the first discovery."""
        pools = {}
        for operator in self._sources:
            pool = restored.get(operator, Pool((), ""))
            pools[operator] = Splits(pool.free, seen=pool.seen, is_final=False)
        return pools

    def start(self, pools: Mapping[OperatorId, Splits]) -> None:
        for operator, source in self._sources.items():
            thread = threading.Thread(
                target=self._look_on,
                args=(operator, source, pools[operator].seen),
                name=f"weir-discovery-{operator}",
                daemon=True,
            )
            self._threads.append(thread)
            thread.start()

    def _look_on(self, operator: OperatorId, source: Source, seen: str) -> None:
        has_failed = False
        while not self._is_over.is_set():
            self._await_room(operator)
            try:
                found = source.discover(seen)
            except JobRejected as problem:
                self._fail(problem)
                return
            except (OSError, Unavailable) as problem:
                log.warning("%s could not look for new splits: %s", operator, problem)
            except BaseException as problem:  # noqa: BLE001 - connectors, user code, native code
                has_failed = True
                why, error = describe_error(problem), error_type(problem)
                self._enqueue(OperatorCoordinatorFailed(operator, why, error))
            else:
                if has_failed:
                    self._enqueue(OperatorCoordinatorRecovered(operator))
                has_failed = False
                self._tell_found(operator, found, seen)
                seen = found.seen
                if found.is_final:
                    return
            self._is_over.wait(LOOK_SECONDS)

    def _await_room(self, operator: OperatorId) -> None:
        while self._backlog(operator) >= MOST_WAITING and not self._is_over.wait(LOOK_SECONDS):
            pass

    def _tell_found(self, operator: OperatorId, found: Discovery, before: str) -> None:
        if found.splits or found.is_final or found.seen != before:
            self._enqueue(SplitsFound(operator, found.splits, found.seen, found.is_final))

    def close(self) -> None:
        self._is_over.set()
