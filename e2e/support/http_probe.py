"""Makes HTTP requests from inside a pod with the standard library, and prints the responses.

It is sent into a pod as text, so it imports no project code and has only the permissions of the
pod. It reads the requests from standard input and writes the results to standard output.
"""

import http.client
import json
import ssl
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TIMEOUT_S = 5.0


def answered(call: dict[str, Any]) -> dict[str, object]:
    """The status, or 0 and why there is none."""
    where = urlsplit(call["url"])
    try:
        with closing(_connected(call, where.scheme, where.netloc)) as connection:
            connection.request(call["method"], where.path, headers=_headers(call))
            return {"status": connection.getresponse().status, "why": ""}
    except (OSError, http.client.HTTPException) as problem:
        return {"status": 0, "why": f"{type(problem).__name__}: {problem}"}


def _connected(call: dict[str, Any], scheme: str, host: str) -> http.client.HTTPConnection:
    if scheme == "http":
        return http.client.HTTPConnection(host, timeout=TIMEOUT_S)
    return http.client.HTTPSConnection(host, timeout=TIMEOUT_S, context=_trusting(call))


def _trusting(call: dict[str, Any]) -> ssl.SSLContext:
    """An API server is known by its name; a driver by the authority of its job alone."""
    if call["as_account"]:
        return ssl.create_default_context(cafile=ACCOUNT / "ca.crt")
    context = ssl.create_default_context(cadata=call["authority"])
    context.check_hostname = False
    return context


def _headers(call: dict[str, Any]) -> dict[str, str]:
    token = (ACCOUNT / "token").read_text() if call["as_account"] else call["token"]
    return {"Authorization": f"Bearer {token}"} if token else {}


if __name__ == "__main__":
    json.dump([answered(call) for call in json.load(sys.stdin)], sys.stdout)
