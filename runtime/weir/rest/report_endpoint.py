"""The page for whoever manages the job: all that a decision about it depends on, in one answer.

It names every request that was made of the job, so it is shown to the bearer of the token alone.
Whoever knows a version of the report may wait for the next one, and so hears of a change soon
without asking often. Waiting holds no thread.
"""

import asyncio
import time
from typing import Annotated

from fastapi import APIRouter, Query, Request

from weir.api.report import LONGEST_VERSION, JobReport
from weir.rest.authorization import ONLY_BEARER
from weir.rest.body import Problem
from weir.rest.command_endpoints import LONGEST_WAIT_SECONDS
from weir.rest.query_endpoints import View

POLL_SECONDS = 0.2

router = APIRouter(prefix="/job", tags=["job"])

After = Annotated[
    str,
    Query(max_length=LONGEST_VERSION, description="Version of the report that is known already."),
]
Wait = Annotated[
    float,
    Query(ge=0, le=LONGEST_WAIT_SECONDS, description="Seconds to wait for another version."),
]


@router.get("/report", dependencies=ONLY_BEARER, responses={401: {"model": Problem}})
async def report(request: Request, view: View, after: After = "", wait: Wait = 0) -> JobReport:
    """The report when it is another, when time is up, or when the server ends."""
    until = time.monotonic() + wait
    told = view.report().stamped()
    while told.version == after and time.monotonic() < until and not request.app.state.is_closing:
        await asyncio.sleep(POLL_SECONDS)
        told = view.report().stamped()
    return told
