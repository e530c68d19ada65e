"""The endpoint for the manager of a job, such as an operator: the job's whole report in one answer.

The report names every request to the job, so it needs the token. A client that has a version of the
report can wait for the next one, and so learns of a change without polling often. Waiting blocks no
thread.
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
    """The report once its version differs, the time is up, or the server ends."""
    until = time.monotonic() + wait
    found = view.report().stamped()
    while found.version == after and time.monotonic() < until and not request.app.state.is_closing:
        await asyncio.sleep(POLL_SECONDS)
        found = view.report().stamped()
    return found
