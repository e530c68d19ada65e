"""An annotation takes a savepoint: an object, its files, an Event, an entry in the status.

Rows flow meanwhile. The object outlives the job; its files are deleted with it only if it says so,
by a Job that needs no running job.
"""

import pytest

from applied_job import names


@pytest.fixture(scope="module")
def taken(job):
    """The snapshot that the annotation ``first`` has made."""
    job.apply()
    job.until_committed()
    job.annotate("weir.dev/savepoint=first")
    (snapshot,) = job.until("a completed savepoint", lambda: completed(job))
    return snapshot


def completed(job):
    return [s for s in job.snapshots() if s.get("status", {}).get("state") == "Completed"]


def test_its_object_says_where_it_is_and_its_files_are_there(job, taken):
    """K5."""
    status = taken["status"]

    assert taken["spec"]["trigger"] == "annotation"
    assert status["path"].startswith(f"{job.directory}/savepoints/")
    assert status["sizeBytes"] > 0
    assert job.bucket.files(status["path"])


def test_the_job_tells_of_it(job, taken):
    """K5 K7."""
    path = taken["status"]["path"]

    job.until("an Event", lambda: job.event_messages("SavepointCompleted"))
    assert any(path in message for message in job.event_messages("SavepointCompleted"))
    job.until("status", lambda: job.status().get("lastSavepoint", {}).get("path") == path)


def test_the_same_value_again_is_no_second_savepoint(job, taken):
    """K3 K5: another value is, which shows that the first was not waited for too briefly."""
    job.annotate("weir.dev/savepoint=first")
    job.annotate("example.com/something=else")
    job.annotate("weir.dev/savepoint=second")
    job.until("another savepoint", lambda: len(completed(job)) > 1)

    assert len(job.snapshots()) == 2
    assert taken["metadata"]["name"] in names(job.snapshots())


def test_rows_went_on_meanwhile_exactly_once(job, taken):
    """K5 C1."""
    assert taken
    job.until_committed()

    assert job.verdict().is_exactly_once, job.verdict()
    assert job.status()["restarts"] == 0


def test_files_are_deleted_with_an_object_that_has_dispose_on_delete(job, taken, cluster):
    """K5: by a Job in the job's namespace."""
    name, path = taken["metadata"]["name"], taken["status"]["path"]
    kind, wish = "checkpointedjobsnapshot", '{"spec": {"disposeOnDelete": true}}'
    cluster.kubectl("patch", kind, name, "--type=merge", "-p", wish, namespace=job.namespace)
    cluster.kubectl("delete", kind, name, "--wait=false", namespace=job.namespace)

    job.until("the end of the object", lambda: name not in names(job.snapshots()))

    assert not job.bucket.files(path)
    (other,) = job.snapshots()
    assert job.bucket.files(other["status"]["path"])
