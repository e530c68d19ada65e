"""Whether the driver that the log names last still runs the job."""

import socket
from dataclasses import replace

import pytest

from fake_job_view import FakeJobView, served
from storage_facts import epoch
from throwaway_certificates import a_certificate
from weir.core.takeover import Liveness
from weir.driver import liveness_probe
from weir.driver.liveness_probe import LivenessProbe
from weir.rest.server import ListenAddress

HERE = f"{socket.gethostname()}-4711-1f0c"


def last(address, driver=HERE):
    return replace(epoch(), driver=driver, address=address)


@pytest.fixture
def shown():
    return FakeJobView()


def ask_of(shown, **chosen):
    return LivenessProbe(shown.overview().directory, **chosen)


def test_a_driver_that_shows_the_job_lives(shown):
    """C17."""
    with served(shown) as server:
        assert ask_of(shown)(last(server.url)) is Liveness.LIVES


def test_a_driver_whose_process_was_killed_is_gone_at_once(shown):
    """R1, C17: nothing listens at its port any more."""
    with served(shown) as server:
        url = server.url
    assert ask_of(shown)(last(url)) is Liveness.GONE


def test_another_job_at_the_same_port_is_not_the_driver(shown):
    """C17: ports are given out again."""
    with served(shown) as server:
        assert LivenessProbe("file:///elsewhere/orders")(last(server.url)) is Liveness.GONE


def test_a_job_that_is_over_has_no_driver_to_protect(shown):
    """C17."""
    over = shown.overview().model_copy(update={"is_over": True})
    shown.overview = lambda: over
    with served(shown) as server:
        assert LivenessProbe(over.directory)(last(server.url)) is Liveness.GONE


def test_a_process_that_takes_the_connection_and_says_nothing_is_not_waited_for(shown, monkeypatch):
    """R1: a frozen driver must not delay its successor for long."""
    monkeypatch.setattr(liveness_probe, "PATIENCE_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}"
        assert ask_of(shown)(last(url)) is Liveness.UNKNOWN


def test_a_loopback_address_of_another_machine_says_nothing(shown):
    """C17: it would lead to whatever listens here."""
    with served(shown) as server:
        found = ask_of(shown)(last(server.url, "another-machine-4711-1f0c"))
    assert found is Liveness.UNKNOWN


def test_a_driver_whose_address_is_not_in_the_log_cannot_be_asked(shown):
    """S8: an earlier release did not note it."""
    assert ask_of(shown)(last("")) is Liveness.UNKNOWN


def test_a_driver_that_speaks_tls_is_asked_by_the_certificate_of_the_job(shown, tmp_path):
    """X1, C17."""
    tls = a_certificate(tmp_path, "job")
    with served(shown, ListenAddress(tls=tls)) as server:
        assert ask_of(shown, tls=tls)(last(server.url)) is Liveness.LIVES
