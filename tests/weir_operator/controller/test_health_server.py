"""The operator says that it is unwell when its watches bring no news, and counts what it does."""

import asyncio
from datetime import UTC, datetime, timedelta

import aiohttp

from fake_api_server import FakeApiServer
from weir_operator.cluster.api_paths import CONFIG_MAPS, JOBS, NamespacedName
from weir_operator.cluster.api_requests import ApiRequest
from weir_operator.controller.health_server import HealthServer
from weir_operator.controller.operator_metrics import OperatorMetrics
from weir_operator.controller.watch_probe import PROBE_CONFIG_MAP, TIMEOUT_S, WatchProbe
from weir_operator.resource.status import CheckpointedJobStatus, LifecycleState

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
PATH = CONFIG_MAPS.object_path(NamespacedName("weir-system", PROBE_CONFIG_MAP))


class ClusterWriter:
    """A canary and the clock beside it."""

    def __init__(self):
        self.api, self.time = FakeApiServer(), 0.0
        self.probe = WatchProbe(self.api, "weir-system", clock=lambda: self.time)

    def beat(self):
        asyncio.run(self.probe.beat())

    def comes_back(self):
        self.probe.observed_in_watch({"type": "MODIFIED", "object": self.api.objects[PATH]})


def test_a_beat_that_does_not_come_back_makes_the_operator_unwell():
    """K9: canary-backed liveness."""
    writer = ClusterWriter()
    writer.beat()
    writer.time = TIMEOUT_S
    assert not writer.probe.is_healthy

    writer.comes_back()
    assert writer.probe.is_healthy


def test_a_beat_that_could_not_be_sent_proves_nothing():
    """K9: an API server that is away must not restart every operator."""
    writer = ClusterWriter()
    writer.api.is_away = True
    writer.beat()
    writer.time = TIMEOUT_S
    assert writer.probe.is_healthy


def test_later_beats_do_not_hide_one_that_is_missing():
    """K9: the wait counts from the first that was not seen."""
    writer = ClusterWriter()
    writer.beat()
    writer.time = TIMEOUT_S - 1
    writer.beat()
    writer.time = TIMEOUT_S
    assert not writer.probe.is_healthy


def test_health_and_metrics_are_served():
    """K9: what the kubelet and Prometheus ask."""
    writer, metrics = ClusterWriter(), OperatorMetrics()
    metrics.count_call(ApiRequest("GET", JOBS, JOBS.collection_path(None)), 200, 0.1)
    metrics.observe_job(
        NamespacedName("shop", "orders"), *_states("Starting", "Running"), BEGINNING
    )

    async def asked():
        health = HealthServer(metrics, lambda: BEGINNING + timedelta(seconds=5))
        health.probe = writer.probe
        await health.serve(0)
        port = next(port for host, port in health.addresses if host == "0.0.0.0")  # noqa: S104
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            answers = {}
            for path in ("/healthz", "/readyz", "/metrics"):
                async with session.get(path) as response:
                    answers[path] = response.status, await response.text()
        await health.close()
        return answers

    answers = asyncio.run(asked())
    assert answers["/healthz"][0] == 200
    assert answers["/readyz"][0] == 503
    assert 'weir_operator_jobs{state="Running"} 1.0' in answers["/metrics"][1]
    assert 'resource="checkpointedjobs",verb="list"' in answers["/metrics"][1]


def test_a_job_that_is_gone_is_no_longer_counted():
    """K9: gauges tell of what is."""
    metrics, key = OperatorMetrics(), NamespacedName("shop", "orders")
    metrics.observe_job(key, *_states("Starting", "Running"), BEGINNING)
    metrics.forget_job(key)
    assert 'weir_operator_jobs{state="Running"} 0.0' in metrics.text(BEGINNING).decode()


def _states(*names):
    return tuple(CheckpointedJobStatus(state=LifecycleState(name)) for name in names)
