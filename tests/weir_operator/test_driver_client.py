"""A driver is believed as far as the shape of its report goes, and no further."""

import asyncio
import json

import pytest
from aiohttp import web

from fake_job_view import TOKEN, FakeJobView, served
from throwaway_certificates import a_certificate
from wait_until import until
from weir.api.report import JobPhase, Outcome
from weir.rest.server import ListenAddress
from weir_operator.driver_client import (
    CACHED_BYTES,
    MAX_REPORT_BYTES,
    DriverClient,
    DriverEndpoint,
    parse_report,
    ssl_contexts,
)
from weir_operator.plan.cluster_actions import RequestCheckpoint, RequestSavepoint, RequestStop
from weir_operator.plan.observed_state import Unreachable

NO_REPORT = "its API does not return a valid report"
RUNNING = {"attempt": 3, "phase": "RUNNING"}


def said(**more):
    return json.dumps(RUNNING | more)


class PlayedDriver:
    """An HTTP server with a fixed response that records its requests."""

    def __init__(self, text=None, status=200):
        self.text, self.status = text or said(), status
        self.asked = []
        self.queries = []

    async def _answer(self, request):
        self.queries.append(dict(request.query))
        self.asked.append(
            (request.method, request.path, dict(request.headers), await request.text())
        )
        return web.Response(text=self.text, status=self.status)

    def with_client(self, act):
        """Run it for as long as a client acts."""

        async def played():
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", self._answer)
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            client = DriverClient()
            endpoint = DriverEndpoint("127.0.0.1", runner.addresses[0][1], 3, "the-token")
            try:
                return await act(client, endpoint)
            finally:
                await client.close()
                await runner.cleanup()

        return asyncio.run(played())


def reported(driver):
    return driver.with_client(lambda client, endpoint: client.report(endpoint))


def test_a_report_is_asked_for_with_the_token():
    """X1: who asks is known."""
    driver = PlayedDriver()

    report = reported(driver).report

    assert (report.attempt, report.phase) == (3, JobPhase.RUNNING)
    ((method, path, headers, _),) = driver.asked
    assert (method, path) == ("GET", "/v1/job/report")
    assert headers["Authorization"] == "Bearer the-token"


def test_news_is_asked_for_by_the_version_that_is_known():
    """K7: the driver answers when it has another, or when it has waited."""
    driver = PlayedDriver(said(version="v2"))

    result = driver.with_client(lambda client, endpoint: client.next_report(endpoint, "v1"))

    assert (result.version, result.report.phase) == (
        "v2",
        JobPhase.RUNNING,
    )
    assert driver.queries == [{"after": "v1", "wait": "30"}]


def test_a_drivers_own_api_is_heard_when_it_has_news():
    """K7: driver and operator mean the same by a version."""
    job = FakeJobView()

    async def received(server):
        client = DriverClient()
        endpoint = DriverEndpoint("127.0.0.1", server.port, 4, TOKEN)
        try:
            first = await client.report(endpoint)
            waiting = asyncio.create_task(client.next_report(endpoint, first.version))
            await asyncio.to_thread(until, "it waits", lambda: job.reports > 2, str)
            job.status = "RESTARTING"
            return first, await waiting
        finally:
            await client.close()

    with served(job) as server:
        first, second = asyncio.run(received(server))

    assert (first.report.phase, second.report.phase) == (JobPhase.RUNNING, JobPhase.RESTARTING)


@pytest.mark.parametrize(
    ("text", "status", "why"),
    [
        ("nonsense", 200, NO_REPORT),
        ("[]", 200, NO_REPORT),
        (said(), 401, "its API returned HTTP status 401"),
        (said(attempt=4), 200, NO_REPORT),
        (said(phase="DANCING"), 200, NO_REPORT),
        (said(completed=-1), 200, NO_REPORT),
        (said(requests=[{"id": "x", "outcome": "COMPLETED"}] * 65), 200, NO_REPORT),
        (said(newest={"id": 1, "completedAtMs": 2**62}), 200, NO_REPORT),
        (said(why="x" * MAX_REPORT_BYTES), 200, "its report is longer than 65536 bytes"),
    ],
)
def test_whatever_is_wrong_with_an_answer_makes_it_none(text, status, why):
    """X3 K7: bounded and validated; the cause contains no text of the driver."""
    assert reported(PlayedDriver(text, status)) == Unreachable(why)


def test_the_token_is_in_no_log(caplog):
    """X4: not even when a driver refuses it."""
    caplog.set_level("DEBUG")
    driver = PlayedDriver(status=401)

    driver.with_client(lambda client, endpoint: client.send(endpoint, RequestStop(3, "k")))
    reported(driver)

    assert "401" in str([vars(record) for record in caplog.records])
    assert "the-token" not in str([vars(record) for record in caplog.records])


def test_a_driver_that_cannot_be_reached_is_unreachable():
    """K10: silence is an outcome."""

    async def asked():
        client = DriverClient()
        try:
            return await client.report(DriverEndpoint("127.0.0.1", 9, 1, "t"))
        finally:
            await client.close()

    assert asyncio.run(asked()) == Unreachable("its API does not respond")


def heard_by_tls(folder, authority):
    """The report of a driver with a certificate, to a client that trusts a CA."""
    tls = a_certificate(folder, "job", signed_by=a_certificate(folder, "authority"))
    a_certificate(folder, "another")

    async def asked(server):
        client = DriverClient()
        try:
            return await client.report(
                DriverEndpoint("127.0.0.1", server.port, 4, TOKEN, authority(folder))
            )
        finally:
            await client.close()

    with served(FakeJobView(), ListenAddress(tls=tls)) as server:
        return asyncio.run(asked(server))


@pytest.mark.parametrize("note", ["", "# für alle Fälle\n"])
def test_a_driver_is_believed_by_the_jobs_authority(tmp_path, note):
    """X1: whatever people have written between its certificates."""
    result = heard_by_tls(tmp_path, lambda folder: note + (folder / "authority.pem").read_text())
    assert result.report.phase is JobPhase.RUNNING


NO_CERTIFICATE = "the TLS handshake with it failed: ca.crt of its Secret contains no certificate"


@pytest.mark.parametrize(
    ("authority", "why"),
    [
        (
            lambda folder: (folder / "another.pem").read_text(),
            "the operator does not trust its certificate: ",
        ),
        (lambda _: "", NO_CERTIFICATE),
        (lambda _: "für nichts", NO_CERTIFICATE),
        (
            lambda _: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "the TLS handshake with it failed: ",
        ),
    ],
)
def test_by_another_authority_it_is_not_and_the_log_says_so(tmp_path, caplog, authority, why):
    """X1 U3 K7: none at all does not mean any; and a person reads why."""
    unreachable = heard_by_tls(tmp_path, authority)
    assert unreachable.is_untrusted
    assert unreachable.why.startswith(why)
    assert [r.levelname for r in caplog.records if "certificate" in r.why.lower()] == ["WARNING"]


def test_a_driver_that_encrypts_is_not_heard_in_the_clear(tmp_path):
    """X1."""
    assert heard_by_tls(tmp_path, lambda _: None) == Unreachable("its API does not respond")


def test_a_path_that_is_none_never_reaches_a_status():
    """X3: a driver cannot make the operator write rubbish."""
    done = {"id": "k", "outcome": "COMPLETED", "path": "rm -rf", "checkpoint": 0}
    newest = {"id": 1, "completedAtMs": 5, "path": "s3://u:p@bucket/x"}

    report = parse_report(said(requests=[done], newest=newest), 3)

    (request,) = report.requests
    assert (request.outcome, request.path, request.checkpoint) == (Outcome.COMPLETED, None, None)
    assert report.newest.path is None


@pytest.mark.parametrize(
    ("sent", "path", "body"),
    [
        (RequestSavepoint(3, "k", "s3://a/b"), "savepoints", {"targetDirectory": "s3://a/b"}),
        (RequestSavepoint(3, "k"), "savepoints", {}),
        (RequestCheckpoint(3, "k"), "checkpoints", {}),
        (RequestStop(3, "k"), "stop", {"drain": False}),
    ],
)
def test_a_request_carries_its_key(sent, path, body):
    """K3: a repeated request has no further effect."""
    driver = PlayedDriver(status=202)

    assert driver.with_client(lambda client, endpoint: client.send(endpoint, sent))

    ((method, asked, headers, text),) = driver.asked
    assert (method, asked, json.loads(text)) == ("POST", f"/v1/job/{path}", body)
    assert headers["Idempotency-Key"] == "k"


def test_a_rejected_request_may_be_repeated():
    """K3: a rejection is a result, not an exception."""
    driver = PlayedDriver(status=409)
    request = RequestCheckpoint(3, "k")
    assert not driver.with_client(lambda client, endpoint: client.send(endpoint, request))


def test_authorities_of_many_tenants_take_no_more_room_than_was_allowed(tmp_path):
    """K9 X3: each tenant writes its own, with as many notes beside it as fit into a Secret."""
    certificate = a_certificate(tmp_path, "authority").certificate.read_text()
    for number in range(40):
        ssl_contexts(f"{number} {'x' * 60_000}\n{certificate}")

    assert 0 < ssl_contexts.held_bytes <= CACHED_BYTES
