"""The endpoints that read, which need no token."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request

from weir.rest.body import Problem
from weir.rest.checkpoint_statistics import (
    CheckpointDetails,
    CheckpointingSettings,
    CheckpointStatistics,
    TaskDetails,
)
from weir.rest.job_overview import Graph, Overview
from weir.rest.job_view import JobView
from weir.rest.problems import Refusal, refuse

MISSING: dict[int | str, dict[str, object]] = {404: {"model": Problem}}

router = APIRouter(prefix="/job", tags=["job"])


def job_view(request: Request) -> JobView:
    view: JobView = request.app.state.view
    return view


View = Annotated[JobView, Depends(job_view)]
CheckpointNumber = Annotated[int, Path(ge=1, le=2**63 - 1)]


@router.get("")
def job(view: View) -> Overview:
    return view.overview()


@router.get("/graph")
def graph(view: View) -> Graph:
    return view.graph()


@router.get("/checkpoints")
def checkpoints(view: View) -> CheckpointStatistics:
    return view.checkpoints()


@router.get("/checkpoints/config")
def checkpointing(view: View) -> CheckpointingSettings:
    return view.settings()


@router.get("/checkpoints/{checkpoint}", responses=MISSING)
def checkpoint_details(checkpoint: CheckpointNumber, view: View) -> CheckpointDetails:
    details = view.checkpoint(checkpoint)
    if details is None:
        raise _unknown_checkpoint(checkpoint)
    return details


@router.get("/checkpoints/{checkpoint}/subtasks/{operator:path}", responses=MISSING)
def task_details(checkpoint: CheckpointNumber, operator: str, view: View) -> TaskDetails:
    details = view.task(checkpoint, operator)
    if details is not None:
        return details
    if view.checkpoint(checkpoint) is None:
        raise _unknown_checkpoint(checkpoint)
    raise refuse(
        HTTPStatus.NOT_FOUND,
        f"the job has no operator {operator!r}",
        "no operator of its graph has this uid",
        "GET /v1/job/graph lists the operators",
    )


def _unknown_checkpoint(checkpoint: int) -> Refusal:
    return refuse(
        HTTPStatus.NOT_FOUND,
        f"checkpoint {checkpoint} is not in this driver's history",
        "it was never taken, or the history has dropped it because it is old",
        "GET /v1/job/checkpoints lists the checkpoints in the history",
    )
