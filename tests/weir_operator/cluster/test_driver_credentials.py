"""Each driver is spoken to by what it was given itself, and Secrets are not read for every look."""

import asyncio

from reconciled_job import KEY, NAMESPACE, ReconciledJob
from weir_operator.cluster.api_paths import JOBS, SECRETS, NamespacedName
from weir_operator.cluster.driver_credentials import MissingCredential
from weir_operator.controller.job_reconciler import FULL_READ_PERIOD

TLS = NamespacedName(NAMESPACE, "our-tls")


def with_certificates(job):
    ours = {"metadata": {"name": TLS.name}, "stringData": {"ca.crt": "authority"}}
    job.api.put(SECRETS.object_path(TLS), ours)
    return job


def reads(job):
    return [call.path for call in job.api.calls if (call.verb, call.resource) == ("get", "secrets")]


def test_a_secret_is_read_once_for_many_looks():
    """K9: a thousand jobs are looked at all the time."""
    job = ReconciledJob().is_running()
    before = len(reads(job))
    for _ in range(3):
        job.reconcile()

    assert len(reads(job)) == before


def test_another_secret_with_certificates_is_read_at_once():
    """X1: what was known of the driver in the clear is of no use for the one that encrypts."""
    job = with_certificates(ReconciledJob().is_running())
    credentials, opened = job.executor.credentials, asyncio.run(job.executor.job(KEY))

    clear = asyncio.run(credentials.of(opened, None, job.now()))
    encrypted = asyncio.run(credentials.of(opened, TLS.name, job.now()))

    assert (clear.authority, encrypted.authority) == (None, "authority")
    assert clear.token == encrypted.token


def test_a_driver_with_new_keys_is_asked_with_them():
    """K10 X1: the keys were deleted, and so it was replaced."""
    job = ReconciledJob().is_running()
    old = job.driver.endpoints[-1].token
    del job.api.objects[SECRETS.object_path(NamespacedName(NAMESPACE, f"{KEY.name}-keys"))]
    job.time += FULL_READ_PERIOD
    job.reconcile()
    job.reconcile()

    job.driver_runs("orders-driver-2")
    job.reconcile()

    endpoint = job.driver.endpoints[-1]
    assert endpoint.attempt == 2
    assert endpoint.token != old


def test_a_certificate_that_is_far_too_long_is_not_kept():
    """K9 X3: a tenant's Secret may hold 1 MiB, and the operator speaks to a thousand drivers."""
    job = ReconciledJob().is_running()
    long = {"metadata": {"name": TLS.name}, "stringData": {"ca.crt": "x" * 65_537}}
    job.api.put(SECRETS.object_path(TLS), long)
    opened = asyncio.run(job.executor.job(KEY))

    lacking = asyncio.run(job.executor.credentials.of(opened, TLS.name, job.now()))

    assert lacking == MissingCredential(TLS.name, "ca.crt", is_too_long=True)
    assert lacking.why == "the Secret our-tls holds a ca.crt of more than 65536 bytes"
    assert lacking.is_authority


def test_a_job_that_went_without_us_leaves_no_contact_behind():
    """K9: jobs without our finalizer must not fill the operator's memory."""
    job = ReconciledJob().is_running()
    kept = job.api.objects.pop(JOBS.object_path(KEY))
    job.reconcile()
    before = len(reads(job))
    job.api.put(JOBS.object_path(KEY), kept)

    job.reconcile()

    assert len(reads(job)) > before
