"""Probes whether the last driver in a job's log still runs that job.

The log holds the URL of its API, whose first page needs no token. A process that was
killed refuses the connection at once, so nothing delays a recovery; a machine that is gone, or a
process that hangs, is not waited for longer than a few seconds (spec C17).
"""

import http.client
import ipaddress
import socket
import ssl
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from pydantic import ValidationError

from weir.core.log_entries import EpochTaken
from weir.core.takeover import Liveness
from weir.rest.job_overview import Overview
from weir.wire.authenticated_sockets import Tls

PATIENCE_SECONDS = 3.0
LONGEST_ANSWER = 1 << 20


@dataclass(frozen=True, slots=True)
class LivenessProbe:
    """Probes drivers of the job with this checkpoint directory."""

    directory: str
    tls: Tls | None = None

    def __call__(self, last: EpochTaken) -> Liveness:
        place = urlsplit(last.address)
        if not place.hostname or _is_elsewhere(place.hostname, last.driver):
            return Liveness.UNKNOWN
        try:
            overview = Overview.model_validate_json(self._fetch(place))
        except (ConnectionRefusedError, ValidationError):
            return Liveness.GONE
        except (OSError, http.client.HTTPException):
            return Liveness.UNKNOWN
        is_ours = overview.directory == self.directory and not overview.is_over
        return Liveness.LIVES if is_ours else Liveness.GONE

    def _fetch(self, place: SplitResult) -> bytes:
        connection = self._connection(place)
        try:
            connection.request("GET", "/v1/job", headers={"Connection": "close"})
            return connection.getresponse().read(LONGEST_ANSWER)
        finally:
            connection.close()

    def _connection(self, place: SplitResult) -> http.client.HTTPConnection:
        host, port = place.hostname or "", place.port
        if place.scheme != "https":
            return http.client.HTTPConnection(host, port, timeout=PATIENCE_SECONDS)
        authority = None if self.tls is None else str(self.tls.authority)
        context = ssl.create_default_context(cafile=authority)
        context.check_hostname = False  # as for the job's other links: a driver's host has no name
        return http.client.HTTPSConnection(host, port, timeout=PATIENCE_SECONDS, context=context)


def _is_elsewhere(host: str, driver: str) -> bool:
    """A loopback address leads to this machine, whichever machine the driver ran on."""
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = host == "localhost"
    return is_loopback and not driver.startswith(f"{socket.gethostname()}-")
