"""How one gets to the API server: from inside a cluster, or with a kubeconfig.

``kubernetes_asyncio`` reads the files and renews tokens. Its generated classes are left alone: they
turn every object into a tree of other objects, and a thousand jobs would not fit into the
operator's memory. So the calls are plain JSON over one pool of connections, each with a timeout.
"""

import json
import logging
import ssl
from collections.abc import Callable
from http import HTTPStatus
from time import monotonic

import aiohttp
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import ConfigException, load_incluster_config, load_kube_config

from weir.errors import JobRejected, Unavailable
from weir_operator.cluster.api_requests import RETRY_AFTER_S, Answer, Json, Request

log = logging.getLogger("weir_operator.cluster")

TIMEOUT_S = 10.0
CONNECTIONS = 16
"""Each holds buffers of a quarter of a megabyte for TLS."""
_LONGEST_RETRY_AFTER_S = 60.0

Heard = Callable[[Request, int, float], None]
"""Told of every call: its code, 0 if none came, and how many seconds it took."""


async def find(kubeconfig: str | None) -> Configuration:
    """The cluster that a kubeconfig names, or else the one that this process runs in."""
    found = Configuration()
    try:
        if kubeconfig is None:
            load_incluster_config(client_configuration=found)  # type: ignore[no-untyped-call]
        else:
            await load_kube_config(config_file=kubeconfig, client_configuration=found)
    except ConfigException as problem:
        raise JobRejected(
            "the API server cannot be found",
            str(problem),
            "run inside a cluster, or give --kubeconfig",
        ) from problem
    return found


def trusted(configuration: Configuration) -> ssl.SSLContext:
    """Whom to believe, and who we are."""
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class RestApi:
    """The API server by HTTP."""

    def __init__(self, configuration: Configuration, heard: Heard) -> None:
        self._configuration = configuration
        self._server = str(configuration.host).rstrip("/")
        self._heard = heard
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=CONNECTIONS, ssl=trusted(configuration)),
            timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
            headers={"User-Agent": "weir-operator"},
        )

    async def close(self) -> None:
        await self._session.close()

    async def call(self, request: Request) -> Answer:
        started, code = monotonic(), 0
        try:
            async with self._session.request(
                request.method,
                f"{self._server}{request.path}",
                params=request.query,
                data=None if request.body is None else json.dumps(request.body),
                headers={
                    "Accept": request.accept,
                    "Content-Type": request.content_type,
                    **await self._who(),
                },
            ) as response:
                code = response.status
                return _judged(request, response, await response.read())
        except (aiohttp.ClientError, OSError) as problem:
            why = f"{type(problem).__name__}: {problem}"  # never its repr, which holds the headers
            raise Unavailable(
                f"the API server did not answer {request.verb} {request.resource}",
                why,
                "check that the operator reaches the API server; it is tried again",
                retry_after=RETRY_AFTER_S,
            ) from problem
        finally:
            self._heard(request, code, monotonic() - started)

    async def _who(self) -> dict[str, str]:
        token = await self._configuration.get_api_key_with_prefix("BearerToken")
        return {} if not token else {"Authorization": token.strip()}


def _judged(request: Request, response: aiohttp.ClientResponse, text: bytes) -> Answer:
    """The answer, unless it only says that time may heal it."""
    answer = Answer(response.status, _body(text))
    code = answer.code
    is_failure = code >= HTTPStatus.INTERNAL_SERVER_ERROR and not answer.is_too_large
    if is_failure or code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.TOO_MANY_REQUESTS):
        raise Unavailable(
            f"the API server did not {request.verb} {request.resource}",
            f"it answered with code {code}",
            "check the API server and the operator's credentials; it is tried again",
            retry_after=_retry_after(response),
        )
    return answer


def _body(text: bytes) -> Json:
    try:
        body = json.loads(text) if text else {}
    except ValueError:
        body = {"message": text[:1_024].decode(errors="replace")}
    return body if isinstance(body, dict) else {"message": str(body)}


def _retry_after(response: aiohttp.ClientResponse) -> float:
    given = response.headers.get("Retry-After", "")
    return min(float(given), _LONGEST_RETRY_AFTER_S) if given.isdecimal() else RETRY_AFTER_S
