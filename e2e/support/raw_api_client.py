"""A plain HTTP client for an API server: reads, writes and watches objects as JSON.

No model of any resource, no cache and no retry: a test sees the server's responses.
"""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import aiohttp

from local_api_server import BareApi

Object = dict[str, Any]

GROUP = "/apis/weir.dev/v1alpha1"
JOBS, SNAPSHOTS = "checkpointedjobs", "checkpointedjobsnapshots"
REQUEST_S = 30.0
LONGEST_LINE = 16 << 20


class Rejected(Exception):
    """The API server did not do it; its words are the message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


def core(namespace: str, plural: str, name: str = "") -> str:
    return _path(f"/api/v1/namespaces/{namespace}/{plural}", name)


def ours(namespace: str, plural: str, name: str = "") -> str:
    return _path(f"{GROUP}/namespaces/{namespace}/{plural}", name)


def _path(collection: str, name: str) -> str:
    return f"{collection}/{name}" if name else collection


@dataclass(frozen=True, slots=True)
class Client:
    """An open connection."""

    session: aiohttp.ClientSession
    url: str

    async def find(self, path: str) -> Object | None:
        """An object, or nothing if there is none."""
        try:
            return await self._asked("GET", path)
        except Rejected as refusal:
            if refusal.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    async def items(self, path: str) -> list[Object]:
        return list((await self._asked("GET", path))["items"])

    async def create(self, path: str, body: Object) -> Object:
        return await self._asked("POST", path, body)

    async def merge(self, path: str, body: Object) -> Object:
        return await self._asked("PATCH", path, body, "application/merge-patch+json")

    async def delete(self, path: str, options: Object | None = None) -> None:
        """Delete it; one that is gone, or was replaced, is no error."""
        try:
            await self._asked("DELETE", path, options)
        except Rejected as refusal:
            if refusal.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
                raise

    async def watch(
        self, path: str, selector: Mapping[str, str] | None = None
    ) -> AsyncIterator[tuple[str, Object]]:
        """Everything there is, as if it were added just now, and whatever happens to it then."""
        chosen = {} if not selector else {"labelSelector": _joined(selector)}
        found = await self._asked("GET", path, parameters=chosen)
        for item in found["items"]:
            yield "ADDED", item
        begin = {"watch": "true", "resourceVersion": found["metadata"]["resourceVersion"]}
        unlimited = aiohttp.ClientTimeout(total=None)
        async with self.session.get(
            f"{self.url}{path}", params={**chosen, **begin}, timeout=unlimited
        ) as answer:
            async for line in answer.content:
                event = json.loads(line)
                yield event["type"], event["object"]

    async def _asked(
        self,
        verb: str,
        path: str,
        body: Object | None = None,
        kind: str = "application/json",
        parameters: Mapping[str, str] | None = None,
    ) -> Object:
        async with self.session.request(
            verb,
            f"{self.url}{path}",
            data=None if body is None else json.dumps(body),
            headers={"Content-Type": kind},
            params=parameters,
        ) as answer:
            said = await answer.json()
            if answer.status >= HTTPStatus.BAD_REQUEST:
                raise Rejected(answer.status, f"{verb} {path}: {said.get('message')}")
            assert isinstance(said, dict), "the API speaks in objects"
            return said


def _joined(selector: Mapping[str, str]) -> str:
    return ",".join(f"{label}={value}" for label, value in selector.items())


@asynccontextmanager
async def connected(api: BareApi) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession(
        headers={"Authorization": f"Bearer {api.token}"},
        connector=aiohttp.TCPConnector(ssl=api.tls(), limit=0),
        timeout=aiohttp.ClientTimeout(total=REQUEST_S),
        read_bufsize=LONGEST_LINE,
    ) as session:
        yield Client(session, api.url)
