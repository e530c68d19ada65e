"""A client that has no token costs the driver a bounded amount of memory and of connections."""

import socket
import ssl

import httpx
import pytest

from fake_job_view import TOKEN, FakeJobView, served
from throwaway_certificates import a_certificate
from weir.rest import limits
from weir.rest.commands import Stop
from weir.rest.server import ListenAddress

BEARER = {"Authorization": f"Bearer {TOKEN}"}
PATIENCE = 30
FLOOD = 256 << 20
KERNEL_BUFFERS = 32 << 20
"""More than the two ends of a local connection hold outside of any process."""


@pytest.fixture
def job():
    return FakeJobView()


@pytest.fixture
def server(job):
    with served(job) as started:
        yield started


def connected(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)


def head(*headers, path="/v1/job/savepoints", method="POST"):
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: weir", *headers, "", ""]).encode()


def answer_of(sock):
    """The whole answer, up to the end of the connection."""
    answer = b""
    while more := sock.recv(65_536):
        answer += more
    return answer


def accepted_bytes(sock, total, chunk):
    """How much of a flood leaves this end before the other one refuses the rest."""
    sent = 0
    try:
        while sent < total:
            sock.sendall(chunk)
            sent += len(chunk)
    except OSError:
        pass
    return sent


@pytest.mark.parametrize("token", ["", "Authorization: Bearer wrong"])
def test_a_large_body_without_the_token_is_refused_before_it_is_sent(server, job, token):
    """X1: the answer needs no byte of the body, and the connection is closed with it."""
    length = f"Content-Length: {FLOOD}"
    with connected(server) as sock:
        sock.sendall(head(*filter(None, [length, token])))
        answer = answer_of(sock)

    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"Authorization: Bearer" in answer
    assert job.orders == []


@pytest.mark.parametrize("form", [f"Content-Length: {FLOOD}", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize("token", ["", f"Authorization: Bearer {TOKEN}"])
@pytest.mark.parametrize("method", ["POST", "PUT", "GET"])
def test_a_flood_of_bytes_is_not_buffered(server, form, token, method):
    """X1 X3: the driver takes no more of it than the kernel holds."""
    content = b"x" * (1 << 20)
    chunk = content if "Length" in form else b"100000\r\n" + content + b"\r\n"
    with connected(server) as sock:
        sock.sendall(head(*filter(None, [form, token]), method=method))
        assert accepted_bytes(sock, FLOOD, chunk) < KERNEL_BUFFERS

    assert httpx.get(f"{server.url}/healthz").status_code == 200


def test_a_body_above_the_limit_is_refused_by_its_length(server, job):
    """U3: thing, cause, remedy."""
    answer = httpx.post(
        f"{server.url}/v1/job/stop", headers=BEARER, content=b" " * (limits.LONGEST_BODY + 1)
    )

    assert answer.status_code == 413
    assert "16384 bytes" in answer.json()["cause"]
    assert answer.json()["remedy"]
    assert job.orders == []


def test_a_chunked_body_above_the_limit_is_refused(server, job):
    """X3: a body that does not announce its length is counted."""
    pieces = (b" " * 1024 for _ in range(17))
    answer = httpx.post(f"{server.url}/v1/job/stop", headers=BEARER, content=pieces)

    assert answer.status_code == 413
    assert job.orders == []


def test_a_body_up_to_the_limit_is_read(server, job):
    """C11: in one piece or in several."""
    in_json = BEARER | {"Content-Type": "application/json"}
    order = b'{"drain": true}'
    padded = order + b" " * (limits.LONGEST_BODY - len(order))
    for content in (padded, (padded[at : at + 1000] for at in range(0, len(padded), 1000))):
        answer = httpx.post(f"{server.url}/v1/job/stop", headers=in_json, content=content)
        assert answer.status_code == 202

    assert job.orders == [Stop(drain=True), Stop(drain=True)]


def test_a_length_that_is_no_number_is_refused(server):
    """X3."""
    with connected(server) as sock:
        sock.sendall(head("Content-Length: many", f"Authorization: Bearer {TOKEN}"))
        assert answer_of(sock).startswith(b"HTTP/1.1 400 ")


def test_headers_without_end_are_refused(server):
    """X3: a request's head is bounded, however many lines it has."""
    with connected(server) as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: weir\r\n")
        line = b"X-Line: " + b"x" * 1000 + b"\r\n"
        assert accepted_bytes(sock, FLOOD, line * 1000) < KERNEL_BUFFERS

    assert httpx.get(f"{server.url}/healthz").status_code == 200


def test_silent_connections_keep_no_client_out(server):
    """X1: the oldest one without the token makes room for the newest."""
    silent = [connected(server) for _ in range(limits.MOST_UNTRUSTED + 20)]

    assert httpx.get(f"{server.url}/healthz").status_code == 200
    assert httpx.post(f"{server.url}/v1/job/cancel", headers=BEARER).status_code == 202
    for sock in silent[:20]:
        assert sock.recv(1) == b""
    for sock in silent:
        sock.close()


def test_connections_without_tls_handshake_keep_no_client_out(tmp_path):
    """X1: they are counted before TLS begins."""
    tls = a_certificate(tmp_path, "job")
    trusting = ssl.create_default_context(cafile=tls.authority)
    trusting.check_hostname = False
    with served(FakeJobView(), ListenAddress(tls=tls)) as server:
        silent = [connected(server) for _ in range(limits.MOST_UNTRUSTED + 20)]
        assert httpx.get(f"{server.url}/healthz", verify=trusting).status_code == 200
        for sock in silent[:20]:
            assert sock.recv(1) == b""
        for sock in silent:
            sock.close()


def test_a_flood_of_connections_does_not_cut_off_the_bearer(server):
    """X1: a connection that has shown the token is not counted among the strangers."""
    with httpx.Client(base_url=server.url, headers=BEARER) as bearer:
        assert bearer.get("/v1/job/report").status_code == 200
        (pooled,) = bearer._transport._pool.connections  # noqa: SLF001 - which one it was
        for sock in [connected(server) for _ in range(limits.MOST_UNTRUSTED + 20)]:
            sock.close()
        assert bearer.get("/v1/job/report").status_code == 200
        assert bearer._transport._pool.connections == [pooled]  # noqa: SLF001


def test_a_client_cannot_pass_for_another_by_a_forwarding_header(server):
    """X1: the connection is known by its own address alone."""
    with connected(server) as first, httpx.Client(base_url=server.url) as client:
        host, port = first.getsockname()
        forged = BEARER | {"X-Forwarded-For": f"{host}:{port}"}
        assert client.get("/v1/job/report", headers=forged).status_code == 200
        flood = [connected(server) for _ in range(limits.MOST_UNTRUSTED)]
        assert client.get("/healthz").status_code == 200
        assert first.recv(1) == b""
        for sock in flood:
            sock.close()
