"""Serves the API on a thread beside the driver's loop.

With the job's certificate it serves HTTPS, as all other connections of the job are encrypted then
(spec X1); the token authorizes requests.
"""

import errno
import logging
import socket
import threading
from dataclasses import dataclass

import uvicorn

from weir.errors import JobRejected
from weir.rest.app import create_app
from weir.rest.certificates import check_certificate
from weir.rest.job_view import JobView
from weir.rest.limits import LONGEST_HEAD, MOST_REQUESTS, CountedListener
from weir.wire.authenticated_sockets import Tls

log = logging.getLogger("weir.rest")

GRACEFUL_SHUTDOWN_SECONDS = 3
BACKLOG = 128

LOCAL = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, never bound
"""How one reaches, from here, a server that listens everywhere."""


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where an API listens, and with which certificate. Port 0 takes any that is free."""

    host: str = "127.0.0.1"
    port: int = 0
    tls: Tls | None = None


HERE = ListenAddress()


class RestServer:
    """The server of one job's API, at ``url``."""

    def __init__(self, view: JobView, token: str, place: ListenAddress = HERE) -> None:
        if place.tls is not None:
            check_certificate(place.tls)
        self._app = create_app(view, token)
        self._scheme = "http" if place.tls is None else "https"
        listening = _listening(place.host, place.port)
        self._socket = CountedListener(listening, self._app.state.strangers)
        bound: tuple[str, int] = self._socket.getsockname()[:2]
        self.host, self.port = bound
        config = uvicorn.Config(
            self._app,
            http="h11",
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MOST_REQUESTS,
            h11_max_incomplete_event_size=LONGEST_HEAD,
            timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_SECONDS,
            ssl_certfile=None if place.tls is None else place.tls.certificate,
            ssl_keyfile=None if place.tls is None else place.tls.key,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="weir-rest", daemon=True
        )

    @property
    def url(self) -> str:
        """As a client on this machine writes it."""
        host = LOCAL.get(self.host, self.host)
        return f"{self._scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    def start(self) -> None:
        """Connections are taken from now on, whether or not the thread is up yet."""
        self._thread.start()
        log.info("The job's API listens at %s.", self.url)

    def close(self) -> None:
        """Answer open requests, then stop; a client that waits gets the current state."""
        self._app.state.is_closing = True
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join()
        self._socket.close()


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as problem:
        raise _not_listening(host, port, problem) from problem


def _not_listening(host: str, port: int, problem: OSError) -> JobRejected:
    match problem.errno:
        case errno.EADDRINUSE:
            cause = "another process listens there"
            remedy = "choose another port, use port 0 for any free one, or end that process"
        case errno.EACCES:
            cause = "this user may not listen there"
            remedy = "choose a port above 1023, or use port 0 for any free one"
        case _:
            cause = problem.strerror or str(problem)
            remedy = "choose an address of this machine, such as 127.0.0.1"
    return JobRejected(f"port {port} of {host} cannot serve the job's API", cause, remedy)
