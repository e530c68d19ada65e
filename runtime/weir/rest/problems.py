"""Answers a request that is refused with the problem, its cause and the remedy.

A problem never repeats what a client sent in a header or a body: it could be a secret.
"""

from collections.abc import Sequence
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from weir.api.config_problem import InvalidValue
from weir.errors import JobRejected, Unavailable
from weir.rest.body import Problem

MEDIA_TYPE = "application/problem+json"
SEE_DESCRIPTION = "GET /v1/openapi.json describes every path and body"


class Refusal(Exception):
    """Ends a request with a problem."""

    def __init__(self, problem: Problem, headers: dict[str, str] | None = None) -> None:
        super().__init__(problem.title)
        self.problem = problem
        self.headers = headers


def refuse(status: HTTPStatus, problem: str, cause: str, remedy: str) -> Refusal:
    return Refusal(Problem(title=problem, status=status, cause=cause, remedy=remedy))


def add_problem_handlers(app: FastAPI) -> None:
    """Every refusal of this app becomes a problem, those of the framework included."""
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _not_routed)
    app.add_exception_handler(JobRejected, _rejected)
    app.add_exception_handler(Unavailable, _unavailable)
    app.add_exception_handler(Exception, _broken)


def answer_to(refusal: Refusal) -> JSONResponse:
    problem = refusal.problem
    return JSONResponse(
        problem.model_dump(),
        status_code=problem.status,
        headers=refusal.headers,
        media_type=MEDIA_TYPE,
    )


def _refused(request: Request, problem: Exception) -> JSONResponse:
    del request
    assert isinstance(problem, Refusal), "registered for refusals"
    return answer_to(problem)


def _invalid(request: Request, problem: Exception) -> JSONResponse:
    del request
    assert isinstance(problem, RequestValidationError), "registered for invalid requests"
    return answer_to(refuse(HTTPStatus.UNPROCESSABLE_ENTITY, *_explained(problem.errors())))


def _explained(errors: Sequence[dict[str, object]]) -> tuple[str, str, str]:
    """The first part of a request that is wrong, why, and how to write it."""
    first = errors[0]
    place = first["loc"]
    assert isinstance(place, tuple), "pydantic gives the location as a tuple"
    where = ".".join(str(part) for part in place)
    context = first.get("ctx")
    unfit = context.get("error") if isinstance(context, dict) else None
    if isinstance(unfit, InvalidValue):
        return f"{where} is refused", unfit.reason, unfit.remedy
    return f"{where} is refused", str(first["msg"]), SEE_DESCRIPTION


def _not_routed(request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, HTTPException), "registered for the framework's own refusals"
    status = HTTPStatus(problem.status_code)
    what = f"{request.method} {request.url.path} is refused"
    return answer_to(refuse(status, what, problem.detail, SEE_DESCRIPTION))


def _rejected(request: Request, problem: Exception) -> JSONResponse:
    del request
    assert isinstance(problem, JobRejected), "registered for refusals of the job"
    return answer_to(refuse(HTTPStatus.CONFLICT, *problem.parts))


def _unavailable(request: Request, problem: Exception) -> JSONResponse:
    del request
    assert isinstance(problem, Unavailable), "registered for Unavailable"
    refusal = refuse(
        HTTPStatus.SERVICE_UNAVAILABLE,
        problem.problem,
        problem.cause or "a service that the job needs does not answer",
        problem.remedy or "try again later",
    )
    refusal.headers = {"Retry-After": str(max(round(problem.retry_after), 1))}
    return answer_to(refusal)


def _broken(request: Request, problem: Exception) -> JSONResponse:
    what = f"{request.method} {request.url.path} failed"
    remedy = "see the trace in the driver's log; the job itself is not affected"
    return answer_to(refuse(HTTPStatus.INTERNAL_SERVER_ERROR, what, type(problem).__name__, remedy))
