"""What the API server answers is sorted by who must act: time, or a person."""

import asyncio

import pytest
from aiohttp import web
from kubernetes_asyncio.client import Configuration

from reconciled_job import KEY
from weir.errors import Unavailable
from weir_operator.cluster.api_client import ApiClient
from weir_operator.cluster.api_paths import JOBS
from weir_operator.cluster.api_requests import ApiRejected, get_request, successful_body

TOO_LARGE = (
    (500, "etcdserver: request is too large"),
    (500, "rpc error: code = ResourceExhausted desc = trying to send message larger than max"),
    (413, "Request entity too large: limit is 3145728"),
)


async def called(code, message):
    async def answer(_request):
        return web.json_response({"kind": "Status", "message": message}, status=code)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    api = ApiClient(Configuration(host=f"http://127.0.0.1:{port}"), lambda *_: None)
    request = get_request(JOBS, KEY)
    try:
        return successful_body(request, await api.call(request))
    finally:
        await api.close()
        await runner.cleanup()


@pytest.mark.parametrize(("code", "message"), TOO_LARGE)
def test_an_object_that_etcd_does_not_store_is_a_refusal(code, message):
    """K9: time does not make it smaller, whatever the code says."""
    with pytest.raises(ApiRejected) as refused:
        asyncio.run(called(code, message))

    assert refused.value.reason == "ObjectTooLarge"
    assert message in str(refused.value)
    assert "shorten" in str(refused.value)


def test_another_failure_of_the_api_server_is_an_outage():
    """K3."""
    with pytest.raises(Unavailable):
        asyncio.run(called(500, "etcdserver: leader changed"))
