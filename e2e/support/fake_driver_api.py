"""The REST API of all fake drivers: one server, which distinguishes them by address.

Every driver has a separate loopback address, so the address of a request identifies its driver. A
wrong token is rejected as by a real driver.
"""

import asyncio
import ipaddress
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

from aiohttp import web

from fake_driver import PretendDriver
from killing_proxy import Killed, Killer

ORDERS = ("checkpoints", "savepoints", "stop")
ORDER_S = 0.15
"""How long a driver takes to handle a request."""
POLL_S = 0.2
FIRST_ADDRESS = ipaddress.IPv4Address("127.1.0.1")


@dataclass(slots=True)
class Listener:
    """A driver that can be reached, and who may die of giving it orders."""

    driver: PretendDriver
    namespace: str
    finish: Callable[[str], None]
    """What an order takes time for."""


@dataclass(slots=True)
class FakeDriverApi:
    """All drivers that can be reached."""

    listeners: dict[str, Listener] = field(default_factory=dict)
    killers: dict[str, Killer] = field(default_factory=dict)
    """By namespace: an order to a driver is a write of the operator's too."""
    reports: int = 0
    _addresses: int = 0

    def new_address(self) -> str:
        """No two drivers ever have the same, as long as there are any left."""
        self._addresses += 1
        return str(FIRST_ADDRESS + self._addresses)

    async def report(self, request: web.Request) -> web.Response:
        """At once, or when there is another than the one that is known."""
        self.reports += 1
        listener = self._listener(request)
        after, wait = request.query.get("after", ""), float(request.query.get("wait", "0"))
        until = time.monotonic() + wait
        driver = listener.driver
        said, signs = driver.report().stamped(), driver.signs
        while said.version == after and time.monotonic() < until and not driver.has_ended:
            await asyncio.sleep(POLL_S)
            if driver.signs != signs:
                said, signs = driver.report().stamped(), driver.signs
        return web.json_response(text=said.model_dump_json(by_alias=True))

    async def order(self, request: web.Request) -> web.Response:
        listener = self._listener(request)
        body = await request.json() if request.can_read_body else {}
        key, kind = request.headers["Idempotency-Key"], request.match_info["kind"]

        async def obey() -> web.Response:
            if listener.driver.order(kind, key, (body or {}).get("targetDirectory")):
                asyncio.get_running_loop().call_later(ORDER_S, listener.finish, key)
            return web.json_response({"id": key}, status=HTTPStatus.ACCEPTED)

        killer = self.killers.get(listener.namespace)
        try:
            return await (obey() if killer is None else killer.around(f"order {kind}", obey))
        except Killed:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()

    def _listener(self, request: web.Request) -> Listener:
        assert request.transport is not None, "a request came by a connection"
        address = request.transport.get_extra_info("sockname")[0]
        listener = self.listeners.get(address)
        if listener is None:
            raise web.HTTPServiceUnavailable
        if request.headers.get("Authorization") != f"Bearer {listener.driver.token}":
            raise web.HTTPUnauthorized
        return listener


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


@asynccontextmanager
async def fake_driver_api(port: int) -> AsyncIterator[FakeDriverApi]:
    rest = FakeDriverApi()
    app = web.Application()
    app.router.add_get("/healthz", _healthy)
    app.router.add_get("/v1/job/report", rest.report)
    app.router.add_post(f"/v1/job/{{kind:{'|'.join(ORDERS)}}}", rest.order)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "0.0.0.0", port, backlog=2_048).start()  # noqa: S104 - loopback's many
        yield rest
    finally:
        await runner.cleanup()
