"""What the operator counts about itself, for Prometheus (spec K9).

Nothing is decided by these numbers. No label holds a job's name: a thousand jobs would be a
thousand series of each metric, and a job's own driver tells its own.
"""

from collections import Counter as Tally
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from weir_operator.cluster.api_paths import Key
from weir_operator.cluster.api_requests import Request
from weir_operator.resource.status import CheckpointedJobStatus, LifecycleState

_STATE_BUCKETS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600, 21_600, 86_400)
_LOOK_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """All series, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._jobs = Gauge(
            "weir_operator_jobs", "Jobs by lifecycle state.", ("state",), registry=self.registry
        )
        self._longest = Gauge(
            "weir_operator_oldest_in_state_seconds",
            "How long the job that is longest in a state has been in it.",
            ("state",),
            registry=self.registry,
        )
        self._left = Histogram(
            "weir_operator_state_seconds",
            "How long jobs were in a state when they left it, and for which.",
            ("state", "next"),
            buckets=_STATE_BUCKETS,
            registry=self.registry,
        )
        self._looks = Histogram(
            "weir_operator_look_seconds",
            "How long looks at resources take.",
            ("kind",),
            buckets=_LOOK_BUCKETS,
            registry=self.registry,
        )
        self._calls = Counter(
            "weir_operator_api_calls",
            "Calls of the API server; code 0 means that none came back.",
            ("verb", "resource", "code"),
            registry=self.registry,
        )
        self._failures = Counter(
            "weir_operator_failures", "Looks that failed.", ("cause",), registry=self.registry
        )
        self._since: dict[Key, tuple[LifecycleState, datetime]] = {}

    def called(self, request: Request, code: int, _seconds: float) -> None:
        self._calls.labels(request.verb, request.resource, str(code)).inc()

    def failed(self, cause: str) -> None:
        self._failures.labels(cause).inc()

    def looked(self, kind: str, seconds: float) -> None:
        self._looks.labels(kind).observe(seconds)

    def saw_job(
        self,
        key: Key,
        before: CheckpointedJobStatus,
        after: CheckpointedJobStatus,
        now: datetime,
    ) -> None:
        """A job is in a state; whoever was in another has left it."""
        state, since = self._since.setdefault(key, (before.state, now))
        if state is not after.state:
            self._left.labels(state, after.state).observe((now - since).total_seconds())
            self._since[key] = (after.state, now)

    def forget_job(self, key: Key) -> None:
        self._since.pop(key, None)

    def text(self, now: datetime) -> bytes:
        """As Prometheus reads it."""
        tally = Tally(state for state, _ in self._since.values())
        for state in LifecycleState:
            starts = [since for known, since in self._since.values() if known is state]
            oldest = max(((now - since).total_seconds() for since in starts), default=0.0)
            self._jobs.labels(state).set(tally[state])
            self._longest.labels(state).set(oldest)
        return generate_latest(self.registry)
