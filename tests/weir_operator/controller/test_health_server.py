"""The operator says that it is unwell when its watches bring no news, and counts what it does."""

import asyncio
from datetime import UTC, datetime, timedelta

import aiohttp

from fake_api_server import LittleApi
from weir_operator.cluster.api_paths import CONFIG_MAPS, JOBS, Key
from weir_operator.cluster.api_requests import Request
from weir_operator.controller.health_server import Health
from weir_operator.controller.operator_metrics import Metrics
from weir_operator.controller.watch_probe import CANARY, PATIENCE_S, Canary
from weir_operator.resource.status import CheckpointedJobStatus, LifecycleState

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
PATH = CONFIG_MAPS.of(Key("weir-system", CANARY))


class Hands:
    """A canary and the clock beside it."""

    def __init__(self):
        self.api, self.time = LittleApi(), 0.0
        self.canary = Canary(self.api, "weir-system", clock=lambda: self.time)

    def beat(self):
        asyncio.run(self.canary.beat())

    def comes_back(self):
        self.canary.came_back({"type": "MODIFIED", "object": self.api.objects[PATH]})


def test_a_beat_that_does_not_come_back_makes_the_operator_unwell():
    """K9: canary-backed liveness."""
    hands = Hands()
    hands.beat()
    hands.time = PATIENCE_S
    assert not hands.canary.is_well

    hands.comes_back()
    assert hands.canary.is_well


def test_a_beat_that_could_not_be_sent_proves_nothing():
    """K9: an API server that is away must not restart every operator."""
    hands = Hands()
    hands.api.is_away = True
    hands.beat()
    hands.time = PATIENCE_S
    assert hands.canary.is_well


def test_later_beats_do_not_hide_one_that_is_missing():
    """K9: the wait counts from the first that was not seen."""
    hands = Hands()
    hands.beat()
    hands.time = PATIENCE_S - 1
    hands.beat()
    hands.time = PATIENCE_S
    assert not hands.canary.is_well


def test_health_and_metrics_are_served():
    """K9: what the kubelet and Prometheus ask."""
    hands, metrics = Hands(), Metrics()
    metrics.called(Request("GET", JOBS, JOBS.within(None)), 200, 0.1)
    metrics.saw_job(Key("shop", "orders"), *_states("Starting", "Running"), BEGINNING)

    async def asked():
        health = Health(metrics, lambda: BEGINNING + timedelta(seconds=5))
        health.canary = hands.canary
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
    metrics, key = Metrics(), Key("shop", "orders")
    metrics.saw_job(key, *_states("Starting", "Running"), BEGINNING)
    metrics.forget_job(key)
    assert 'weir_operator_jobs{state="Running"} 0.0' in metrics.text(BEGINNING).decode()


def _states(*names):
    return tuple(CheckpointedJobStatus(state=LifecycleState(name)) for name in names)
