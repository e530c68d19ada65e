"""A proxy between an operator and the API server that kills the operator at a chosen write.

Before the write it has never happened; after it, it has, but the operator got no response. Leases,
Events and the watch probe's ConfigMap are not counted: they depend on the clock. Watches pass
through unchanged.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from raw_api_client import Client

T = TypeVar("T")

WRITES = ("POST", "PUT", "PATCH", "DELETE")
UNCOUNTED = ("/leases", "/events")
PROBE_CONFIG_MAP = b"weir-operator-canary"
OWN_HEADERS = ("host", "authorization", "content-length", "transfer-encoding", "connection")


class Side(StrEnum):
    """Of a write, where the operator dies."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Kill:
    """At which write, counted from one, and on which side of it."""

    write: int
    side: Side

    def __str__(self) -> str:
        return f"{self.side} write {self.write}"


class Killed(Exception):
    """The operator was killed; there is no client to respond to."""


@dataclass(slots=True)
class Killer:
    """Counts what one operator changes, and strikes once."""

    end_it: Callable[[], Awaitable[None]]
    kill: Kill | None = None
    is_armed: bool = False
    writes: list[str] = field(default_factory=list)
    has_struck: asyncio.Event = field(default_factory=asyncio.Event)
    _striking: asyncio.Task[None] | None = None

    async def around(self, what: str, forward: Callable[[], Awaitable[T]]) -> T:
        """Let a write through, unless it is the one."""
        if not self.is_armed or self.has_struck.is_set():
            return await forward()
        self.writes.append(what)
        if self.kill is None or len(self.writes) != self.kill.write:
            return await forward()
        if self.kill.side is Side.AFTER:
            await forward()
        await asyncio.shield(self._strike())  # the dead operator's request ends before it is done
        raise Killed(what)

    def _strike(self) -> asyncio.Task[None]:
        async def strike() -> None:
            await self.end_it()
            self.has_struck.set()

        self._striking = asyncio.create_task(strike())
        return self._striking


def is_counted(method: str, path: str, body: bytes) -> bool:
    by_the_clock = (
        any(word in path for word in UNCOUNTED) or PROBE_CONFIG_MAP in path.encode() + body
    )
    return method in WRITES and not by_the_clock


@dataclass(slots=True)
class _Proxy:
    """Passes every request on under the client's own name."""

    client: Client
    killer: Killer

    async def passed(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()

        async def forward() -> aiohttp.ClientResponse:
            return await self._forwarded(request, body)

        if not is_counted(request.method, request.path, body):
            return await self._streamed(request, await forward())
        try:
            answer = await self.killer.around(f"{request.method} {request.path}", forward)
        except Killed:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        return await self._streamed(request, answer)

    async def _forwarded(self, request: web.Request, body: bytes) -> aiohttp.ClientResponse:
        kept = CIMultiDict(
            (name, value)
            for name, value in request.headers.items()
            if name.lower() not in OWN_HEADERS
        )
        return await self.client.session.request(
            request.method,
            URL(f"{self.client.url}{request.raw_path}", encoded=True),
            data=body or None,
            headers=kept,
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )

    async def _streamed(
        self, request: web.Request, answer: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        async with answer:
            kept = CIMultiDict(
                (name, value)
                for name, value in answer.headers.items()
                if name.lower() not in OWN_HEADERS
            )
            stream = web.StreamResponse(status=answer.status, headers=kept)
            try:
                await stream.prepare(request)
                async for chunk in answer.content.iter_any():
                    await stream.write(chunk)
                await stream.write_eof()
            except ConnectionError:
                answer.close()  # the operator is gone, and so is its watch
            return stream


@asynccontextmanager
async def killing_proxy(client: Client, killer: Killer) -> AsyncIterator[str]:
    """Where the operator finds the API server."""
    proxy = _Proxy(client, killer)
    app = web.Application(client_max_size=16 << 20)
    app.router.add_route("*", "/{anything:.*}", proxy.passed)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()
