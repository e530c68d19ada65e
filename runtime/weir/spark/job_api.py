"""Serves a running job's API, and registers the job for the command line of this machine."""

import os
import secrets

from weir.api.environment_variables import WEIR_TOKEN
from weir.rest import job_registry
from weir.rest.job_registry import Endpoint
from weir.rest.job_view import JobView
from weir.rest.server import ListenAddress, RestServer


class JobApi:
    """The API of one job, from its start to its end."""

    def __init__(self, job: str, view: JobView, place: ListenAddress) -> None:
        token = os.environ.get(WEIR_TOKEN) or secrets.token_urlsafe(32)
        self.view = view
        self._server = RestServer(view, token, place)
        self._endpoint = Endpoint(
            job=job,
            url=self._server.url,
            token=token,
            pid=os.getpid(),
            authority="" if place.tls is None else str(place.tls.authority),
        )

    @property
    def url(self) -> str:
        return self._server.url

    def open(self) -> None:
        self._server.start()
        job_registry.write(self._endpoint)

    def close(self) -> None:
        job_registry.remove(self._endpoint)
        self._server.close()
