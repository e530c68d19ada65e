"""Suspended, resumed, restarted, rescaled, deleted, started again: always the same sums.

One job goes through all operations in turn, and its whole output is verified. What a deleted job
leaves in storage is enough for another job to continue. Two more jobs end: one whose storage is
unavailable, and one whose ttlAfterEnd has passed.
"""

import pytest

from applied_job import AppliedJob, names
from faulty_storage import troubled_storage

pytestmark = pytest.mark.thorough

ROWS = 5_000
METADATA = "/_metadata"


@pytest.fixture(scope="module")
def running(job):
    job.apply(savepoints={"onDeletion": True})
    job.until_committed()
    return job


def is_exact(job):
    job.until_committed()
    assert job.verdict().is_exactly_once, job.verdict()


def of_deletions(job):
    return [s for s in job.snapshots() if s["spec"]["trigger"] == "deletion"]


def newest_checkpoint(job, directory):
    """The path of a job's newest checkpoint in the bucket, by the job's directory."""
    files = job.bucket.files(f"{job.directory}/checkpoints/{directory}")
    complete = [file.removesuffix(METADATA) for file in files if file.endswith(METADATA)]
    return max(complete, key=number_of)


def number_of(checkpoint):
    return int(checkpoint.rpartition("/chk-")[2])


def test_a_suspended_job_has_no_pods_and_goes_on_where_it_was(running):
    """K6."""
    running.edit(suspend=True)
    running.until_state("Suspended")
    assert not running.pods("driver")
    stopped = running.verdict().delivered

    running.edit(suspend=False)
    is_exact(running)

    assert running.verdict().delivered > stopped


def test_another_restart_nonce_starts_it_again_from_a_savepoint_and_only_once(running):
    """K4 K6: as an upgrade to the same specification would."""
    attempt = running.status()["driver"]["attempt"]
    running.edit(restartNonce=1)
    running.until_stable()

    upgrade = running.status()["upgrade"]
    assert upgrade["cause"] == "RestartNonce"
    assert upgrade["toGeneration"] == running.resource()["metadata"]["generation"]
    assert upgrade["snapshot"] in names(running.snapshots())
    is_exact(running)
    assert running.status()["driver"]["attempt"] == attempt + 1


def test_kubectl_scale_rescales_it(running, cluster):
    """K6 S11: as a HorizontalPodAutoscaler would."""
    which = f"checkpointedjob/{running.name}"
    cluster.kubectl("scale", which, "--replicas=3", namespace=running.namespace)
    running.until_stable()

    assert len(running.pods("executor")) == 3
    assert running.status()["upgrade"]["cause"] == "Rescaled"
    is_exact(running)


def test_a_deleted_job_leaves_a_savepoint_from_which_another_goes_on(running):
    """K5 K10: and its output is the first job's, continued."""
    running.delete()
    (last,) = of_deletions(running)
    assert not running.pods("driver")

    running.apply(recovery={"path": last["spec"]["adoptPath"]})
    is_exact(running)


def test_a_job_that_was_asked_for_no_last_savepoint_leaves_its_checkpoints(running):
    """C12 C13 K5: from the newest of which another goes on, as from a savepoint."""
    before, directory = names(of_deletions(running)), running.status()["jobId"]
    running.delete()
    assert names(of_deletions(running)) == before

    running.apply(recovery={"path": newest_checkpoint(running, directory)})
    is_exact(running)


def test_a_job_is_deleted_though_its_driver_is_dead_and_its_state_stays(running):
    """K10."""
    directory = running.status()["jobId"]
    running.until("a checkpoint of its own", lambda: running.status().get("lastCheckpoint"))
    running.kill(running.driver())
    running.delete()

    assert newest_checkpoint(running, directory)
    assert not running.pods("driver")


def test_a_job_whose_storage_is_away_is_deleted_in_time_and_its_state_stays(operator, bucket):
    """K7 K10: without the savepoint that it was to leave, and an Event says why."""
    stranded = AppliedJob(operator.cluster, bucket, operator.jobs, "stranded")
    wish = {"onDeletion": True, "deletionDeadline": "10 s"}
    with troubled_storage(operator.cluster, operator.jobs) as storage:
        try:
            stranded.apply(storageSecrets=[storage.secret], savepoints=wish)
            stranded.until_committed()
            known = stranded.until("a checkpoint", lambda: stranded.status().get("lastCheckpoint"))
            directory = stranded.status()["jobId"]
            storage.vanish()
            stranded.delete()
        finally:
            stranded.delete()

    assert not stranded.snapshots()
    assert not stranded.pods("driver")
    assert number_of(newest_checkpoint(stranded, directory)) >= known["id"]
    assert stranded.event_messages("SavepointFailed")


def test_a_job_that_has_ended_goes_when_its_time_is_over_and_its_results_stay(operator, bucket):
    """K1 K2: by itself, and not before."""
    passing = AppliedJob(operator.cluster, bucket, operator.jobs, "passing")
    try:
        passing.apply(rows=ROWS, ttlAfterEnd="20 s")
        passing.until("the end of the job", lambda: passing.event_messages("Finished"))
        assert passing.exists()

        passing.until("the end of the resource", lambda: not passing.exists())
    finally:
        passing.delete()

    assert not passing.pods("driver")
    assert passing.verdict().delivered == ROWS
    assert passing.verdict().is_exactly_once, passing.verdict()
