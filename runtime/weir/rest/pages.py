"""The pages that anybody may read."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request

from weir.rest.body import Problem
from weir.rest.checkpoints import (
    CheckpointDetails,
    CheckpointingSettings,
    CheckpointStatistics,
    TaskDetails,
)
from weir.rest.job import Graph, Overview
from weir.rest.problems import Refusal, refuse
from weir.rest.view import JobView

MISSING: dict[int | str, dict[str, object]] = {404: {"model": Problem}}

router = APIRouter(prefix="/job", tags=["job"])


def shown_job(request: Request) -> JobView:
    view: JobView = request.app.state.view
    return view


View = Annotated[JobView, Depends(shown_job)]
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
        raise _forgotten(checkpoint)
    return details


@router.get("/checkpoints/{checkpoint}/subtasks/{operator:path}", responses=MISSING)
def task_details(checkpoint: CheckpointNumber, operator: str, view: View) -> TaskDetails:
    details = view.task(checkpoint, operator)
    if details is not None:
        return details
    if view.checkpoint(checkpoint) is None:
        raise _forgotten(checkpoint)
    raise refuse(
        HTTPStatus.NOT_FOUND,
        f"the job has no operator {operator!r}",
        "no operator of its graph has this uid",
        "GET /v1/job/graph lists the operators",
    )


def _forgotten(checkpoint: int) -> Refusal:
    return refuse(
        HTTPStatus.NOT_FOUND,
        f"checkpoint {checkpoint} is not in this driver's history",
        "it was never taken, or the history has dropped it because it is old",
        "GET /v1/job/checkpoints lists the checkpoints in the history",
    )
