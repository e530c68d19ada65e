"""Puts the operator together and runs it: ``python -m weir_operator``.

The only place that knows all the others. Every setting is a flag, and an environment variable of
the same name for a Deployment. The operator acts only while it holds its Lease; when it loses it,
the process ends at once, so that nothing of it is left that could act.
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
from weir_operator.cluster.api_paths import JOBS, NODES, Key
from weir_operator.cluster.api_requests import ApiRefused, Request, good
from weir_operator.cluster.cluster_reader import Eyes
from weir_operator.cluster.cluster_writer import Hands
from weir_operator.cluster.connection_limits import make_room
from weir_operator.cluster.driver_credentials import Contacts
from weir_operator.cluster.informer_cache import Watched
from weir_operator.cluster.leader_election import Lease
from weir_operator.cluster.observation import see_node
from weir_operator.cluster.resync import everything, sweep
from weir_operator.controller import json_log
from weir_operator.controller.action_executor import Actor
from weir_operator.controller.health_server import Health
from weir_operator.controller.informers import Watches, quieten, registry_of, settings_of
from weir_operator.controller.job_reconciler import JobLooks
from weir_operator.controller.operator_metrics import Metrics
from weir_operator.controller.report_watcher import Listening
from weir_operator.controller.snapshot_reconciler import SnapshotLooks
from weir_operator.controller.watch_probe import Canary
from weir_operator.controller.work_queue import Desk, Look, Looked
from weir_operator.driver_client import DriverClient
from weir_operator.manifests.network_policy import Peers

log = logging.getLogger("weir_operator")

SWEEP_EVERY_S = 300.0
RETRY_S = 5.0
FAREWELL_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an operator can be told."""

    kubeconfig: str | None
    namespaces: tuple[str, ...]
    """None of them means the whole cluster."""
    own_namespace: str
    identity: str
    lease: str
    driver_port: int
    driver_peers: Peers | None
    """None given: jobs get no NetworkPolicy."""
    health_port: int
    metrics_port: int
    lost_after: timedelta
    log_level: str
    log_format: str


def read_settings(arguments: Sequence[str]) -> Settings:
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
    return Settings(namespaces=names, lost_after=patience, **given)


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
    """All parts of one process."""

    def __init__(self, settings: Settings, configuration: Configuration, metrics: Metrics) -> None:
        self._settings = settings
        self._configuration = configuration
        self._metrics = metrics
        self.api = api_client.RestApi(configuration, metrics.called)
        self._own_api = api_client.RestApi(configuration, metrics.called)
        """For what must not wait behind the calls of a thousand looks."""
        self._client = DriverClient()
        self._watched = Watched()
        peers = settings.driver_peers
        self._eyes = Eyes(self.api, self._watched, settings.lost_after, peers)
        self._listening = Listening(self._client, self._heard_news)
        actor = Actor(
            self.api,
            self._watched,
            self._eyes,
            Hands(self.api, peers),
            Contacts(self.api),
            self._client,
            self._listening,
            settings.driver_port,
            now,
        )
        self._jobs = self._desk("job", JobLooks(actor, metrics, now).look)
        self._snapshots = self._desk("snapshot", SnapshotLooks(actor, now).look)
        everywhere = not settings.namespaces
        is_watched = everywhere or settings.own_namespace in settings.namespaces
        self.canary = Canary(self.api, settings.own_namespace, is_watched)
        leadership = Key(settings.own_namespace, settings.lease)
        self.lease = Lease(self._own_api, leadership, settings.identity)

    def _heard_news(self, job: Key) -> None:
        self._jobs.ring(job)

    def _desk(self, kind: str, look: Look) -> Desk:
        async def timed(key: Key) -> Looked:
            started = monotonic()
            try:
                return await look(key)
            finally:
                self._metrics.looked(kind, monotonic() - started)

        return Desk(kind, timed, self._metrics.failed, now)

    async def reached(self) -> None:
        """Wait until the API server answers and knows our resources."""
        scope = self._settings.namespaces[0] if self._settings.namespaces else None
        request = Request("GET", JOBS, JOBS.within(scope), {"limit": "1"})
        while True:
            try:
                good(request, await self.api.call(request))
            except (ApiRefused, Unavailable) as problem:
                log.warning("The operator waits for its resources.", extra={"why": str(problem)})
                await asyncio.sleep(RETRY_S)
            else:
                return

    async def run(self) -> None:
        """Watch and act until cancelled, or until Kopf ends."""
        await self._see_nodes()
        await self._swept()
        watches = Watches(self._watched, self._jobs, self._snapshots, self.canary)
        sees_nodes = self._eyes.may_see_nodes
        beside = [
            asyncio.create_task(self._sweep_forever(), name="sweep"),
            asyncio.create_task(self.canary.beat_forever(), name="canary"),
        ]
        try:
            await kopf.operator(
                registry=registry_of(watches, self._configuration, sees_nodes=sees_nodes),
                settings=settings_of(),
                namespaces=self._settings.namespaces,
                clusterwide=not self._settings.namespaces,
            )
        finally:
            for task in beside:
                task.cancel()
            await self._stop_acting()

    async def lead(self) -> None:
        """Keep the Lease; without it nothing goes on, however long the rest takes to end."""
        try:
            await self.lease.keep()
        finally:
            await self._stop_acting()

    async def _stop_acting(self) -> None:
        await self._jobs.close()
        await self._snapshots.close()
        await self._listening.close()

    async def close(self) -> None:
        await self._client.close()
        await self._own_api.close()
        await self.api.close()

    async def _see_nodes(self) -> None:
        """All nodes, before any pod: a node that is not known yet must not count as lost."""
        try:
            async for body in everything(self.api, NODES, (None,)):
                node = see_node(body)
                self._watched.nodes[node.name] = node
        except ApiRefused:
            self._eyes.may_see_nodes = False
            log.warning("The operator may not list nodes; lost ones are waited for.")

    async def _swept(self) -> None:
        namespaces: tuple[str | None, ...] = self._settings.namespaces or (None,)
        stirred = await sweep(self.api, self._watched, namespaces)
        for key in sorted(stirred.jobs):
            self._jobs.ring(key)
        for key in sorted(stirred.snapshots):
            self._snapshots.ring(key)

    async def _sweep_forever(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_EVERY_S)
            try:
                await self._swept()
            except (ApiRefused, Unavailable) as problem:
                log.warning("A sweep was cut short.", extra={"why": str(problem)})


async def run(settings: Settings) -> None:
    """Lead when it is our turn; return when told to end, raise when leadership is lost."""
    metrics = Metrics()
    health = Health(metrics, now)
    await health.serve(settings.health_port, settings.metrics_port)
    operator = Operator(settings, await api_client.find(settings.kubeconfig), metrics)
    try:
        await operator.reached()
        health.is_ready = True
        await operator.lease.acquire()
        health.canary = operator.canary
        await _first_to_end(operator.run(), operator.lead())
        await operator.lease.release()
    finally:
        await operator.close()
        await health.close()


async def _first_to_end(*coroutines: Coroutine[object, object, None]) -> None:
    """Run them beside each other; when one ends, end the others and raise what it raised."""
    tasks = [asyncio.create_task(one) for one in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_S):
                await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


def main() -> None:
    settings = read_settings(sys.argv[1:])
    json_log.begin(settings.log_level, as_json=settings.log_format == "json")
    quieten()
    make_room()
    try:
        asyncio.run(run(settings))
    except JobRejected as refused:
        log.error("The operator cannot run.", extra={"why": str(refused)})  # noqa: TRY400
        sys.exit(2)
    except WeirError as ended:
        log.error("The operator ends.", extra={"why": str(ended)})  # noqa: TRY400
        sys.exit(1)


if __name__ == "__main__":
    main()
