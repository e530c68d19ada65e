"""A job's API as the command line calls it.

A refusal is raised as ``JobRejected`` with the server's own words, and silence as ``Unavailable``.
"""

import http.client
import json
from typing import TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from weir.errors import JobRejected, Unavailable
from weir.rest.body import Problem
from weir.rest.checkpoints import CheckpointStatistics
from weir.rest.job import Graph, Overview
from weir.rest.orders import RequestState

PATIENCE_SECONDS = 10.0
RETRY_SECONDS = 1.0
LONGEST_ANSWER = 16 << 20
FIRST_REFUSAL = 400

M = TypeVar("M", bound=BaseModel)


class Client:
    """One job. The token goes into one header and nowhere else."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise JobRejected(
                f"{url} is not the address of a job's API."
                " Remedy: write it as http://host:port, as the driver's log shows it."
            )
        self.url = url
        self._token = token
        self._secure = parts.scheme == "https"
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
                f"no job answers at {self.url}: {problem or type(problem).__name__}."
                " Remedy: see with `weir jobs` what runs here, or check the address.",
                RETRY_SECONDS,
            ) from problem
        try:
            if status >= FIRST_REFUSAL:
                raise _refused(Problem.model_validate_json(text))
            return answer.model_validate_json(text)
        except ValidationError as problem:
            raise JobRejected(
                f"what answers at {self.url} is not a job's API (status {status})."
                " Remedy: check the address, and that both sides are of one version."
            ) from problem

    def _exchange(self, verb: str, path: str, body: dict[str, object] | None) -> tuple[int, bytes]:
        make = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = make(*self._address, timeout=PATIENCE_SECONDS)
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


def _refused(problem: Problem) -> JobRejected:
    return JobRejected(f"{problem.cause.rstrip('.')}. Remedy: {problem.remedy.rstrip('.')}.")
