"""The operator's own metrics for Prometheus (spec K9).

No decision depends on them. No label holds a job's name: a thousand jobs would make a thousand
series of each metric, and each driver exports the metrics of its job.
"""

from collections import Counter as Tally
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from weir_operator.cluster.api_paths import NamespacedName
from weir_operator.cluster.api_requests import ApiRequest
from weir_operator.resource.status import CheckpointedJobStatus, LifecycleState

_STATE_BUCKETS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600, 21_600, 86_400)
_RECONCILE_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class OperatorMetrics:
    """All series, in a separate registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._jobs = Gauge(
            "weir_operator_jobs", "Jobs by lifecycle state.", ("state",), registry=self.registry
        )
        self._longest = Gauge(
            "weir_operator_oldest_in_state_seconds",
            "Longest time that a job has been in its current state.",
            ("state",),
            registry=self.registry,
        )
        self._left = Histogram(
            "weir_operator_state_seconds",
            "Time that jobs spent in a state before the next state.",
            ("state", "next"),
            buckets=_STATE_BUCKETS,
            registry=self.registry,
        )
        self._reconciles = Histogram(
            "weir_operator_look_seconds",
            "Duration of reconciles.",
            ("kind",),
            buckets=_RECONCILE_BUCKETS,
            registry=self.registry,
        )
        self._calls = Counter(
            "weir_operator_api_calls",
            "Requests to the API server; code 0 means that no response arrived.",
            ("verb", "resource", "code"),
            registry=self.registry,
        )
        self._failures = Counter(
            "weir_operator_failures", "Reconciles that failed.", ("cause",), registry=self.registry
        )
        self._since: dict[NamespacedName, tuple[LifecycleState, datetime]] = {}

    def count_call(self, request: ApiRequest, code: int, _seconds: float) -> None:
        self._calls.labels(request.verb, request.resource, str(code)).inc()

    def failed(self, cause: str) -> None:
        self._failures.labels(cause).inc()

    def reconciled(self, kind: str, seconds: float) -> None:
        self._reconciles.labels(kind).observe(seconds)

    def observe_job(
        self,
        key: NamespacedName,
        before: CheckpointedJobStatus,
        after: CheckpointedJobStatus,
        now: datetime,
    ) -> None:
        """Record the state of a job, and how long it was in the previous one."""
        state, since = self._since.setdefault(key, (before.state, now))
        if state is not after.state:
            self._left.labels(state, after.state).observe((now - since).total_seconds())
            self._since[key] = (after.state, now)

    def forget_job(self, key: NamespacedName) -> None:
        self._since.pop(key, None)

    def text(self, now: datetime) -> bytes:
        """The metrics in Prometheus' text format."""
        tally = Tally(state for state, _ in self._since.values())
        for state in LifecycleState:
            starts = [since for known, since in self._since.values() if known is state]
            oldest = max(((now - since).total_seconds() for since in starts), default=0.0)
            self._jobs.labels(state).set(tally[state])
            self._longest.labels(state).set(oldest)
        return generate_latest(self.registry)
