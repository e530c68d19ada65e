"""An unreachable or untrusted driver is reported with the cause, as long as it lasts."""

from datetime import timedelta

import pytest

from reconciled_job import NAMESPACE, UNREACHABLE, ReconciledJob
from weir.api.report import JobPhase
from weir_operator.cluster.api_paths import SECRETS, NamespacedName
from weir_operator.cluster.driver_credentials import MISSING_TTL
from weir_operator.plan.observed_state import DriverReport, Unreachable

SECRET = SECRETS.object_path(NamespacedName(NAMESPACE, "our-tls"))
MISTRUST = Unreachable("the operator does not trust its certificate", is_untrusted=True)


def put_authority(job, **entries):
    job.api.put(SECRET, {"metadata": {"name": "our-tls"}, "stringData": entries})


def an_encrypted_job():
    job = ReconciledJob(tlsSecret="our-tls")
    put_authority(job, **{"ca.crt": "theirs"})
    return job.is_running()


def condition(job, kind):
    return next(one for one in job.status.conditions if one.type == kind)


def events(job, reason):
    found = [body for path, body in job.api.objects.items() if "/events/" in path]
    return [body for body in found if body["reason"] == reason]


@pytest.mark.parametrize(
    ("unreachable", "degraded"), [(UNREACHABLE, "Healthy"), (MISTRUST, "DriverMistrusted")]
)
def test_the_cause_of_a_silence_reaches_the_status(unreachable, degraded):
    """K7 X1."""
    job = an_encrypted_job()
    job.driver.answer = lambda _: unreachable
    job.reconcile()

    assert condition(job, "Ready").message == f"orders-driver-1: {unreachable.why}"
    assert condition(job, "Degraded").reason == degraded
    assert len(events(job, "DriverMistrusted")) == (unreachable is MISTRUST)


def test_a_secret_without_an_authority_is_named():
    """K7 X1 U3: no certificate at all is trusted then."""
    job = ReconciledJob(tlsSecret="our-tls")
    put_authority(job, **{"tls.crt": "a certificate"})
    job.is_running()

    assert job.driver.endpoints == []
    degraded = condition(job, "Degraded")
    assert degraded.reason == "DriverMistrusted"
    assert "the Secret our-tls holds no ca.crt" in degraded.message


def test_a_secret_that_was_mended_is_soon_believed():
    """K7 X1: without waiting for as long as one that works is kept."""
    job = an_encrypted_job()
    job.driver.answer = lambda endpoint: (
        DriverReport(endpoint.attempt, JobPhase.RUNNING)
        if endpoint.authority == "ours"
        else MISTRUST
    )
    job.reconcile()
    put_authority(job, **{"ca.crt": "ours"})

    job.time += MISSING_TTL + timedelta(seconds=1)
    job.reconcile()

    assert condition(job, "Ready").status == "True"
    assert condition(job, "Degraded").status == "False"
