"""A job under the operator's shell, with an API server in memory and a driver that is played.

Time passes only when a test lets it. The watches are played by hand: ``news`` shows the shell
everything that the API server has, as a list does after a watch was lost.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from fake_api_server import LittleApi
from fake_cluster import a_spec
from weir.api.report import JobPhase
from weir_operator.cluster.api_paths import JOBS, NODES, PODS, SNAPSHOTS, Key
from weir_operator.cluster.cluster_reader import Eyes
from weir_operator.cluster.cluster_writer import Hands
from weir_operator.cluster.driver_credentials import Contacts
from weir_operator.cluster.informer_cache import Watched
from weir_operator.cluster.resync import sweep
from weir_operator.controller.action_executor import Actor
from weir_operator.controller.job_reconciler import JobLooks
from weir_operator.controller.operator_metrics import Metrics
from weir_operator.controller.report_watcher import Listening
from weir_operator.controller.snapshot_reconciler import SnapshotLooks
from weir_operator.controller.work_queue import Looked
from weir_operator.driver_client import Line, Order, Told
from weir_operator.plan.observed_state import DriverReport, Silence
from weir_operator.resource.api_group import GROUP, JOB, SNAPSHOT, VERSION
from weir_operator.resource.status import CheckpointedJobStatus

NAMESPACE = "shop"
KEY = Key(NAMESPACE, "orders")
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
NODE = "node-1"
PEERS = ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "weir-system"}}},)
SILENCE = Silence("its API does not answer")


@dataclass
class SaidDriver:
    """A driver's API without a driver."""

    answer: Callable[[Line], DriverReport | Silence] = lambda _: SILENCE
    version: str = ""
    """By which its next report can be waited for; empty if by none."""
    orders: list[Order] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)

    async def report(self, line: Line) -> Told | Silence:
        self.lines.append(line)
        said = self.answer(line)
        return said if isinstance(said, Silence) else Told(said, self.version)

    async def news(self, line: Line, after: str) -> Told | Silence:
        """None for as long as anybody waits."""
        assert (line.attempt, after) == (1, self.version)
        await asyncio.Event().wait()
        return SILENCE

    async def order(self, line: Line, order: Order) -> bool:
        self.lines.append(line)
        self.orders.append(order)
        return True


class OperatedJob:
    """The shell, its API server and its clock."""

    def __init__(self, **changes: object) -> None:
        self.api = LittleApi()
        self.driver = SaidDriver()
        self.time = BEGINNING
        self.rung: list[Key] = []
        self.watched = Watched()
        self.eyes = Eyes(self.api, self.watched, timedelta(seconds=40), PEERS)
        self.actor = Actor(
            self.api,
            self.watched,
            self.eyes,
            Hands(self.api, PEERS),
            Contacts(self.api),
            self.driver,
            Listening(self.driver, self.rung.append),
            8081,
            self.now,
        )
        self.metrics = Metrics()
        self.jobs = JobLooks(self.actor, self.metrics, self.now)
        self.snapshots = SnapshotLooks(self.actor, self.now)
        self.api.put(NODES.of_cluster(NODE), {"metadata": {"name": NODE}})
        self.api.put(JOBS.of(KEY), a_job(**changes))

    def now(self) -> datetime:
        return self.time

    def news(self) -> None:
        asyncio.run(sweep(self.api, self.watched, (None,)))

    def look(self) -> Looked:
        self.news()
        return asyncio.run(self.jobs.look(KEY))

    def look_at_snapshot(self, name: str) -> Looked:
        self.news()
        return asyncio.run(self.snapshots.look(Key(NAMESPACE, name)))

    @property
    def job(self) -> dict[str, Any]:
        return self.api.objects[JOBS.of(KEY)]

    @property
    def status(self) -> CheckpointedJobStatus:
        return CheckpointedJobStatus.model_validate(self.job["status"])

    def pod(self, name: str = "orders-driver-1") -> dict[str, Any]:
        return self.api.objects[PODS.of(Key(NAMESPACE, name))]

    def driver_runs(self, name: str = "orders-driver-1") -> None:
        """Its container is up and its API answers."""
        path = PODS.of(Key(NAMESPACE, name))
        body = self.api.objects[path]
        body["spec"]["nodeName"] = NODE
        body["status"] = {
            "phase": "Running",
            "podIP": "10.0.0.7",
            "containerStatuses": [{"name": "driver", "state": {"running": {}}}],
        }
        self.api.put(path, body)
        self.driver.answer = lambda line: DriverReport(line.attempt, JobPhase.RUNNING)

    def driver_ends(self, code: int, message: str = "", name: str = "orders-driver-1") -> None:
        path = PODS.of(Key(NAMESPACE, name))
        body = self.api.objects[path]
        ended = {"exitCode": code, "reason": "Error", "message": message}
        body["status"] = {
            "phase": "Failed",
            "containerStatuses": [{"name": "driver", "state": {"terminated": ended}}],
        }
        self.api.put(path, body)

    def is_running(self) -> "OperatedJob":
        """Brought so far that all subtasks run."""
        self.look()
        self.driver_runs()
        self.look()
        return self


def a_job(**changes: object) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": JOB.kind,
        "metadata": {"name": KEY.name, "namespace": NAMESPACE, "uid": "uid-1", "generation": 1},
        "spec": a_spec(**changes),
    }


def a_snapshot(name: str, **spec: object) -> tuple[str, dict[str, Any]]:
    """Where it lies, and what it is."""
    body = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": SNAPSHOT.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"jobName": KEY.name} | spec,
    }
    return SNAPSHOTS.of(Key(NAMESPACE, name)), body
