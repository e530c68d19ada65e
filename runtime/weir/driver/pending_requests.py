"""Requests to a running job and their answers: checkpoints, savepoints, the end.

A request has an id; the same id asked twice is one request with one answer, so that a client whose
connection broke may ask again (an idempotency key). Every request gets an answer, at the latest
when the driver ends. The newest answers are kept; a job may live for years.
"""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from uuid import uuid4

from weir.core.coordinator.actions import RequestFailed, RequestSucceeded
from weir.core.coordinator.events import CheckpointRequested
from weir.core.ids import RequestId
from weir.core.job_master import Event
from weir.core.reasons import Reason
from weir.core.snapshots import CheckpointKind

Outcome = RequestSucceeded | RequestFailed

KEPT_ANSWERS = 1_000
"""Requests that stay known after their answer; older ones are forgotten."""

TOO_LATE = RequestFailed(Reason.CHECKPOINT_COORDINATOR_SHUTDOWN, "the job's driver has ended")


class PendingRequests:
    """All requests to this driver."""

    def __init__(self) -> None:
        self._asked: dict[RequestId, Future[Outcome]] = {}
        self._answered: deque[RequestId] = deque()
        """The oldest first."""
        self._lock = threading.Lock()
        self._is_over = False

    def ask(
        self,
        enqueue: Callable[[Event], None],
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
            if self._is_over:
                self._settle(request, future, TOO_LATE)
                return request, future
        enqueue(CheckpointRequested(request, kind, location))
        return request, future

    def find(self, request: str) -> Future[Outcome] | None:
        return self._asked.get(RequestId(request))

    def answer(self, request: RequestId, outcome: Outcome) -> None:
        with self._lock:
            future = self._asked.get(request)
            if future is not None and not future.done():
                self._settle(request, future, outcome)

    def close(self) -> None:
        """The driver ends: answer the requests that would otherwise wait for ever."""
        with self._lock:
            self._is_over = True
            for request, future in list(self._asked.items()):
                if not future.done():
                    self._settle(request, future, TOO_LATE)

    def _settle(self, request: RequestId, future: Future[Outcome], outcome: Outcome) -> None:
        future.set_result(outcome)
        self._answered.append(request)
        if len(self._answered) > KEPT_ANSWERS:
            del self._asked[self._answered.popleft()]
