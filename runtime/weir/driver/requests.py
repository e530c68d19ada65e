"""Questions to a running job and the answers they wait for: checkpoints, savepoints, the end.

A request has an id; the same id asked twice is one request with one answer, so that a client whose
connection broke may ask again (an idempotency key).
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from uuid import uuid4

from weir.core.attempt import CancelRequested
from weir.core.coordinator.actions import Denied, Granted
from weir.core.coordinator.events import CheckpointRequested
from weir.core.ids import RequestId
from weir.core.job import Event
from weir.core.snapshots import CheckpointKind

Outcome = Granted | Denied


class Requests:
    """Everything that was asked of this driver."""

    def __init__(self) -> None:
        self._asked: dict[RequestId, Future[Outcome]] = {}
        self._lock = threading.Lock()

    def ask(
        self,
        tell: Callable[[Event], None],
        kind: CheckpointKind,
        location: str = "",
        key: str = "",
    ) -> tuple[RequestId, Future[Outcome]]:
        request = RequestId(key or uuid4().hex)
        with self._lock:
            known = self._asked.get(request)
            if known is not None:
                return request, known
            future = self._asked[request] = Future()
        tell(CheckpointRequested(request, kind, location))
        return request, future

    def find(self, request: str) -> Future[Outcome] | None:
        return self._asked.get(RequestId(request))

    def answer(self, request: RequestId, outcome: Outcome) -> None:
        future = self._asked.get(request)
        if future is not None and not future.done():
            future.set_result(outcome)

    def cancel_job(self, tell: Callable[[Event], None]) -> None:
        tell(CancelRequested())
