"""The client of the API server, configured from inside a cluster or with a kubeconfig.

``kubernetes_asyncio`` reads the configuration and renews tokens. Its generated classes are not
used: they turn every object into a tree of other objects, and a thousand jobs would not fit into
the operator's memory. Requests are plain JSON over one connection pool, each with a timeout.
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
from weir_operator.cluster.api_requests import RETRY_AFTER_S, ApiRequest, ApiResponse, Json

log = logging.getLogger("weir_operator.cluster")

TIMEOUT_S = 10.0
CONNECTIONS = 16
"""Each connection needs a quarter of a megabyte of TLS buffers."""
_LONGEST_RETRY_AFTER_S = 60.0

CallObserver = Callable[[ApiRequest, int, float], None]
"""Called for every request with its status code, 0 if none arrived, and its duration in seconds."""


async def load_configuration(kubeconfig: str | None) -> Configuration:
    """The cluster of a kubeconfig, or else the one that this process runs in."""
    found = Configuration()
    try:
        if kubeconfig is None:
            load_incluster_config(client_configuration=found)  # type: ignore[no-untyped-call]
        else:
            await load_kube_config(config_file=kubeconfig, client_configuration=found)
    except ConfigException as problem:
        raise JobRejected(
            "the API server is not configured",
            str(problem),
            "run inside a cluster, or give --kubeconfig",
        ) from problem
    return found


def ssl_context(configuration: Configuration) -> ssl.SSLContext:
    """The CA to verify the server with, and the client certificate."""
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class ApiClient:
    """The API server over HTTP."""

    def __init__(self, configuration: Configuration, on_call: CallObserver) -> None:
        self._configuration = configuration
        self._server = str(configuration.host).rstrip("/")
        self._on_call = on_call
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=CONNECTIONS, ssl=ssl_context(configuration)),
            timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
            headers={"User-Agent": "weir-operator"},
        )

    async def close(self) -> None:
        await self._session.close()

    async def call(self, request: ApiRequest) -> ApiResponse:
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
                    **await self._authorization(),
                },
            ) as response:
                code = response.status
                return _checked(request, response, await response.read())
        except (aiohttp.ClientError, OSError) as problem:
            why = (
                f"{type(problem).__name__}: {problem}"  # never its repr, which contains the headers
            )
            raise Unavailable(
                f"the API server did not answer {request.verb} {request.resource}",
                why,
                "check that the operator reaches the API server; the operator retries",
                retry_after=RETRY_AFTER_S,
            ) from problem
        finally:
            self._on_call(request, code, monotonic() - started)

    async def _authorization(self) -> dict[str, str]:
        token = await self._configuration.get_api_key_with_prefix("BearerToken")
        return {} if not token else {"Authorization": token.strip()}


def _checked(request: ApiRequest, response: aiohttp.ClientResponse, text: bytes) -> ApiResponse:
    """The response, unless it is a temporary error."""
    answer = ApiResponse(response.status, _body(text))
    code = answer.code
    is_failure = code >= HTTPStatus.INTERNAL_SERVER_ERROR and not answer.is_too_large
    if is_failure or code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.TOO_MANY_REQUESTS):
        raise Unavailable(
            f"the API server did not {request.verb} {request.resource}",
            f"it answered with code {code}",
            "check the API server and the operator's credentials; the operator retries",
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
