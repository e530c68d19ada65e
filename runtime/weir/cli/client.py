"""A client of a job's REST API.

A refusal raises ``JobRejected`` with the server's message, and a server that does not answer raises
``Unavailable``. Under TLS, if the job names its certificate authority, the client verifies the
authority and not the host name, because a driver has no stable host name.
"""

import http.client
import json
import ssl
from typing import TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from weir.errors import JobRejected, Unavailable
from weir.rest.body import Problem
from weir.rest.checkpoint_statistics import CheckpointStatistics
from weir.rest.commands import RequestState
from weir.rest.job_overview import Graph, Overview

PATIENCE_SECONDS = 10.0
RETRY_SECONDS = 1.0
LONGEST_ANSWER = 16 << 20
FIRST_REFUSAL = 400

M = TypeVar("M", bound=BaseModel)


class Client:
    """A client of one job. It sends the token in one header and nowhere else."""

    def __init__(self, url: str, token: str, authority: str = "") -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise JobRejected(
                f"{url} is not the address of a job's API",
                "it has no http or https scheme, or no host",
                "write it as http://host:port, as the driver's log shows it",
            )
        self.url = url
        self._token = token
        self._tls = _tls(authority) if parts.scheme == "https" else None
        self._address = parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/")

    def overview(self) -> Overview:
        return self._ask("GET", "/v1/job", Overview)

    def graph(self) -> Graph:
        return self._ask("GET", "/v1/job/graph", Graph)

    def checkpoints(self) -> CheckpointStatistics:
        return self._ask("GET", "/v1/job/checkpoints", CheckpointStatistics)

    def order(self, path: str, body: dict[str, object], wait: float = 0) -> RequestState:
        return self._ask("POST", f"/v1/job/{path}?wait={wait}", RequestState, body)

    def request(self, request: str, wait: float) -> RequestState:
        return self._ask("GET", f"/v1/job/requests/{request}?wait={wait}", RequestState)

    def _ask(
        self, verb: str, path: str, answer: type[M], body: dict[str, object] | None = None
    ) -> M:
        try:
            status, text = self._exchange(verb, path, body)
        except (OSError, http.client.HTTPException) as problem:
            raise Unavailable(
                f"no job answers at {self.url}",
                f"{problem or type(problem).__name__}",
                "list the jobs on this machine with `weir jobs`, or check the address",
                retry_after=RETRY_SECONDS,
            ) from problem
        try:
            if status >= FIRST_REFUSAL:
                raise _refused(Problem.model_validate_json(text))
            return answer.model_validate_json(text)
        except ValidationError as problem:
            raise JobRejected(
                f"the server at {self.url} is not a job's API",
                f"its answer (status {status}) is not in the form of this version",
                "check the address, and that the job and this command have the same version",
            ) from problem

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._address
        if self._tls is None:
            return http.client.HTTPConnection(host, port, timeout=PATIENCE_SECONDS)
        return http.client.HTTPSConnection(host, port, timeout=PATIENCE_SECONDS, context=self._tls)

    def _exchange(self, verb: str, path: str, body: dict[str, object] | None) -> tuple[int, bytes]:
        connection = self._connection()
        headers = {"Connection": "close"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            if body is None:
                connection.request(verb, self._prefix + path, headers=headers)
            else:
                headers["Content-Type"] = "application/json"
                connection.request(verb, self._prefix + path, json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read(LONGEST_ANSWER)
        finally:
            connection.close()


def _tls(authority: str) -> ssl.SSLContext:
    """A context that trusts the machine's authorities, or this authority alone."""
    if not authority:
        return ssl.create_default_context()
    try:
        context = ssl.create_default_context(cafile=authority)
    except OSError as problem:
        raise JobRejected(
            f"the certificate {authority} that vouches for the job cannot be read",
            str(problem),
            "run this command where the job's driver runs, as the same user",
        ) from problem
    context.check_hostname = False
    return context


def _refused(problem: Problem) -> JobRejected:
    return JobRejected(problem.title, problem.cause, problem.remedy)
