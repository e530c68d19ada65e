"""With ``tlsSecret`` driver and operator use TLS, and trust only the job's certificate.

The job starts without TLS and gets its certificates by an edit: it is one setting. A driver is
addressed by its pod's IP, so its certificate is verified by its CA and not by a name.
"""

from dataclasses import replace

import pytest
import yaml

from applied_job import AppliedJob
from chart import NAMESPACE
from pod_calls import Call, Pod
from throwaway_certificates import a_certificate
from weir_operator.manifests.pod_layout import API_PORT

pytestmark = pytest.mark.thorough

SECRET = "encrypted-tls"  # noqa: S105 - its name
UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"
"""OpenSSL's word for it."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def ours(folder):
    """The job's certificate, and its authority."""
    return a_certificate(folder, "job", signed_by=a_certificate(folder, "authority"))


@pytest.fixture(scope="module")
def mistaken(folder, ours):
    """The same certificate, with an authority that did not sign it."""
    return replace(ours, authority=a_certificate(folder, "another").certificate)


@pytest.fixture(scope="module")
def encrypted(job, ours):
    """A job that ran in the clear before."""
    put(job, SECRET, ours)
    job.apply()
    job.until_committed()
    job.edit(tlsSecret=SECRET)
    job.until_stable()
    return job


@pytest.fixture
def asking(operator):
    """The operator's pod, from which drivers can be reached whatever the network is like."""
    return Pod(operator.cluster, NAMESPACE, operator.pod())


def put(job, name, tls):
    files = {"tls.crt": tls.certificate, "tls.key": tls.key, "ca.crt": tls.authority}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "stringData": {file: path.read_text() for file, path in files.items()},
    }
    given = yaml.safe_dump(secret)
    job.cluster.kubectl("apply", "-f", "-", given=given, namespace=job.namespace)


def place(job):
    return f"{Pod(job.cluster, job.namespace, job.driver()).ip}:{API_PORT}"


def is_ready(job):
    found = job.cluster.look("pod", job.driver(), namespace=job.namespace)["status"]["conditions"]
    return any((c["type"], c["status"]) == ("Ready", "True") for c in found)


def says(job, kind):
    return job.condition(kind).get("reason")


def leaders_log(operator):
    return operator.cluster.kubectl("logs", operator.pod(), namespace=NAMESPACE)


def completed(job):
    return [s for s in job.snapshots() if s.get("status", {}).get("state") == "Completed"]


def test_an_edit_turns_tls_on_and_nothing_is_lost(encrypted):
    """X1: the operator hears the new driver, and the probes reach it."""
    encrypted.until_committed()
    encrypted.until("its node finds it ready", lambda: is_ready(encrypted))

    assert encrypted.verdict().is_exactly_once, encrypted.verdict()


def test_a_request_without_tls_gets_no_response(encrypted, asking, ours):
    """X1: only clients that use TLS and trust the job's CA."""
    health = f"{place(encrypted)}/healthz"
    trusting = Call(f"https://{health}", authority=ours.authority.read_text())

    clear, safe = asking.calls([Call(f"http://{health}"), trusting])

    assert clear.status == 0, clear
    assert safe.status == 200, safe


def test_a_client_that_trusts_another_authority_rejects_the_drivers_certificate(
    encrypted, asking, mistaken
):
    """X1: its certificate is not taken on trust."""
    url = f"https://{place(encrypted)}/healthz"

    answer = asking.call(Call(url, authority=mistaken.authority.read_text()))

    assert UNTRUSTED in answer.why, answer


def test_a_savepoint_by_annotation_is_taken_over_tls(encrypted):
    """X1 K5: order and report, both by the one way that is open."""
    before = len(completed(encrypted))
    encrypted.annotate("weir.dev/savepoint=encrypted")

    encrypted.until("a completed savepoint", lambda: len(completed(encrypted)) > before)


def test_a_certificate_of_another_authority_fails_the_start_and_the_status_says_why(
    operator, bucket, mistaken
):
    """X1 K7 U3: by a condition and an Event, with the remedy."""
    job = AppliedJob(operator.cluster, bucket, operator.jobs, "mistaken")
    put(job, "mistaken-tls", mistaken)
    try:
        job.apply(tlsSecret="mistaken-tls")
        job.until_state("Failed")

        degraded = job.condition("Degraded")
        assert (degraded["status"], degraded["reason"]) == ("True", "JobFailed")
        assert "/etc/weir-tls/ca.crt" in degraded["message"]
        assert "Remedy: use a certificate that is valid" in degraded["message"]
        job.until("an Event", lambda: job.event_messages("JobFailed"))
    finally:
        job.delete()


def test_an_operator_that_trusts_another_authority_hears_nothing_and_says_so(
    encrypted, operator, cluster, mistaken
):
    """X1 X3 K7: an untrusted driver counts as unreachable; the job keeps running."""
    driver = encrypted.driver()
    put(encrypted, SECRET, mistaken)
    cluster.kubectl("delete", "pod", operator.pod(), "--wait=false", namespace=NAMESPACE)

    encrypted.until("why, in the log", lambda: UNTRUSTED in leaders_log(operator))
    encrypted.until("a silent driver", lambda: says(encrypted, "Ready") == "DriverUnreachable")
    assert encrypted.driver() == driver
    encrypted.until_committed()
