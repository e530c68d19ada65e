"""How the API is served: beside everything else, and never in its way."""

import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import pytest

from fake_job_view import TOKEN, FakeJobView, completed, served
from throwaway_certificates import a_certificate
from wait_until import until
from weir.errors import JobRejected
from weir.rest.server import ListenAddress, RestServer

BEARER = {"Authorization": f"Bearer {TOKEN}"}


def test_a_taken_port_is_refused_by_number_with_a_remedy():
    """U3: thing, cause, remedy."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(JobRejected, match=rf"port {port} .* another process .* port 0"):
            RestServer(FakeJobView(), TOKEN, ListenAddress(port=port))


def test_an_address_of_another_machine_is_refused_by_name():
    """U3: thing, cause, remedy."""
    with pytest.raises(JobRejected, match=r"192\.0\.2\.1 .* address of this machine"):
        RestServer(FakeJobView(), TOKEN, ListenAddress("192.0.2.1"))


def test_a_closed_server_gives_its_port_back():
    """U2: the same port serves the job's next run."""
    with served(FakeJobView()) as first:
        assert httpx.get(f"{first.url}/healthz").status_code == 200
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{first.url}/healthz")
    again = RestServer(FakeJobView(), TOKEN, ListenAddress(port=first.port))
    again.close()


def test_waiting_clients_do_not_block_other_requests():
    """U1: a hundred open questions, and a page is still answered."""
    job = FakeJobView()
    with served(job) as server, ThreadPoolExecutor(100) as clients:
        waiting = [
            clients.submit(
                httpx.post, f"{server.url}/v1/job/savepoints?wait=60", headers=BEARER, timeout=90
            )
            for _ in range(100)
        ]
        assert job.ordered.wait(20)
        assert httpx.get(f"{server.url}/v1/job").status_code == 200
        job.outcome = completed("s3://b/savepoint-8")
        assert {answer.result().json()["status"] for answer in waiting} == {"COMPLETED"}


def test_a_waiting_stop_request_gets_its_outcome_when_the_server_ends():
    """R6: the outcome of a stop reaches the client although the job ends with it."""
    job = FakeJobView()
    answers = []

    def ask(url):
        answers.append(httpx.post(f"{url}/v1/job/stop?wait=60", headers=BEARER, timeout=90))

    with served(job) as server:
        client = threading.Thread(target=ask, args=(server.url,))
        client.start()
        assert job.ordered.wait(20)
        job.outcome = completed("s3://b/savepoint-8")
    client.join()

    assert answers[0].json()["location"] == "s3://b/savepoint-8"


def test_a_waiting_report_request_is_answered_when_the_server_ends():
    """K7: the last thing that a manager hears is how the job ended."""
    job = FakeJobView()
    answers = []
    wanted = {"after": job.report().stamped().version, "wait": 60}

    def ask(url):
        answers.append(httpx.get(f"{url}/v1/job/report", params=wanted, headers=BEARER, timeout=90))

    with served(job) as server:
        client = threading.Thread(target=ask, args=(server.url,))
        client.start()
        until("the question is waited with", lambda: job.reports > 1, lambda: str(job.reports))
    client.join()

    assert answers[0].json()["version"] == wanted["after"]


def test_a_page_that_breaks_is_a_problem_and_the_server_goes_on():
    """U3: not even our own mistakes are answered with a bare error."""
    job = FakeJobView()
    with served(job) as server:
        job.history = None
        broken = httpx.get(f"{server.url}/v1/job/checkpoints")
        assert broken.status_code == 500
        assert "not affected" in broken.json()["remedy"]
        assert httpx.get(f"{server.url}/v1/job").status_code == 200


def test_with_the_jobs_certificate_the_api_speaks_https_alone(tmp_path):
    """X1: a client that trusts the job's authority is answered, and no client without TLS."""
    tls = a_certificate(tmp_path, "job")
    trusting = ssl.create_default_context(cafile=tls.authority)
    trusting.check_hostname = False
    with served(FakeJobView(), ListenAddress(tls=tls)) as server:
        assert server.url.startswith("https://")
        assert httpx.get(f"{server.url}/v1/job", verify=trusting).json()["name"] == "orders"
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(f"http://127.0.0.1:{server.port}/v1/job")


def test_a_certificate_of_the_jobs_authority_is_served(tmp_path):
    """X1: it need not have signed itself."""
    tls = a_certificate(tmp_path, "job", signed_by=a_certificate(tmp_path, "authority"))
    trusting = ssl.create_default_context(cafile=tls.authority)
    trusting.check_hostname = False
    with served(FakeJobView(), ListenAddress(tls=tls)) as server:
        assert httpx.get(f"{server.url}/healthz", verify=trusting).status_code == 200


def test_a_certificate_of_another_authority_is_refused_before_anything_starts(tmp_path):
    """X1 U3: operator and slots could not connect, and would not know why."""
    tls = a_certificate(tmp_path, "job", signed_by=a_certificate(tmp_path, "authority"))
    other = a_certificate(tmp_path, "another")
    with pytest.raises(JobRejected, match=r"another\.pem: unable to get .* Remedy: .* signed it"):
        RestServer(
            FakeJobView(), TOKEN, ListenAddress(tls=replace(tls, authority=other.certificate))
        )


@pytest.mark.parametrize("part", ["certificate", "key", "authority"])
def test_a_missing_file_of_tls_is_refused_with_a_remedy(tmp_path, part):
    """U3: thing, cause, remedy."""
    tls = replace(a_certificate(tmp_path, "job"), **{part: tmp_path / "nowhere.pem"})
    with pytest.raises(JobRejected, match=r"nowhere\.pem.*: No such file .* Remedy"):
        RestServer(FakeJobView(), TOKEN, ListenAddress(tls=tls))
