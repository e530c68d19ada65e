"""Speaks to a driver's API and believes nothing that it says beyond its shape (spec X3).

A driver runs other people's code. Its answer is read up to a size and within a time, checked
against ``weir.api.report`` and turned into the plan's values; whatever is wrong with it makes it no
answer at all, because a driver that talks nonsense knows no more than one that is silent. Why
nothing was heard is said in our own words, and in the same for the same cause, so that a status
which shows it does not change with every try. Orders carry a key, so that giving one twice gives it
once.
"""

import logging
import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime

import aiohttp
from pydantic import TypeAdapter, ValidationError

from weir.api.report import CheckpointReport, JobReport
from weir.api.report import RequestReport as SaidRequest
from weir.api.storage_url import DurableUrl, StorageUrl
from weir_operator.plan.bounded_cache import Memo
from weir_operator.plan.cluster_actions import RequestCheckpoint, RequestSavepoint, RequestStop
from weir_operator.plan.observed_state import DriverReport, RequestReport, Silence
from weir_operator.resource.status_fields import LastCheckpoint

log = logging.getLogger("weir_operator.driver_client")

TIMEOUT_S = 2.0
WAIT_S = 30
"""So long a driver may wait for news before it says that there are none."""
LARGEST_ANSWER = 64 * 1_024
REMEMBERED_BYTES = 2 * 1_024 * 1_024
"""Of authorities; with another context for the same one, no connection would be used again."""

Order = RequestSavepoint | RequestCheckpoint | RequestStop

_SOON = aiohttp.ClientTimeout(total=TIMEOUT_S)
_PATIENT = aiohttp.ClientTimeout(total=WAIT_S + TIMEOUT_S, sock_connect=TIMEOUT_S)
_MISTRUSTED = (aiohttp.ClientSSLError, ssl.SSLError)
"""Unlike silence, it does not pass by itself."""
_DURABLE: TypeAdapter[str] = TypeAdapter(DurableUrl)
_ANYWHERE: TypeAdapter[str] = TypeAdapter(StorageUrl)


@dataclass(frozen=True, slots=True)
class Line:
    """Where a driver is reached, and as whom."""

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
class Told:
    """What a driver said, and by which version it may be asked for the next; empty if by none."""

    report: DriverReport
    version: str = ""


class DriverClient:
    """One pool of connections to all drivers."""

    def __init__(self) -> None:
        self._session = aiohttp.ClientSession(
            timeout=_SOON,
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=5.0),
        )

    async def close(self) -> None:
        await self._session.close()

    async def report(self, line: Line) -> Told | Silence:
        """What the driver says, or why nothing that can be read was heard."""
        return await self._told(line, {}, _SOON)

    async def news(self, line: Line, after: str) -> Told | Silence:
        """What the driver says once that is another version, or when it has waited long enough."""
        return await self._told(line, {"after": after, "wait": str(WAIT_S)}, _PATIENT)

    async def _told(
        self, line: Line, query: dict[str, str], patience: aiohttp.ClientTimeout
    ) -> Told | Silence:
        try:
            async with self._session.get(
                f"{line.url}/report",
                params=query,
                headers=_who(line),
                ssl=_trusted(line.authority),
                allow_redirects=False,
                timeout=patience,
            ) as response:
                response.raise_for_status()
                text = await _bounded(response)
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            level = logging.WARNING if isinstance(problem, _MISTRUSTED) else logging.DEBUG
            about = {"driver": line.url, "why": _why(problem)}
            log.log(level, "A driver did not answer.", extra=about)
            return _silence(problem)
        return told(text, line.attempt) or Silence("its API answers, but not with a report of it")

    async def order(self, line: Line, order: Order) -> bool:
        """Give an order; false if it did not arrive, or was refused, and may be given again."""
        path, body = _spelled(order)
        try:
            async with self._session.post(
                f"{line.url}/{path}",
                json=body,
                headers={**_who(line), "Idempotency-Key": order.key},
                ssl=_trusted(line.authority),
                allow_redirects=False,
            ) as response:
                response.raise_for_status()
        except (aiohttp.ClientError, OSError) as problem:
            log.warning(
                "A driver did not take an order.",
                extra={"driver": line.url, "order": order.key, "why": _why(problem)},
            )
            return False
        return True


def understood(text: bytes | str, attempt: int) -> DriverReport | None:
    """The report of a driver that has ended."""
    said = told(text, attempt)
    return None if said is None else said.report


def told(text: bytes | str, attempt: int) -> Told | None:
    """A report in the plan's words; none if it is of another attempt, or no report."""
    try:
        said = JobReport.model_validate_json(text)
        if said.attempt != attempt:
            return None
        newest = None if said.newest is None else _checkpoint(said.newest)
    except (ValidationError, ValueError, OverflowError, OSError) as problem:
        log.debug("A driver's report could not be read.", extra={"why": _why(problem)[:1_024]})
        return None
    report = DriverReport(
        attempt=said.attempt,
        phase=said.phase,
        newest=newest,
        completed=said.completed,
        restarts=said.restarts,
        why=said.why,
        is_rejected=said.is_rejected,
        scheduler_running=said.scheduler_running,
        slots_missing=said.slots_missing,
        requests=tuple(_request(request) for request in said.requests),
    )
    return Told(report, said.version)


def _checkpoint(said: CheckpointReport) -> LastCheckpoint:
    return LastCheckpoint(
        id=said.id,
        path=_url(_ANYWHERE, said.path),
        completed_at=datetime.fromtimestamp(said.completed_at_ms / 1_000, UTC),
        size_bytes=said.size_bytes,
        duration=said.duration_ms,
    )


def _request(said: SaidRequest) -> RequestReport:
    return RequestReport(
        id=said.id,
        outcome=said.outcome,
        path=_url(_DURABLE, said.path),
        checkpoint=said.checkpoint or None,
        size_bytes=said.size_bytes,
        message=said.message,
    )


def _url(kind: TypeAdapter[str], said: str | None) -> str | None:
    """A place that state can lie at, or none: a status must never hold another."""
    try:
        return None if said is None else kind.validate_python(said)
    except ValidationError:
        return None


def _spelled(order: Order) -> tuple[str, dict[str, object]]:
    match order:
        case RequestSavepoint(directory=directory):
            return "savepoints", {} if directory is None else {"targetDirectory": directory}
        case RequestCheckpoint():
            return "checkpoints", {}
        case RequestStop():
            return "stop", {"drain": False}


def _why(problem: Exception) -> str:
    """Not as Python shows it: what was sent, the token too, would be in it (spec X4)."""
    return f"{type(problem).__name__}: {problem}"


def _silence(problem: Exception) -> Silence:
    match problem:
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return Silence(_mistrust(problem.__cause__ or problem), is_mistrust=True)
        case aiohttp.ClientResponseError(status=status):
            return Silence(f"its API refuses to report, with code {status}")
        case ValueError():
            return Silence(str(problem))
        case _:
            return Silence("its API does not answer")


def _mistrust(cause: BaseException) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the operator does not trust its certificate: {cause.verify_message}"
    *_, said = ("no reason was given", *cause.args)
    return f"the operator cannot speak TLS with it: {getattr(cause, 'reason', None) or said}"


def _who(line: Line) -> dict[str, str]:
    return {"Authorization": f"Bearer {line.token}"}


def _trusted(authority: str | None) -> ssl.SSLContext | bool:
    return True if authority is None else authorities(authority)


def _context(authority: str) -> ssl.SSLContext:
    """A driver is reached by its address, so its certificate is judged by its authority alone."""
    # Notes between the certificates may be in any script.
    certificates = authority.encode("ascii", "ignore").decode()
    if ssl.PEM_HEADER not in certificates:
        raise ssl.SSLError("the ca.crt of its Secret holds no certificate")
    context = ssl.create_default_context(cadata=certificates)
    context.check_hostname = False
    return context


authorities = Memo(_context, REMEMBERED_BYTES)
"""Each as a context, which takes longer to make than a report to ask for."""


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    """The body, unless it is longer than any report."""
    text = await response.content.read(LARGEST_ANSWER + 1)
    while len(text) <= LARGEST_ANSWER and (more := await response.content.read(LARGEST_ANSWER)):
        text += more
    if len(text) > LARGEST_ANSWER:
        raise ValueError(f"the answer is longer than {LARGEST_ANSWER} bytes")
    return text
