"""A job under the operator's reconcilers, with an API server in memory and a fake driver.

Time passes only when a test advances it. There are no watches: ``resync_cache`` shows the
reconcilers everything that the API server has, as a list does after a watch was lost.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from fake_api_server import FakeApiServer
from fake_cluster import a_spec
from weir.api.report import JobPhase
from weir_operator.cluster.api_paths import JOBS, NODES, PODS, SNAPSHOTS, NamespacedName
from weir_operator.cluster.cluster_reader import ClusterReader
from weir_operator.cluster.cluster_writer import ClusterWriter
from weir_operator.cluster.driver_credentials import CredentialsCache
from weir_operator.cluster.informer_cache import InformerCache
from weir_operator.cluster.resync import resync
from weir_operator.controller.action_executor import ActionExecutor
from weir_operator.controller.job_reconciler import JobReconciler
from weir_operator.controller.operator_metrics import OperatorMetrics
from weir_operator.controller.report_watcher import ReportWatcher
from weir_operator.controller.snapshot_reconciler import SnapshotReconciler
from weir_operator.controller.work_queue import ReconcileResult
from weir_operator.driver_client import DriverEndpoint, DriverRequest, VersionedReport
from weir_operator.plan.observed_state import DriverReport, Unreachable
from weir_operator.resource.api_group import GROUP, JOB, SNAPSHOT, VERSION
from weir_operator.resource.status import CheckpointedJobStatus

NAMESPACE = "shop"
KEY = NamespacedName(NAMESPACE, "orders")
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
NODE = "node-1"
PEERS = ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "weir-system"}}},)
UNREACHABLE = Unreachable("its API does not respond")


@dataclass
class FakeDriver:
    """A driver's API without a driver."""

    answer: Callable[[DriverEndpoint], DriverReport | Unreachable] = lambda _: UNREACHABLE
    version: str = ""
    """By which its next report can be waited for; empty if by none."""
    requests: list[DriverRequest] = field(default_factory=list)
    endpoints: list[DriverEndpoint] = field(default_factory=list)

    async def report(self, endpoint: DriverEndpoint) -> VersionedReport | Unreachable:
        self.endpoints.append(endpoint)
        report = self.answer(endpoint)
        return report if isinstance(report, Unreachable) else VersionedReport(report, self.version)

    async def next_report(
        self, endpoint: DriverEndpoint, after: str
    ) -> VersionedReport | Unreachable:
        """Never returns while the caller waits."""
        assert (endpoint.attempt, after) == (1, self.version)
        await asyncio.Event().wait()
        return UNREACHABLE

    async def send(self, endpoint: DriverEndpoint, request: DriverRequest) -> bool:
        self.endpoints.append(endpoint)
        self.requests.append(request)
        return True


class ReconciledJob:
    """The shell, its API server and its clock."""

    def __init__(self, **changes: object) -> None:
        self.api = FakeApiServer()
        self.driver = FakeDriver()
        self.time = BEGINNING
        self.enqueued: list[NamespacedName] = []
        self.cache = InformerCache()
        self.reader = ClusterReader(self.api, self.cache, timedelta(seconds=40), PEERS)
        self.executor = ActionExecutor(
            self.api,
            self.cache,
            self.reader,
            ClusterWriter(self.api, PEERS),
            CredentialsCache(self.api),
            self.driver,
            ReportWatcher(self.driver, self.enqueued.append),
            8081,
            self.now,
        )
        self.metrics = OperatorMetrics()
        self.jobs = JobReconciler(self.executor, self.metrics, self.now)
        self.snapshots = SnapshotReconciler(self.executor, self.now)
        self.api.put(NODES.cluster_object_path(NODE), {"metadata": {"name": NODE}})
        self.api.put(JOBS.object_path(KEY), a_job(**changes))

    def now(self) -> datetime:
        return self.time

    def resync_cache(self) -> None:
        asyncio.run(resync(self.api, self.cache, (None,)))

    def reconcile(self) -> ReconcileResult:
        self.resync_cache()
        return asyncio.run(self.jobs.reconcile(KEY))

    def reconcile_snapshot(self, name: str) -> ReconcileResult:
        self.resync_cache()
        return asyncio.run(self.snapshots.reconcile(NamespacedName(NAMESPACE, name)))

    @property
    def job(self) -> dict[str, Any]:
        return self.api.objects[JOBS.object_path(KEY)]

    @property
    def status(self) -> CheckpointedJobStatus:
        return CheckpointedJobStatus.model_validate(self.job["status"])

    def pod(self, name: str = "orders-driver-1") -> dict[str, Any]:
        return self.api.objects[PODS.object_path(NamespacedName(NAMESPACE, name))]

    def driver_runs(self, name: str = "orders-driver-1") -> None:
        """Its container is up and its API answers."""
        path = PODS.object_path(NamespacedName(NAMESPACE, name))
        body = self.api.objects[path]
        body["spec"]["nodeName"] = NODE
        body["status"] = {
            "phase": "Running",
            "podIP": "10.0.0.7",
            "containerStatuses": [{"name": "driver", "state": {"running": {}}}],
        }
        self.api.put(path, body)
        self.driver.answer = lambda endpoint: DriverReport(endpoint.attempt, JobPhase.RUNNING)

    def driver_ends(self, code: int, message: str = "", name: str = "orders-driver-1") -> None:
        path = PODS.object_path(NamespacedName(NAMESPACE, name))
        body = self.api.objects[path]
        ended = {"exitCode": code, "reason": "Error", "message": message}
        body["status"] = {
            "phase": "Failed",
            "containerStatuses": [{"name": "driver", "state": {"terminated": ended}}],
        }
        self.api.put(path, body)

    def is_running(self) -> "ReconciledJob":
        """Brought so far that all subtasks run."""
        self.reconcile()
        self.driver_runs()
        self.reconcile()
        return self


def a_job(**changes: object) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": JOB.kind,
        "metadata": {"name": KEY.name, "namespace": NAMESPACE, "uid": "uid-1", "generation": 1},
        "spec": a_spec(**changes),
    }


def a_snapshot(name: str, **spec: object) -> tuple[str, dict[str, Any]]:
    """Its path and its body."""
    body = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": SNAPSHOT.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"jobName": KEY.name} | spec,
    }
    return SNAPSHOTS.object_path(NamespacedName(NAMESPACE, name)), body
