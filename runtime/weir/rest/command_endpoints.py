"""The endpoints that change a job, which need the job's token.

The answer is the current state of the request. A client that needs the outcome asks for the request
later, or sets a time to wait. Waiting blocks no thread.
"""

import asyncio
import time
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from fastapi import Body as Sent
from pydantic import ConfigDict, Field

from weir.api.storage_url import DurableUrl
from weir.rest.authorization import ONLY_BEARER
from weir.rest.body import Body, Problem
from weir.rest.commands import (
    Cancel,
    Command,
    RequestState,
    RequestStatus,
    Stop,
    TakeCheckpoint,
    TakeSavepoint,
)
from weir.rest.problems import refuse
from weir.rest.query_endpoints import MISSING, View

NAME = r"^[A-Za-z0-9._:-]+$"
LONGEST_NAME = 128
LONGEST_URL = 2048
LONGEST_WAIT_SECONDS = 60.0
POLL_SECONDS = 0.05

REFUSED: dict[int | str, dict[str, object]] = {401: {"model": Problem}, 409: {"model": Problem}}

router = APIRouter(prefix="/job", tags=["commands"])


class SavepointBody(Body):
    """The body of a savepoint command."""

    model_config = ConfigDict(extra="forbid")

    target_directory: Annotated[DurableUrl, Field(max_length=LONGEST_URL)] | None = Field(
        default=None, alias="targetDirectory"
    )
    """The savepoint gets a new directory below this one; if not given, at the usual place."""


class StopBody(SavepointBody):
    """The body of a stop command."""

    drain: bool = False
    """Let event time run to its end and fire every timer: for a job that will not continue."""


Wait = Annotated[
    float,
    Query(ge=0, le=LONGEST_WAIT_SECONDS, description="Seconds to wait for the request's end."),
]


class RequestWaiter:
    """Starts a request and waits for its end, up to the time that the client set."""

    def __init__(
        self,
        request: Request,
        view: View,
        key: Annotated[
            str,
            Header(
                alias="Idempotency-Key",
                max_length=LONGEST_NAME,
                pattern=NAME,
                description="The same key again is the same request.",
            ),
        ] = "",
        wait: Wait = 0,
    ) -> None:
        self._app = request.app
        self._view = view
        self._key = key
        self._wait = wait

    async def take(self, order: Command) -> RequestState:
        state = await self.follow(self._view.order(order, self._key))
        assert state is not None, "a request that was just made is known"
        return state

    async def follow(self, request: str) -> RequestState | None:
        """The request's state once it has ended, the time is up, or the server ends."""
        until = time.monotonic() + self._wait
        state = self._view.request(request)
        while _is_open(state) and time.monotonic() < until and not self._app.state.is_closing:
            await asyncio.sleep(POLL_SECONDS)
            state = self._view.request(request)
        return state


def _is_open(state: RequestState | None) -> bool:
    return state is not None and state.status is RequestStatus.IN_PROGRESS


Waiter = Annotated[RequestWaiter, Depends(RequestWaiter)]
ACCEPTED = HTTPStatus.ACCEPTED


@router.post("/checkpoints", status_code=ACCEPTED, dependencies=ONLY_BEARER, responses=REFUSED)
async def take_checkpoint(waiter: Waiter) -> RequestState:
    return await waiter.take(TakeCheckpoint())


@router.post("/savepoints", status_code=ACCEPTED, dependencies=ONLY_BEARER, responses=REFUSED)
async def take_savepoint(
    waiter: Waiter, order: Annotated[SavepointBody, Sent(default_factory=SavepointBody)]
) -> RequestState:
    return await waiter.take(TakeSavepoint(order.target_directory or ""))


@router.post("/stop", status_code=ACCEPTED, dependencies=ONLY_BEARER, responses=REFUSED)
async def stop(
    waiter: Waiter, order: Annotated[StopBody, Sent(default_factory=StopBody)]
) -> RequestState:
    return await waiter.take(Stop(order.target_directory or "", order.drain))


@router.post("/cancel", status_code=ACCEPTED, dependencies=ONLY_BEARER, responses=REFUSED)
async def cancel(waiter: Waiter) -> RequestState:
    return await waiter.take(Cancel())


@router.get("/requests/{request}", responses=MISSING)
async def request_state(
    request: Annotated[str, Path(max_length=LONGEST_NAME, pattern=NAME)], waiter: Waiter
) -> RequestState:
    state = await waiter.follow(request)
    if state is None:
        raise refuse(
            HTTPStatus.NOT_FOUND,
            f"this driver has no request {request}",
            "it was never made, or the driver was restarted since",
            "ask again with the same Idempotency-Key",
        )
    return state
