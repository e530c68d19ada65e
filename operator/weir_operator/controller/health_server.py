"""Serves the health probes for the kubelet and the metrics for Prometheus over HTTP."""

from collections.abc import Callable
from datetime import datetime

from aiohttp import web

from weir_operator.controller.operator_metrics import OperatorMetrics
from weir_operator.controller.watch_probe import WatchProbe

SERVICE_UNAVAILABLE = 503


class HealthServer:
    """The health of the operator; an operator that waits for the Lease is healthy too."""

    def __init__(self, metrics: OperatorMetrics, now: Callable[[], datetime]) -> None:
        self._metrics = metrics
        self._now = now
        self._runner: web.AppRunner | None = None
        self.probe: WatchProbe | None = None
        """Set once the watches run."""
        self.is_ready = False
        """Set once the API server has answered."""

    async def serve(self, *ports: int) -> None:
        """Start to listen; port 0 takes any free port."""
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._show_metrics)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        for port in sorted(set(ports)):
            await web.TCPSite(self._runner, port=port).start()

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """The addresses it listens on: for each port both IPv4 and IPv6, if available."""
        assert self._runner is not None, "it listens"
        return tuple((address[0], address[1]) for address in self._runner.addresses)

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _healthz(self, _: web.Request) -> web.Response:
        if self.probe is None or self.probe.is_healthy:
            return web.Response(text="ok\n")
        return web.Response(status=SERVICE_UNAVAILABLE, text="the watches deliver no events\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        if self.is_ready:
            return web.Response(text="ready\n")
        return web.Response(
            status=SERVICE_UNAVAILABLE, text="the API server has not answered yet\n"
        )

    async def _show_metrics(self, _: web.Request) -> web.Response:
        text = self._metrics.text(self._now())
        return web.Response(body=text, headers={"Content-Type": "text/plain; version=0.0.4"})
