"""Composes the operator and runs it: ``python -m weir_operator``.

Every setting is a flag, and an environment variable of the same name for a Deployment. The operator
acts only while it holds its Lease; when it loses the Lease, the process exits at once, so that no
task is left that could act.
"""

import argparse
import asyncio
import json
import logging
import os
import socket
import sys
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from time import monotonic
from typing import Any

import kopf
from kubernetes_asyncio.client import Configuration

from weir.api.environment_variables import (
    WEIR_OPERATOR_DRIVER_PEERS,
    WEIR_OPERATOR_DRIVER_PORT,
    WEIR_OPERATOR_HEALTH_PORT,
    WEIR_OPERATOR_IDENTITY,
    WEIR_OPERATOR_KUBECONFIG,
    WEIR_OPERATOR_LEASE,
    WEIR_OPERATOR_LOG_FORMAT,
    WEIR_OPERATOR_LOG_LEVEL,
    WEIR_OPERATOR_LOST_AFTER,
    WEIR_OPERATOR_METRICS_PORT,
    WEIR_OPERATOR_NAMESPACES,
    WEIR_OPERATOR_OWN_NAMESPACE,
)
from weir.errors import JobRejected, Unavailable, WeirError
from weir_operator.cluster import api_client
from weir_operator.cluster.api_paths import JOBS, NODES, NamespacedName
from weir_operator.cluster.api_requests import ApiRejected, ApiRequest, successful_body
from weir_operator.cluster.cluster_reader import ClusterReader
from weir_operator.cluster.cluster_writer import ClusterWriter
from weir_operator.cluster.connection_limits import raise_connection_limits
from weir_operator.cluster.driver_credentials import CredentialsCache
from weir_operator.cluster.informer_cache import InformerCache
from weir_operator.cluster.leader_election import LeaderElector
from weir_operator.cluster.observation import parse_node
from weir_operator.cluster.resync import list_all, resync
from weir_operator.controller import json_log
from weir_operator.controller.action_executor import ActionExecutor
from weir_operator.controller.health_server import HealthServer
from weir_operator.controller.informers import (
    Informers,
    kopf_registry,
    kopf_settings,
    quiet_kopf_logging,
)
from weir_operator.controller.job_reconciler import JobReconciler
from weir_operator.controller.operator_metrics import OperatorMetrics
from weir_operator.controller.report_watcher import ReportWatcher
from weir_operator.controller.snapshot_reconciler import SnapshotReconciler
from weir_operator.controller.watch_probe import WatchProbe
from weir_operator.controller.work_queue import Reconcile, ReconcileResult, WorkQueue
from weir_operator.driver_client import DriverClient
from weir_operator.manifests.network_policy import Peers

log = logging.getLogger("weir_operator")

RESYNC_PERIOD_S = 300.0
RETRY_S = 5.0
SHUTDOWN_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSettings:
    """The settings of one operator process."""

    kubeconfig: str | None
    namespaces: tuple[str, ...]
    """The whole cluster if empty."""
    own_namespace: str
    identity: str
    lease: str
    driver_port: int
    driver_peers: Peers | None
    """Without it, the operator creates no NetworkPolicies."""
    health_port: int
    metrics_port: int
    lost_after: timedelta
    log_level: str
    log_format: str


def read_settings(arguments: Sequence[str]) -> OperatorSettings:
    parser = argparse.ArgumentParser(prog="weir-operator", description="Runs CheckpointedJobs.")
    flag = partial(_add_flag, parser)
    flag("--kubeconfig", WEIR_OPERATOR_KUBECONFIG, help="file; without it, from the cluster")
    flag("--namespaces", WEIR_OPERATOR_NAMESPACES, "", help="a,b,c; the whole cluster if none")
    flag("--own-namespace", WEIR_OPERATOR_OWN_NAMESPACE, "weir-system", help="of the Lease")
    flag("--identity", WEIR_OPERATOR_IDENTITY, socket.gethostname(), help="in the Lease")
    flag("--lease", WEIR_OPERATOR_LEASE, "weir-operator", help="name of the Lease")
    flag("--driver-port", WEIR_OPERATOR_DRIVER_PORT, 8081, type=int, help="of drivers' APIs")
    flag(
        "--driver-peers",
        WEIR_OPERATOR_DRIVER_PEERS,
        type=_peers,
        help="JSON list of NetworkPolicy peers that reach drivers' APIs, the operator among them;"
        " with it, the operator makes a NetworkPolicy for each job",
    )
    flag("--health-port", WEIR_OPERATOR_HEALTH_PORT, 8080, type=int, help="/healthz, /readyz")
    flag("--metrics-port", WEIR_OPERATOR_METRICS_PORT, 9090, type=int, help="/metrics")
    flag(
        "--lost-after",
        WEIR_OPERATOR_LOST_AFTER,
        40.0,
        type=float,
        help="seconds until a node that is not ready counts as lost",
    )
    flag("--log-level", WEIR_OPERATOR_LOG_LEVEL, "INFO", choices=("DEBUG", "INFO", "WARNING"))
    flag("--log-format", WEIR_OPERATOR_LOG_FORMAT, "json", choices=("json", "text"))
    given = vars(parser.parse_args(arguments))
    names = tuple(name.strip() for name in given.pop("namespaces").split(",") if name.strip())
    patience = timedelta(seconds=given.pop("lost_after"))
    return OperatorSettings(namespaces=names, lost_after=patience, **given)


def _peers(text: str) -> Peers:
    try:
        peers = json.loads(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(f"this is not JSON: {problem}") from problem
    if not isinstance(peers, list) or not all(isinstance(peer, dict) and peer for peer in peers):
        raise argparse.ArgumentTypeError("write a JSON list of peers as in a NetworkPolicy's from")
    return tuple(peers)


def _add_flag(
    parser: argparse.ArgumentParser,
    name: str,
    variable: str,
    default: object = None,
    **options: Any,  # noqa: ANN401 - as argparse takes them
) -> None:
    """Add a flag whose default is the value of an environment variable, if that is set."""
    parser.add_argument(name, default=os.environ.get(variable) or default, **options)


def now() -> datetime:
    return datetime.now(UTC)


class Operator:
    """The parts of one operator process."""

    def __init__(
        self, settings: OperatorSettings, configuration: Configuration, metrics: OperatorMetrics
    ) -> None:
        self._settings = settings
        self._configuration = configuration
        self._metrics = metrics
        self.api = api_client.ApiClient(configuration, metrics.count_call)
        self._own_api = api_client.ApiClient(configuration, metrics.count_call)
        """A separate connection pool for the Lease, so that reconciles cannot delay its renewal."""
        self._client = DriverClient()
        self._cache = InformerCache()
        peers = settings.driver_peers
        self._reader = ClusterReader(self.api, self._cache, settings.lost_after, peers)
        self._reports = ReportWatcher(self._client, self._enqueue_job)
        actor = ActionExecutor(
            self.api,
            self._cache,
            self._reader,
            ClusterWriter(self.api, peers),
            CredentialsCache(self.api),
            self._client,
            self._reports,
            settings.driver_port,
            now,
        )
        self._jobs = self._work_queue("job", JobReconciler(actor, metrics, now).reconcile)
        self._snapshots = self._work_queue("snapshot", SnapshotReconciler(actor, now).reconcile)
        everywhere = not settings.namespaces
        is_watched = everywhere or settings.own_namespace in settings.namespaces
        self.probe = WatchProbe(self.api, settings.own_namespace, is_watched)
        leadership = NamespacedName(settings.own_namespace, settings.lease)
        self.elector = LeaderElector(self._own_api, leadership, settings.identity)

    def _enqueue_job(self, job: NamespacedName) -> None:
        self._jobs.enqueue(job)

    def _work_queue(self, kind: str, reconcile: Reconcile) -> WorkQueue:
        async def timed(key: NamespacedName) -> ReconcileResult:
            started = monotonic()
            try:
                return await reconcile(key)
            finally:
                self._metrics.reconciled(kind, monotonic() - started)

        return WorkQueue(kind, timed, self._metrics.failed, now)

    async def wait_for_api(self) -> None:
        """Wait until the API server answers and serves the custom resources."""
        scope = self._settings.namespaces[0] if self._settings.namespaces else None
        request = ApiRequest("GET", JOBS, JOBS.collection_path(scope), {"limit": "1"})
        while True:
            try:
                successful_body(request, await self.api.call(request))
            except (ApiRejected, Unavailable) as problem:
                log.warning(
                    "Waiting for the API server to serve the custom resources.",
                    extra={"why": str(problem)},
                )
                await asyncio.sleep(RETRY_S)
            else:
                return

    async def run(self) -> None:
        """Watch and reconcile until cancelled, or until Kopf ends."""
        await self._list_nodes()
        await self._resync()
        watches = Informers(self._cache, self._jobs, self._snapshots, self.probe)
        watches_nodes = self._reader.can_read_nodes
        tasks = [
            asyncio.create_task(self._resync_forever(), name="sweep"),
            asyncio.create_task(self.probe.write_forever(), name="canary"),
        ]
        try:
            await kopf.operator(
                registry=kopf_registry(watches, self._configuration, watches_nodes=watches_nodes),
                settings=kopf_settings(),
                namespaces=self._settings.namespaces,
                clusterwide=not self._settings.namespaces,
            )
        finally:
            for task in tasks:
                task.cancel()
            await self._stop()

    async def lead(self) -> None:
        """Renew the Lease; stop all reconciles when it is lost, even if other tasks end later."""
        try:
            await self.elector.renew_forever()
        finally:
            await self._stop()

    async def _stop(self) -> None:
        await self._jobs.close()
        await self._snapshots.close()
        await self._reports.close()

    async def close(self) -> None:
        await self._client.close()
        await self._own_api.close()
        await self.api.close()

    async def _list_nodes(self) -> None:
        """List all nodes before any pod: an unknown node must not count as lost."""
        try:
            async for body in list_all(self.api, NODES, (None,)):
                node = parse_node(body)
                self._cache.nodes[node.name] = node
        except ApiRejected:
            self._reader.can_read_nodes = False
            log.warning("The operator may not list nodes, so it cannot detect lost nodes.")

    async def _resync(self) -> None:
        namespaces: tuple[str | None, ...] = self._settings.namespaces or (None,)
        changed = await resync(self.api, self._cache, namespaces)
        for key in sorted(changed.jobs):
            self._jobs.enqueue(key)
        for key in sorted(changed.snapshots):
            self._snapshots.enqueue(key)

    async def _resync_forever(self) -> None:
        while True:
            await asyncio.sleep(RESYNC_PERIOD_S)
            try:
                await self._resync()
            except (ApiRejected, Unavailable) as problem:
                log.warning("A resync was interrupted.", extra={"why": str(problem)})


async def run(settings: OperatorSettings) -> None:
    """Run as leader; return on shutdown, raise when leadership is lost."""
    metrics = OperatorMetrics()
    health = HealthServer(metrics, now)
    await health.serve(settings.health_port, settings.metrics_port)
    operator = Operator(settings, await api_client.load_configuration(settings.kubeconfig), metrics)
    try:
        await operator.wait_for_api()
        health.is_ready = True
        await operator.elector.acquire()
        health.probe = operator.probe
        await _first_to_end(operator.run(), operator.lead())
        await operator.elector.release()
    finally:
        await operator.close()
        await health.close()


async def _first_to_end(*coroutines: Coroutine[object, object, None]) -> None:
    """Run them concurrently; when one ends, cancel the others and raise its exception."""
    tasks = [asyncio.create_task(one) for one in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(SHUTDOWN_TIMEOUT_S):
                await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


def main() -> None:
    settings = read_settings(sys.argv[1:])
    json_log.configure_logging(settings.log_level, as_json=settings.log_format == "json")
    quiet_kopf_logging()
    raise_connection_limits()
    try:
        asyncio.run(run(settings))
    except JobRejected as refused:
        log.error("The operator cannot start.", extra={"why": str(refused)})  # noqa: TRY400
        sys.exit(2)
    except WeirError as ended:
        log.error("The operator exits.", extra={"why": str(ended)})  # noqa: TRY400
        sys.exit(1)


if __name__ == "__main__":
    main()
