"""A look at a snapshot asks the driver once, writes its outcome down and ends with its files."""

from datetime import timedelta

import pytest

from reconciled_job import KEY, NAMESPACE, ReconciledJob, a_snapshot
from weir.api.report import JobPhase, Outcome
from weir_operator.cluster.api_paths import BATCH_JOBS, JOBS, NamespacedName
from weir_operator.cluster.api_requests import ApiRejected
from weir_operator.controller.work_queue import Done
from weir_operator.plan.observed_state import DriverReport, RequestReport
from weir_operator.resource.snapshot import CheckpointedJobSnapshotStatus, SnapshotState

DISPOSAL = BATCH_JOBS.object_path(NamespacedName(NAMESPACE, "before-dispose"))


def status_of(job, path):
    return CheckpointedJobSnapshotStatus.model_validate(job.api.objects[path]["status"])


def a_taken_one(**spec):
    """A job that runs, and a snapshot of it that is complete."""
    job = ReconciledJob().is_running()
    path, body = a_snapshot("before", **spec)
    job.api.put(path, body)
    job.reconcile_snapshot("before")
    (request,) = job.driver.requests
    done = RequestReport(request.key, Outcome.COMPLETED, "s3://weir/savepoints/1", 7, 10)
    job.driver.answer = lambda endpoint: DriverReport(
        endpoint.attempt, JobPhase.RUNNING, requests=(done,)
    )
    job.time += timedelta(seconds=3)
    job.reconcile_snapshot("before")
    return job, path


def deleted(job, path):
    job.api.objects[path]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    job.api.put(path, job.api.objects[path])


def test_a_snapshot_is_taken_by_the_driver_and_written_down():
    """K5: path, size, duration, version of the job, and what its disposal will need."""
    job, path = a_taken_one()

    taken = status_of(job, path)
    assert (taken.state, taken.path) == (SnapshotState.COMPLETED, "s3://weir/savepoints/1")
    assert (taken.checkpoint_id, taken.size_bytes, taken.duration) == (7, 10, 3_000)
    assert (taken.job_generation, taken.job_spec_hash) == (1, job.status.deployed.hash)
    assert taken.disposal.image == "orders:1"


def test_a_snapshot_that_asks_for_what_cannot_be_has_failed():
    """K5: its object says why, and can be deleted."""
    job = ReconciledJob().is_running()
    path, body = a_snapshot("before", type="checkpoint", disposeOnDelete=True)
    job.api.put(path, body)

    job.reconcile_snapshot("before")
    assert status_of(job, path).state is SnapshotState.FAILED
    assert "belongs to its job" in status_of(job, path).message

    deleted(job, path)
    job.reconcile_snapshot("before")
    assert path not in job.api.objects


def test_the_files_go_before_the_object_and_without_the_job():
    """K5: a Job of the snapshot's own namespace deletes them."""
    job, path = a_taken_one(disposeOnDelete=True)
    del job.api.objects[JOBS.object_path(KEY)]
    deleted(job, path)

    job.reconcile_snapshot("before")
    assert DISPOSAL in job.api.objects
    assert path in job.api.objects

    finished = {"conditions": [{"type": "Complete", "status": "True"}]}
    job.api.put(DISPOSAL, {**job.api.objects[DISPOSAL], "status": finished})
    job.reconcile_snapshot("before")

    assert path not in job.api.objects
    assert job.reconcile_snapshot("before") == Done()


def test_a_disposal_that_the_api_server_refuses_says_so_and_is_tried_again():
    """K5 K7: a deletion that cannot proceed is reported."""
    job, path = a_taken_one(disposeOnDelete=True)
    del job.api.objects[JOBS.object_path(KEY)]
    deleted(job, path)
    job.api.forbidden.add(("create", "jobs"))
    for _ in range(3):
        with pytest.raises(ApiRejected):
            job.reconcile_snapshot("before")
    assert "allow the operator to create jobs" in status_of(job, path).message
    reported = [body for name, body in job.api.objects.items() if "/events/" in name]
    assert [body["count"] for body in reported if body["reason"] == "DisposalBlocked"] == [1]

    job.api.forbidden.clear()
    for _ in range(2):
        job.reconcile_snapshot("before")

    assert DISPOSAL in job.api.objects
    assert status_of(job, path).message is None


def test_the_annotation_of_a_job_makes_one_snapshot():
    """K5: and a second look makes no second one."""
    job = ReconciledJob().is_running()
    job.job["metadata"]["annotations"] = {"weir.dev/savepoint": "before-upgrade"}
    job.api.put(JOBS.object_path(KEY), job.job)

    job.reconcile()
    job.reconcile()

    (name,) = job.api.names("checkpointedjobsnapshots")
    assert name.startswith("orders-annotation-")
