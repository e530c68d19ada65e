"""A driver that is not heard, or not believed, is said to be so with the cause, until it is."""

from datetime import timedelta

import pytest

from reconciled_job import NAMESPACE, SILENCE, OperatedJob
from weir.api.report import JobPhase
from weir_operator.cluster.api_paths import SECRETS, Key
from weir_operator.cluster.driver_credentials import MISSED
from weir_operator.plan.observed_state import DriverReport, Silence

SECRET = SECRETS.of(Key(NAMESPACE, "our-tls"))
MISTRUST = Silence("the operator does not trust its certificate", is_mistrust=True)


def put_authority(job, **entries):
    job.api.put(SECRET, {"metadata": {"name": "our-tls"}, "stringData": entries})


def an_encrypted_job():
    job = OperatedJob(tlsSecret="our-tls")
    put_authority(job, **{"ca.crt": "theirs"})
    return job.is_running()


def condition(job, kind):
    return next(one for one in job.status.conditions if one.type == kind)


def events(job, reason):
    found = [body for path, body in job.api.objects.items() if "/events/" in path]
    return [body for body in found if body["reason"] == reason]


@pytest.mark.parametrize(
    ("silence", "degraded"), [(SILENCE, "AsExpected"), (MISTRUST, "DriverMistrusted")]
)
def test_the_cause_of_a_silence_reaches_the_status(silence, degraded):
    """K7 X1."""
    job = an_encrypted_job()
    job.driver.answer = lambda _: silence
    job.look()

    assert condition(job, "Ready").message == f"orders-driver-1: {silence.why}"
    assert condition(job, "Degraded").reason == degraded
    assert len(events(job, "DriverMistrusted")) == (silence is MISTRUST)


def test_a_secret_without_an_authority_is_named():
    """K7 X1 U3: no certificate at all is trusted then."""
    job = OperatedJob(tlsSecret="our-tls")
    put_authority(job, **{"tls.crt": "a certificate"})
    job.is_running()

    assert job.driver.lines == []
    degraded = condition(job, "Degraded")
    assert degraded.reason == "DriverMistrusted"
    assert "the Secret our-tls holds no ca.crt" in degraded.message


def test_a_secret_that_was_mended_is_soon_believed():
    """K7 X1: without waiting for as long as one that works is kept."""
    job = an_encrypted_job()
    job.driver.answer = lambda line: (
        DriverReport(line.attempt, JobPhase.RUNNING) if line.authority == "ours" else MISTRUST
    )
    job.look()
    put_authority(job, **{"ca.crt": "ours"})

    job.time += MISSED + timedelta(seconds=1)
    job.look()

    assert condition(job, "Ready").status == "True"
    assert condition(job, "Degraded").status == "False"
