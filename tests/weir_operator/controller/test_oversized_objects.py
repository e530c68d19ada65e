"""A resource that is too large harms nobody but its owner, who is told what to do."""

import asyncio
from datetime import timedelta

from reconciled_job import KEY, NAMESPACE, OperatedJob, a_snapshot
from weir_operator.cluster.api_paths import JOBS, Key
from weir_operator.cluster.api_requests import Answer
from weir_operator.cluster.object_cache import Kept
from weir_operator.controller.work_queue import Again

TOO_LARGE = Answer(500, {"message": "etcdserver: request is too large"})
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
    job.api.put(JOBS.of(KEY), job.job)


def test_a_specification_too_large_is_refused_with_its_size_the_limit_and_a_remedy():
    """K7 K9: at admission no rule sees what a pod template holds."""
    job = OperatedJob(driver=LARGE)

    job.look()

    said = condition(job, "SpecAccepted").message
    assert job.api.names("pods") == []
    assert f"{job.watched.jobs[KEY].opened().spec_bytes} bytes" in said
    assert "larger than 131072 bytes" in said
    assert "a ConfigMap" in said


def test_a_job_that_runs_goes_on_when_an_edit_is_too_large():
    """K1: with the version that it has, and it can be edited back."""
    job = OperatedJob().is_running()
    edited(job, driver=LARGE)

    job.look()
    refused = condition(job, "SpecAccepted").status
    edited(job, driver={})
    job.look()

    assert refused == "False"
    assert condition(job, "SpecAccepted").status == "True"
    assert job.status.driver.attempt == 1


def test_a_job_that_was_deployed_before_there_was_a_limit_goes_on():
    """K3: its status holds what runs, however large that is."""
    job = OperatedJob().is_running()
    edited(job, driver=LARGE)
    version = job.job["status"]["deployed"]
    del version["compressedSpec"]
    version["spec"] = {**job.job["spec"]}
    job.api.put(JOBS.of(KEY), job.job)
    job.driver_ends(1)
    job.look()
    job.time += timedelta(minutes=1)

    job.look()

    assert job.api.names("pods") == ["orders-driver-2"]
    assert "notes" in job.pod("orders-driver-2")["metadata"]["annotations"]


def test_jobs_are_looked_after_though_no_copy_of_them_fits_into_memory():
    """K9: it costs a call, and no more."""
    job = OperatedJob()
    job.watched.jobs = Kept(most_bytes=10)
    job.watched.snapshots = Kept(most_bytes=10)
    path, body = a_snapshot("before")

    job.is_running()
    job.api.put(path, body)
    job.look_at_snapshot("before")
    job.look()

    assert job.status.driver.running_since is not None
    assert len(job.driver.orders) == 1


def test_a_status_too_large_to_be_stored_is_told_and_not_tried_again():
    """K7 K9: neither by time nor by what happens around the job, until somebody changes it."""
    job = OperatedJob()
    job.api.refused[STATUS] = TOO_LARGE

    looks = [job.look() for _ in range(5)]

    assert looks == [Again()] * 5
    assert len(writes(job)) == 2, "the status, and in its place a smaller one that says why"
    (told,) = events(job, "ObjectTooLarge")
    assert "shorten" in told["message"]
    assert job.api.names("pods") == []


def test_the_status_that_still_fits_says_what_is_too_large():
    """K7: in a condition, beside what it said before."""
    job = OperatedJob().is_running()
    first = []
    job.api.before = lambda request: _refuse_once(job.api, request, first)
    edited(job, parallelism=3)

    job.look()
    job.look()

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
    job = OperatedJob()
    job.api.refused[STATUS] = TOO_LARGE
    job.look()
    job.api.refused.clear()
    edited(job, parallelism=1)

    job.look()

    assert job.api.names("pods") == ["orders-driver-1"]


def test_a_job_that_cannot_even_be_held_is_told_and_not_tried_again():
    """K9."""
    job = OperatedJob()
    job.api.refused["patch", "checkpointedjobs"] = TOO_LARGE

    assert [job.look() for _ in range(3)] == [Again()] * 3

    assert len([call for call in job.api.calls if call.method == "PATCH"]) == 1
    assert len(events(job, "ObjectTooLarge")) == 1


def test_a_snapshot_too_large_to_be_stored_is_told_and_not_tried_again():
    """K9."""
    job = OperatedJob().is_running()
    path, body = a_snapshot("before")
    job.api.put(path, body)
    write = ("update", "checkpointedjobsnapshots/status")
    job.api.refused[write] = TOO_LARGE

    looks = [job.look_at_snapshot("before") for _ in range(3)]

    assert looks == [Again()] * 3
    assert [(c.verb, c.resource) for c in job.api.calls].count(write) == 1
    assert len(events(job, "ObjectTooLarge")) == 1
    assert asyncio.run(job.actor.snapshot(Key(NAMESPACE, "before"))).is_held
