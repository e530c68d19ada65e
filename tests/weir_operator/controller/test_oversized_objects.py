"""A resource that is too large affects only its owner, and the remedy is reported."""

import asyncio
from datetime import timedelta

from reconciled_job import KEY, NAMESPACE, ReconciledJob, a_snapshot
from weir_operator.cluster.api_paths import JOBS, NamespacedName
from weir_operator.cluster.api_requests import ApiResponse
from weir_operator.cluster.object_cache import ObjectCache
from weir_operator.controller.work_queue import Requeue

TOO_LARGE = ApiResponse(500, {"message": "etcdserver: request is too large"})
LARGE = {"podTemplate": {"metadata": {"annotations": {"notes": "x" * 200_000}}}}
STATUS = ("update", "checkpointedjobs/status")


def condition(job, kind):
    return next(one for one in job.status.conditions if one.type == kind)


def events(job, reason):
    return [
        body
        for path, body in job.api.objects.items()
        if "/events/" in path and body["reason"] == reason
    ]


def writes(job):
    return [call for call in job.api.calls if (call.verb, call.resource) == STATUS]


def edited(job, **changes):
    job.job["spec"] |= changes
    job.job["metadata"]["generation"] += 1
    job.api.put(JOBS.object_path(KEY), job.job)


def test_a_specification_too_large_is_refused_with_its_size_the_limit_and_a_remedy():
    """K7 K9: at admission no rule sees what a pod template holds."""
    job = ReconciledJob(driver=LARGE)

    job.reconcile()

    said = condition(job, "SpecAccepted").message
    assert job.api.names("pods") == []
    assert f"{job.cache.jobs[KEY].to_object().spec_bytes} bytes" in said
    assert "larger than 131072 bytes" in said
    assert "a ConfigMap" in said


def test_a_job_that_runs_goes_on_when_an_edit_is_too_large():
    """K1: with the version that it has, and it can be edited back."""
    job = ReconciledJob().is_running()
    edited(job, driver=LARGE)

    job.reconcile()
    refused = condition(job, "SpecAccepted").status
    edited(job, driver={})
    job.reconcile()

    assert refused == "False"
    assert condition(job, "SpecAccepted").status == "True"
    assert job.status.driver.attempt == 1


def test_a_job_that_was_deployed_before_there_was_a_limit_goes_on():
    """K3: its status holds what runs, however large that is."""
    job = ReconciledJob().is_running()
    edited(job, driver=LARGE)
    version = job.job["status"]["deployed"]
    del version["compressedSpec"]
    version["spec"] = {**job.job["spec"]}
    job.api.put(JOBS.object_path(KEY), job.job)
    job.driver_ends(1)
    job.reconcile()
    job.time += timedelta(minutes=1)

    job.reconcile()

    assert job.api.names("pods") == ["orders-driver-2"]
    assert "notes" in job.pod("orders-driver-2")["metadata"]["annotations"]


def test_jobs_are_looked_after_though_no_copy_of_them_fits_into_memory():
    """K9: it costs a call, and no more."""
    job = ReconciledJob()
    job.cache.jobs = ObjectCache(most_bytes=10)
    job.cache.snapshots = ObjectCache(most_bytes=10)
    path, body = a_snapshot("before")

    job.is_running()
    job.api.put(path, body)
    job.reconcile_snapshot("before")
    job.reconcile()

    assert job.status.driver.running_since is not None
    assert len(job.driver.requests) == 1


def test_a_status_too_large_to_be_stored_is_reported_and_not_retried():
    """K7 K9: neither by time nor by what happens around the job, until a user changes it."""
    job = ReconciledJob()
    job.api.refused[STATUS] = TOO_LARGE

    reconciler = [job.reconcile() for _ in range(5)]

    assert reconciler == [Requeue()] * 5
    assert len(writes(job)) == 2, "the status, and in its place a smaller one that says why"
    (reported,) = events(job, "ObjectTooLarge")
    assert "shorten" in reported["message"]
    assert job.api.names("pods") == []


def test_the_status_that_still_fits_says_what_is_too_large():
    """K7: in a condition, beside what it said before."""
    job = ReconciledJob().is_running()
    first = []
    job.api.before = lambda request: _refuse_once(job.api, request, first)
    edited(job, parallelism=3)

    job.reconcile()
    job.reconcile()

    degraded = condition(job, "Degraded")
    assert (degraded.status, degraded.reason) == ("True", "ObjectTooLarge")
    assert condition(job, "Ready").status == "True"
    assert job.status.deployed.generation == 1
    assert len(first) == 1


def _refuse_once(api, request, seen):
    api.refused.pop(STATUS, None)
    if (request.verb, request.resource) == STATUS and not seen:
        seen.append(request)
        api.refused[STATUS] = TOO_LARGE


def test_a_job_that_was_made_smaller_is_looked_after_again():
    """K9."""
    job = ReconciledJob()
    job.api.refused[STATUS] = TOO_LARGE
    job.reconcile()
    job.api.refused.clear()
    edited(job, parallelism=1)

    job.reconcile()

    assert job.api.names("pods") == ["orders-driver-1"]


def test_a_job_too_large_for_a_finalizer_is_reported_and_not_retried():
    """K9."""
    job = ReconciledJob()
    job.api.refused["patch", "checkpointedjobs"] = TOO_LARGE

    assert [job.reconcile() for _ in range(3)] == [Requeue()] * 3

    assert len([call for call in job.api.calls if call.method == "PATCH"]) == 1
    assert len(events(job, "ObjectTooLarge")) == 1


def test_a_snapshot_too_large_to_be_stored_is_reported_and_not_retried():
    """K9."""
    job = ReconciledJob().is_running()
    path, body = a_snapshot("before")
    job.api.put(path, body)
    write = ("update", "checkpointedjobsnapshots/status")
    job.api.refused[write] = TOO_LARGE

    reconciler = [job.reconcile_snapshot("before") for _ in range(3)]

    assert reconciler == [Requeue()] * 3
    assert [(c.verb, c.resource) for c in job.api.calls].count(write) == 1
    assert len(events(job, "ObjectTooLarge")) == 1
    assert asyncio.run(job.executor.snapshot(NamespacedName(NAMESPACE, "before"))).has_finalizer
