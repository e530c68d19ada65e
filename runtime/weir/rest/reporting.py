"""The page for whoever manages the job: all that a decision about it depends on, in one answer.

It names every request that was made of the job, so it is shown to the bearer of the token alone.
"""

from fastapi import APIRouter

from weir.api.report import JobReport
from weir.rest.access import ONLY_BEARER
from weir.rest.body import Problem
from weir.rest.pages import View

router = APIRouter(prefix="/job", tags=["job"])


@router.get("/report", dependencies=ONLY_BEARER, responses={401: {"model": Problem}})
def report(view: View) -> JobReport:
    return view.report()
