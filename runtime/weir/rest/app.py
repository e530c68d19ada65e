"""Builds the versioned REST API, with its OpenAPI description, for any ``JobView``."""

from fastapi import APIRouter, FastAPI, Response
from fastapi.responses import PlainTextResponse
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from starlette.requests import Request

import weir
from weir.rest import command_endpoints, query_endpoints, report_endpoint
from weir.rest.authorization import Guard
from weir.rest.job_metrics import registry_of
from weir.rest.job_view import JobView
from weir.rest.limits import RequestLimits, UntrustedConnections
from weir.rest.problems import add_problem_handlers

VERSION = "/v1"

probes = APIRouter(tags=["probes"])


@probes.get("/healthz", response_class=PlainTextResponse)
async def healthz() -> str:
    """The driver's process lives and answers."""
    return "ok\n"


@probes.get("/metrics", response_class=PlainTextResponse)
def metrics(request: Request) -> Response:
    """For Prometheus."""
    return Response(
        generate_latest(request.app.state.registry), media_type=CONTENT_TYPE_PLAIN_0_0_4
    )


def create_app(view: JobView, token: str) -> FastAPI:
    app = FastAPI(
        title="Weir",
        summary="One running job: what it does, its checkpoints, and orders to it.",
        version=weir.__version__,
        openapi_url=f"{VERSION}/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.view = view
    guard = Guard(token)
    app.state.guard = guard
    app.state.strangers = UntrustedConnections()
    app.state.registry = registry_of(view)
    app.state.is_closing = False
    add_problem_handlers(app)
    app.add_middleware(RequestLimits, guard=guard, strangers=app.state.strangers)
    app.include_router(query_endpoints.router, prefix=VERSION)
    app.include_router(report_endpoint.router, prefix=VERSION)
    app.include_router(command_endpoints.router, prefix=VERSION)
    app.include_router(probes)
    return app
