"""The HTTP client for the API of drivers. It treats every response as untrusted (spec X3).

A driver runs user code. The client limits the size and the time of a response, validates it against
``weir.api.report`` and converts it into the plan's values; an invalid response counts as none. The
reason why there is no report is one of a fixed set of texts, so that a status which shows it does
not change with every retry. Requests carry an idempotency key, so a repeated request has no further
effect.
"""

import logging
import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime

import aiohttp
from pydantic import TypeAdapter, ValidationError

from weir.api.report import CheckpointReport, JobReport
from weir.api.report import RequestReport as ReportedRequest
from weir.api.storage_url import DurableUrl, StorageUrl
from weir_operator.plan.bounded_cache import BoundedCache
from weir_operator.plan.cluster_actions import RequestCheckpoint, RequestSavepoint, RequestStop
from weir_operator.plan.observed_state import DriverReport, RequestReport, Unreachable
from weir_operator.resource.status_fields import LastCheckpoint

log = logging.getLogger("weir_operator.driver_client")

TIMEOUT_S = 2.0
WAIT_S = 30
"""How long a driver may hold a long poll without a change."""
MAX_REPORT_BYTES = 64 * 1_024
CACHED_BYTES = 2 * 1_024 * 1_024
"""Of CA certificates; a new context for the same certificate would prevent connection reuse."""

DriverRequest = RequestSavepoint | RequestCheckpoint | RequestStop

_TIMEOUT = aiohttp.ClientTimeout(total=TIMEOUT_S)
_LONG_POLL_TIMEOUT = aiohttp.ClientTimeout(total=WAIT_S + TIMEOUT_S, sock_connect=TIMEOUT_S)
_TLS_ERRORS = (aiohttp.ClientSSLError, ssl.SSLError)
"""Unlike a missing response, these are not temporary."""
_DURABLE: TypeAdapter[str] = TypeAdapter(DurableUrl)
_ANYWHERE: TypeAdapter[str] = TypeAdapter(StorageUrl)


@dataclass(frozen=True, slots=True)
class DriverEndpoint:
    """The address of a driver, and the credentials for it."""

    ip: str
    port: int
    attempt: int
    token: str = field(repr=False)
    authority: str | None = None

    @property
    def url(self) -> str:
        host = f"[{self.ip}]" if ":" in self.ip else self.ip
        return f"{'http' if self.authority is None else 'https'}://{host}:{self.port}/v1/job"


@dataclass(frozen=True, slots=True)
class VersionedReport:
    """A report, and the version after which the next one can be requested; empty if none can."""

    report: DriverReport
    version: str = ""


class DriverClient:
    """One connection pool for all drivers."""

    def __init__(self) -> None:
        self._session = aiohttp.ClientSession(
            timeout=_TIMEOUT,
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=5.0),
        )

    async def close(self) -> None:
        await self._session.close()

    async def report(self, endpoint: DriverEndpoint) -> VersionedReport | Unreachable:
        """The driver's report, or why there is none."""
        return await self._get_report(endpoint, {}, _TIMEOUT)

    async def next_report(
        self, endpoint: DriverEndpoint, after: str
    ) -> VersionedReport | Unreachable:
        """The report once its version differs, or when the long poll times out."""
        return await self._get_report(
            endpoint, {"after": after, "wait": str(WAIT_S)}, _LONG_POLL_TIMEOUT
        )

    async def _get_report(
        self, endpoint: DriverEndpoint, query: dict[str, str], limit: aiohttp.ClientTimeout
    ) -> VersionedReport | Unreachable:
        try:
            async with self._session.get(
                f"{endpoint.url}/report",
                params=query,
                headers=_authorization(endpoint),
                ssl=_ssl_context(endpoint.authority),
                allow_redirects=False,
                timeout=limit,
            ) as response:
                response.raise_for_status()
                text = await _bounded(response)
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            level = logging.WARNING if isinstance(problem, _TLS_ERRORS) else logging.DEBUG
            about = {"driver": endpoint.url, "why": _why(problem)}
            log.log(level, "A driver is unreachable.", extra=about)
            return _unreachable(problem)
        return parse_versioned_report(text, endpoint.attempt) or Unreachable(
            "its API does not return a valid report"
        )

    async def send(self, endpoint: DriverEndpoint, request: DriverRequest) -> bool:
        """Send a request; false if it did not arrive or was rejected, and may be repeated."""
        path, body = _path_and_body(request)
        try:
            async with self._session.post(
                f"{endpoint.url}/{path}",
                json=body,
                headers={**_authorization(endpoint), "Idempotency-Key": request.key},
                ssl=_ssl_context(endpoint.authority),
                allow_redirects=False,
            ) as response:
                response.raise_for_status()
        except (aiohttp.ClientError, OSError) as problem:
            log.warning(
                "A driver did not accept a request.",
                extra={"driver": endpoint.url, "order": request.key, "why": _why(problem)},
            )
            return False
        return True


def parse_report(text: bytes | str, attempt: int) -> DriverReport | None:
    """The report in the termination message of a driver that has ended."""
    reported = parse_versioned_report(text, attempt)
    return None if reported is None else reported.report


def parse_versioned_report(text: bytes | str, attempt: int) -> VersionedReport | None:
    """A report as the plan's value; none if it is of another attempt, or invalid."""
    try:
        reported = JobReport.model_validate_json(text)
        if reported.attempt != attempt:
            return None
        newest = None if reported.newest is None else _checkpoint(reported.newest)
    except (ValidationError, ValueError, OverflowError, OSError) as problem:
        log.debug("A driver sent an invalid report.", extra={"why": _why(problem)[:1_024]})
        return None
    report = DriverReport(
        attempt=reported.attempt,
        phase=reported.phase,
        newest=newest,
        completed=reported.completed,
        restarts=reported.restarts,
        why=reported.why,
        is_rejected=reported.is_rejected,
        scheduler_running=reported.scheduler_running,
        slots_missing=reported.slots_missing,
        requests=tuple(_request(request) for request in reported.requests),
    )
    return VersionedReport(report, reported.version)


def _checkpoint(reported: CheckpointReport) -> LastCheckpoint:
    return LastCheckpoint(
        id=reported.id,
        path=_url(_ANYWHERE, reported.path),
        completed_at=datetime.fromtimestamp(reported.completed_at_ms / 1_000, UTC),
        size_bytes=reported.size_bytes,
        duration=reported.duration_ms,
    )


def _request(reported: ReportedRequest) -> RequestReport:
    return RequestReport(
        id=reported.id,
        outcome=reported.outcome,
        path=_url(_DURABLE, reported.path),
        checkpoint=reported.checkpoint or None,
        size_bytes=reported.size_bytes,
        message=reported.message,
    )


def _url(kind: TypeAdapter[str], reported: str | None) -> str | None:
    """A valid storage URL, or none: a status must never hold another."""
    try:
        return None if reported is None else kind.validate_python(reported)
    except ValidationError:
        return None


def _path_and_body(request: DriverRequest) -> tuple[str, dict[str, object]]:
    match request:
        case RequestSavepoint(directory=directory):
            return "savepoints", {} if directory is None else {"targetDirectory": directory}
        case RequestCheckpoint():
            return "checkpoints", {}
        case RequestStop():
            return "stop", {"drain": False}


def _why(problem: Exception) -> str:
    """Without Python's repr, which would include the request and its token (spec X4)."""
    return f"{type(problem).__name__}: {problem}"


def _unreachable(problem: Exception) -> Unreachable:
    match problem:
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return Unreachable(_tls_problem(problem.__cause__ or problem), is_untrusted=True)
        case aiohttp.ClientResponseError(status=status):
            return Unreachable(f"its API returned HTTP status {status}")
        case ValueError():
            return Unreachable(str(problem))
        case _:
            return Unreachable("its API does not respond")


def _tls_problem(cause: BaseException) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the operator does not trust its certificate: {cause.verify_message}"
    *_, reported = ("no reason was given", *cause.args)
    return f"the TLS handshake with it failed: {getattr(cause, 'reason', None) or reported}"


def _authorization(endpoint: DriverEndpoint) -> dict[str, str]:
    return {"Authorization": f"Bearer {endpoint.token}"}


def _ssl_context(authority: str | None) -> ssl.SSLContext | bool:
    return True if authority is None else ssl_contexts(authority)


def _context(authority: str) -> ssl.SSLContext:
    """A driver is addressed by IP, so its certificate is verified by its CA alone."""
    # Comments between the certificates may contain any characters.
    certificates = authority.encode("ascii", "ignore").decode()
    if ssl.PEM_HEADER not in certificates:
        raise ssl.SSLError("ca.crt of its Secret contains no certificate")
    context = ssl.create_default_context(cadata=certificates)
    context.check_hostname = False
    return context


ssl_contexts = BoundedCache(_context, CACHED_BYTES)
"""An SSL context for each CA; creating one takes longer than requesting a report."""


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    """The body, unless it is longer than any report."""
    text = await response.content.read(MAX_REPORT_BYTES + 1)
    while len(text) <= MAX_REPORT_BYTES and (more := await response.content.read(MAX_REPORT_BYTES)):
        text += more
    if len(text) > MAX_REPORT_BYTES:
        raise ValueError(f"its report is longer than {MAX_REPORT_BYTES} bytes")
    return text
