"""Serves the API on a thread of its own, beside the driver's loop."""

import errno
import logging
import socket
import threading

import uvicorn

from weir.errors import JobRejected
from weir.rest.app import create_app
from weir.rest.view import JobView

log = logging.getLogger("weir.rest")

FAREWELL_SECONDS = 3
BACKLOG = 128


class RestServer:
    """One job's API. Port 0 takes any that is free; ``url`` tells which."""

    def __init__(
        self, view: JobView, token: str, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self._app = create_app(view, token)
        self._socket = _listening(host, port)
        self._host = host
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
            timeout_graceful_shutdown=FAREWELL_SECONDS,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="weir-rest", daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://{_in_url(self._host)}:{self.port}"

    @property
    def port(self) -> int:
        port: int = self._bound[1]
        return port
