"""Answers the kubelet and Prometheus over HTTP; decides nothing and tells no secrets."""

from collections.abc import Callable
from datetime import datetime

from aiohttp import web

from weir_operator.controller.operator_metrics import Metrics
from weir_operator.controller.watch_probe import Canary

UNWELL = 503


class Health:
    """How the operator is; one that waits for its turn to lead is well too."""

    def __init__(self, metrics: Metrics, now: Callable[[], datetime]) -> None:
        self._metrics = metrics
        self._now = now
        self._runner: web.AppRunner | None = None
        self.canary: Canary | None = None
        """Set once the watches run."""
        self.is_ready = False
        """Set once the API server was reached."""

    async def serve(self, *ports: int) -> None:
        """Listen from now on; 0 takes any port that is free."""
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
        """Where it listens: on each port for both kinds of addresses, if there are both."""
        assert self._runner is not None, "it listens"
        return tuple((address[0], address[1]) for address in self._runner.addresses)

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _healthz(self, _: web.Request) -> web.Response:
        if self.canary is None or self.canary.is_well:
            return web.Response(text="well\n")
        return web.Response(status=UNWELL, text="the watches bring no news\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        if self.is_ready:
            return web.Response(text="ready\n")
        return web.Response(status=UNWELL, text="the API server was not reached yet\n")

    async def _show_metrics(self, _: web.Request) -> web.Response:
        text = self._metrics.text(self._now())
        return web.Response(body=text, headers={"Content-Type": "text/plain; version=0.0.4"})
