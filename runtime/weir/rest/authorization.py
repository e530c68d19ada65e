"""Authorizes requests by the job's bearer token.

The token is compared in constant time and never leaves this module (spec X1, X4).
"""

import secrets
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from weir.rest.problems import Refusal, refuse

BEARER = HTTPBearer(auto_error=False, description="The token that the driver was started with.")


class Guard:
    """Holds the token and compares it; it never reveals the token."""

    def __init__(self, token: str) -> None:
        assert token, "an empty token would admit every client"
        self._token = token.encode()

    def admits(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self._token)


def refusal_without_token(guard: Guard, authorization: bytes) -> Refusal | None:
    """Why a request with this header is not the bearer's; None if it is."""
    scheme, _, given = authorization.decode("latin-1").partition(" ")
    is_bearer = scheme.lower() == "bearer" and bool(given)
    if is_bearer and guard.admits(given.strip()):
        return None
    what = "the bearer token is not this job's" if is_bearer else "the request has no bearer token"
    refusal = refuse(
        HTTPStatus.UNAUTHORIZED,
        what,
        "only its bearer may ask for this",
        "send the header Authorization: Bearer with the token that the driver was started with",
    )
    refusal.headers = {"WWW-Authenticate": "Bearer"}
    return refusal


def bears_token(
    request: Request,
    given: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)],
) -> None:
    del given  # describes the header in the API's own description
    guard = request.app.state.guard
    assert isinstance(guard, Guard), "the app is made with a guard"
    refusal = refusal_without_token(
        guard, request.headers.get("authorization", "").encode("latin-1")
    )
    if refusal is not None:
        raise refusal


ONLY_BEARER = [Depends(bears_token)]
"""Dependency of the endpoints that need the token."""
